//! What can be proposed to the ledger.

use serde::{Deserialize, Serialize};

use super::diagnosis::Diagnosis;
use super::hold::{HoldOwner, HoldScope};
use super::limits::{Limits, LimitsChange};
use super::reason::Reason;
use super::resolution::Assertion;
use crate::model::{
    ClusterTime, ContainerState, EngineId, EngineInstant, Exchange, Grace, Health, HealthCheck, HoldId,
    HostName, Incarnation, JournalPosition, JournalWord, NodeId, NotWritten, Observation, ProcessNonce,
    RequestId, RunId, Sighting, Target, Term, WallTime,
};

/// A command with what the proposer stamped on it. This is what a log entry holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stamped {
    /// The rules that this command needs. A ledger that does not know them stops.
    pub level: u32,
    /// The cluster clock as the proposer reckoned it.
    pub clock: ClusterTime,
    /// The proposer's wall clock, for people.
    pub wall: WallTime,
    /// The proposer.
    pub node: NodeId,
    /// What is proposed.
    pub command: Command,
}

/// What can be proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Decide about a request: open an interlock, attach to an open one, or refuse.
    OpenInterlock(Box<OpenInterlock>),
    /// Remember a refusal that was made before an interlock could be proposed.
    RefuseRequest(Box<RefuseRequest>),
    /// What the wire showed of a run's one restart request.
    RecordExchange(Box<RecordExchange>),
    /// What the only process that can know says of a run.
    Attest(Box<Attest>),
    /// What a look at the container showed.
    Observe(Box<Observe>),
    /// What a look at an applied run's container says of its recovery.
    Verify(Box<Verify>),
    /// Bind a host's name to its engine and its dispatcher.
    BindHost(BindHost),
    /// Replace the limits.
    SetLimits(Limits),
    /// Change some of the limits.
    ChangeLimits(LimitsChange),
    /// Approve one start of a container that a restart left down.
    OpenStart(Box<OpenStart>),
    /// End an open run by an operator's word.
    Resolve(Box<Resolve>),
    /// Place a hold.
    PlaceHold(Box<PlaceHold>),
    /// Let the time of a hold begin anew.
    RenewHold {
        /// The hold.
        hold: HoldId,
    },
    /// Lift holds.
    LiftHold(LiftHold),
    /// End a quarantine whose bound has passed.
    EndQuarantine {
        /// The run.
        run: RunId,
    },
    /// Forget a host that nothing stands on.
    RemoveHost {
        /// Its name.
        host: HostName,
    },
    /// Let the rules of this level be in force, for good.
    RaiseRulesLevel {
        /// The level.
        level: u32,
    },
    /// Forget what has ended and is too many or too old.
    Prune,
    /// Move the cluster clock on; nothing else.
    Tick,
}

impl Command {
    /// The rules that it needs.
    #[must_use]
    pub fn level(&self) -> u32 {
        match self {
            Self::RaiseRulesLevel { level } => *level,
            Self::RenewHold { .. } => 4,
            Self::OpenInterlock(command) if command.request.by.is_some() => 4,
            Self::RefuseRequest(command) if command.request.by.is_some() => 4,
            Self::RecordExchange(command) if command.start.is_none() => 1,
            Self::Attest(command) if command.start.is_none() => 1,
            Self::OpenInterlock(command) if command.diagnosis != Diagnosis::Callers => 2,
            Self::RefuseRequest(command) if command.diagnosis != Diagnosis::Callers => 3,
            Self::Verify(command) if command.gone.is_some() => 4,
            Self::Verify(command) if command.unseen.is_some() => 3,
            Self::PlaceHold(command) if command.asked_as.is_some() => 3,
            Self::OpenInterlock(_)
            | Self::RefuseRequest(_)
            | Self::Observe(_)
            | Self::Verify(_)
            | Self::BindHost(_)
            | Self::SetLimits(_)
            | Self::Tick => 1,
            Self::RecordExchange(_)
            | Self::Attest(_)
            | Self::ChangeLimits(_)
            | Self::OpenStart(_)
            | Self::Resolve(_)
            | Self::PlaceHold(_)
            | Self::LiftHold(_)
            | Self::EndQuarantine { .. }
            | Self::RemoveHost { .. }
            | Self::Prune => 2,
        }
    }
}

/// Who asks, as long as nobody has to say who they are.
pub const ANONYMOUS: &str = "anonymous";

pub(super) fn anonymous() -> String {
    ANONYMOUS.to_owned()
}

pub(super) fn is_anonymous(caller: &str) -> bool {
    caller == ANONYMOUS
}

/// A client's request, as it was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The caller's id for it. Without one, a retry is a new request.
    pub id: Option<RequestId>,
    /// Who asks. Left out of the stored form where that is [`ANONYMOUS`]: the first rules knew nobody else.
    #[serde(default = "anonymous", skip_serializing_if = "is_anonymous")]
    pub caller: String,
    /// The name of who asks, for people, if they gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// SHA-256 of the request as sent and of its caller, in hex.
    pub digest: String,
    /// The caller's reason, for people.
    pub reason: String,
    /// The target as the caller spelled it.
    pub spelling: String,
}

/// The container as it was when the request was resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// The one life that may be ended by this run.
    pub incarnation: Incarnation,
    /// The container's name then.
    pub name: String,
    /// What it was doing.
    pub state: ContainerState,
    /// What its health check said.
    pub health: Health,
    /// The health check's times, if it has one.
    pub health_check: Option<HealthCheck>,
}

/// The incarnation that the caller means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The full container id.
    pub container_id: crate::model::ContainerId,
    /// When the life began that the caller saw.
    pub started_at: EngineInstant,
}

/// The process that proposed an interlock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposer {
    /// Its node.
    pub node: NodeId,
    /// Which life of that node's process.
    pub nonce: ProcessNonce,
}

/// How strongly a host's restarts are fenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// By an agent beside the engine, which keeps terms and indexes durably.
    Agent,
    /// By the leader's own checks alone.
    LeaderOnly,
}

/// The one process that may write a run's restart request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DispatcherRef {
    /// How strongly it fences.
    pub guard: Guard,
    /// Its journal, and how far that had got when the interlock was proposed.
    pub journal: JournalPosition,
}

/// Decide about a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenInterlock {
    /// The id of the run that this opens or refuses. Random.
    pub run: RunId,
    /// The request.
    pub request: Request,
    /// The canonical target.
    pub target: Target,
    /// The container as it was.
    pub baseline: Baseline,
    /// The incarnation that the caller means, if it said so.
    pub expect: Option<Expectation>,
    /// How long the engine shall let it stop by itself.
    pub grace: Grace,
    /// What is the matter with it.
    #[serde(default, skip_serializing_if = "Diagnosis::is_the_callers")]
    pub diagnosis: Diagnosis,
    /// Who proposes.
    pub proposer: Proposer,
    /// Who would send.
    pub dispatcher: DispatcherRef,
    /// The term in which this is proposed.
    pub term: Term,
}

/// Remember a refusal made before an interlock could be proposed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefuseRequest {
    /// The id of the refused run. Random.
    pub run: RunId,
    /// The request.
    pub request: Request,
    /// The target as far as it was understood.
    pub target: Target,
    /// Why. Never empty.
    pub reasons: Vec<Reason>,
    /// What it was said to be for.
    #[serde(default, skip_serializing_if = "Diagnosis::is_the_callers")]
    pub diagnosis: Diagnosis,
}

/// What the wire showed of a run's one restart request, or of one of its starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordExchange {
    /// The run.
    pub run: RunId,
    /// The start within the run, if it was that which was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<RunId>,
    /// The journal of the dispatcher that says so.
    pub journal: JournalPosition,
    /// What the wire showed.
    pub exchange: Exchange,
}

/// A statement about a run by a process that can know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attest {
    /// The run.
    pub run: RunId,
    /// The start within the run, if it is about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<RunId>,
    /// The statement.
    pub attestation: Attestation,
}

/// Who states what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Attestation {
    /// A dispatcher's journal, after the run was durably revoked there.
    Journal {
        /// Which journal, and how far it is now.
        at: JournalPosition,
        /// What it says.
        word: JournalWord,
    },
    /// The proposer, still the same process: it never began to hand the run on, and never will.
    NeverHandedOn {
        /// Who says so.
        proposer: Proposer,
        /// What stood in the way.
        refusal: NotWritten,
    },
}

/// What a look at a run's container showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observe {
    /// The run.
    pub run: RunId,
    /// What it showed.
    pub observation: Observation,
}

/// What a look at an applied run's container says of its recovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verify {
    /// The run.
    pub run: RunId,
    /// The container, if it could be seen.
    pub sighting: Option<Sighting>,
    /// Why it could not be seen, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unseen: Option<String>,
    /// The engine that answers that there is no such container: unlike a look that failed, that says something of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<EngineId>,
}

/// Bind a host's name to its engine and its dispatcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BindHost {
    /// The name.
    pub host: HostName,
    /// The engine.
    pub engine_id: EngineId,
    /// Who sends to it.
    pub dispatcher: DispatcherRef,
}

/// Approve one start of a container that a restart left down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenStart {
    /// The run.
    pub run: RunId,
    /// The start's id; it may be the caller's.
    pub start: RunId,
    /// What its dispatcher is to know it by. Random.
    pub order: RunId,
    /// Who approves it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// What a look at the container showed a moment ago.
    pub look: Observation,
    /// Who proposes.
    pub proposer: Proposer,
    /// Who would send.
    pub dispatcher: DispatcherRef,
    /// The term in which this is proposed.
    pub term: Term,
}

/// End an open run by an operator's word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    /// The run.
    pub run: RunId,
    /// Who ends it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// What they say happened.
    pub assertion: Option<Assertion>,
    /// Also if its dispatcher has not acknowledged that nothing more is sent.
    pub accept_late_post: bool,
}

/// Place a hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlaceHold {
    /// Its id; it may be the caller's.
    pub id: HoldId,
    /// What it covers.
    pub scope: HoldScope,
    /// The scope as it was asked for, where that is spelled otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_as: Option<HoldScope>,
    /// Who places it.
    pub owner: HoldOwner,
    /// Their name.
    pub by: String,
    /// Why.
    pub reason: String,
    /// How long it stands; `None` until it is lifted.
    pub duration_ms: Option<u64>,
}

/// Lift holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LiftHold {
    /// The one of this id.
    Id(HoldId),
    /// Every operator's hold of exactly this scope.
    Scope(HoldScope),
}
