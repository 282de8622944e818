//! A run: one decision about one target, and its history.

use serde::{Deserialize, Serialize};

use super::command::{Baseline, DispatcherRef, Expectation, Proposer, Request};
use super::diagnosis::Diagnosis;
use super::moment::Moment;
use super::order::OrderFacts;
use super::reason::{Reason, ReasonCode};
use super::start::Start;
use super::status::{Disposition, Status, Verification};
use crate::model::{
    ClusterTime, Exchange, Fence, Grace, JournalWord, LogIndex, NotWritten, Observation, RunId, Target,
    WallTime,
};

/// The part of a run that stands in the way of every other restart of its target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interlock {
    /// Authority and order.
    pub fence: Fence,
    /// Who proposed it.
    pub proposer: Proposer,
    /// Who may send.
    pub dispatcher: DispatcherRef,
    /// How long the engine shall let the container stop by itself.
    pub grace: Grace,
    /// What it was decided for.
    #[serde(default, skip_serializing_if = "Diagnosis::is_the_callers")]
    pub diagnosis: Diagnosis,
    /// How long the whole exchange may take, from the first request byte.
    pub client_deadline_ms: u64,
    /// How long a ticket for it is good.
    pub dispatch_by_ms: u64,
    /// When the exchange must have ended, one way or the other.
    pub deadline: ClusterTime,
}

/// The target stays closed although the claim is settled: the exchange is not known to have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quarantine {
    /// When it ends without word of the dispatcher. A bound, not a proof.
    pub until: ClusterTime,
    /// True once it ended, by the dispatcher's word or by its bound.
    pub ended: bool,
}

/// One thing that changed in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// Where and when; of several in one, the last.
    pub at: Moment,
    /// In one line.
    pub detail: String,
    /// How many of the same kind, one after the other, this stands for.
    pub times: u64,
}

/// What can change in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// The interlock was committed.
    Interlocked,
    /// The request was refused.
    Refused,
    /// Another request was attached.
    Attached,
    /// What the wire showed was recorded.
    Exchanged,
    /// The journal or the proposer stated what it knows.
    Attested,
    /// A look showed something new.
    Observed,
    /// The status became `UNRESOLVED`.
    Unresolved,
    /// The status became `APPLIED`.
    Applied,
    /// The status became `NOT_APPLIED`.
    NotApplied,
    /// The status became `SUPERSEDED`.
    Superseded,
    /// The target stays closed.
    QuarantineBegan,
    /// The quarantine ended, by the dispatcher's word or by its bound.
    QuarantineEnded,
    /// Verification ended.
    Verified,
    /// A start was approved.
    StartApproved,
    /// What the wire showed of a start was recorded.
    StartExchanged,
    /// The journal or the proposer stated what it knows of a start.
    StartAttested,
    /// An operator ended the run.
    Resolved,
    /// Evidence came that contradicts the settlement. The settlement stands; this must be looked into.
    Contradicted,
}

impl EventKind {
    /// Its stable word, as in the public interface.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Interlocked => "INTERLOCKED",
            Self::Refused => "REFUSED",
            Self::Attached => "ATTACHED",
            Self::Exchanged => "EXCHANGED",
            Self::Attested => "ATTESTED",
            Self::Observed => "OBSERVED",
            Self::Unresolved => "UNRESOLVED",
            Self::Applied => "APPLIED",
            Self::NotApplied => "NOT_APPLIED",
            Self::Superseded => "SUPERSEDED",
            Self::QuarantineBegan => "QUARANTINE_BEGAN",
            Self::QuarantineEnded => "QUARANTINE_ENDED",
            Self::Verified => "VERIFIED",
            Self::Contradicted => "CONTRADICTED",
            Self::StartApproved => "START_APPROVED",
            Self::StartExchanged => "START_EXCHANGED",
            Self::StartAttested => "START_ATTESTED",
            Self::Resolved => "RESOLVED",
        }
    }
}

/// One decision about one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The request that it answers.
    pub request: Request,
    /// The canonical target.
    pub target: Target,
    /// The decision's place and time.
    pub opened: Moment,
    /// The container as it was, unless the request was refused before a look.
    pub baseline: Option<Baseline>,
    /// What the caller expected.
    pub expect: Option<Expectation>,
    /// The interlock; a refused run never had one.
    pub interlock: Option<Interlock>,
    /// Where it stands.
    pub status: Status,
    /// What the wire showed, as far as known.
    pub exchange: Option<Exchange>,
    /// What the journal says, as far as asked.
    pub word: Option<JournalWord>,
    /// What the proposer said, if it never handed the run on.
    pub never_handed_on: Option<NotWritten>,
    /// The newest look at the container.
    pub observation: Option<Observation>,
    /// Set once the claim was settled without a known end of the exchange.
    pub quarantine: Option<Quarantine>,
    /// Whether the container became well.
    pub verification: Verification,
    /// Why it did not, or why nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwell: Option<Reason>,
    /// What a refused request was for. That of any other run is its interlock's.
    #[serde(default, skip_serializing_if = "Diagnosis::is_the_callers")]
    pub refused_for: Diagnosis,
    /// The starts that were approved since, oldest first. Left out of the stored form while there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<Start>,
    /// The history, oldest first.
    pub events: Vec<Event>,
}

impl Run {
    pub(super) fn new(id: RunId, request: Request, target: Target, opened: Moment, status: Status) -> Self {
        Self {
            id,
            request,
            target,
            opened,
            baseline: None,
            expect: None,
            interlock: None,
            status,
            exchange: None,
            word: None,
            never_handed_on: None,
            observation: None,
            quarantine: None,
            verification: Verification::NotStarted,
            unwell: None,
            refused_for: Diagnosis::Callers,
            starts: Vec::new(),
            events: Vec::new(),
        }
    }

    /// What is claimed about the effect.
    #[must_use]
    pub fn disposition(&self) -> Disposition {
        match self.status {
            Status::Applied { .. } => Disposition::Applied,
            Status::Refused { .. } | Status::NotApplied { .. } => Disposition::NotApplied,
            Status::Interlocked { .. }
            | Status::Unresolved { .. }
            | Status::Superseded { .. }
            | Status::OperatorResolved { .. } => Disposition::Uncertain,
        }
    }

    /// True while its interlock is in force.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.status, Status::Interlocked { .. } | Status::Unresolved { .. })
    }

    /// True while its target stays closed after the settlement.
    #[must_use]
    pub fn is_quarantined(&self, clock: ClusterTime) -> bool {
        self.quarantine.is_some_and(|q| !q.ended && clock < q.until)
    }

    /// Why it is refused or uncertain.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        match &self.status {
            Status::Refused { reasons }
            | Status::Interlocked { reasons }
            | Status::Unresolved { reasons } => reasons,
            Status::Applied { .. }
            | Status::NotApplied { .. }
            | Status::Superseded { .. }
            | Status::OperatorResolved { .. } => &[],
        }
    }

    /// Every reason that stands at `clock`: why it is refused or uncertain, why its target is closed although it
    /// is settled, and why its container did not become well.
    #[must_use]
    pub fn reasons_at(&self, clock: ClusterTime) -> Vec<Reason> {
        // A refusal is final, and so are its reasons.
        let stands = |reason: &&Reason| !self.is_open() || reason.until.is_none_or(|until| clock < until);
        let own = self.reasons().iter().filter(stands).cloned();
        own.chain(self.quarantine_reason(clock)).chain(self.unwell.clone()).collect()
    }

    /// What it was asked for.
    #[must_use]
    pub fn diagnosis(&self) -> Diagnosis {
        self.interlock.as_ref().map_or(self.refused_for, |interlock| interlock.diagnosis)
    }

    /// When the last of its exchanges must have ended, one way or the other.
    pub(super) fn last_deadline(&self, interlock: &Interlock) -> ClusterTime {
        self.starts.iter().map(|start| start.deadline).fold(interlock.deadline, ClusterTime::max)
    }

    /// When the last of its exchanges must have ended, while it is open.
    #[must_use]
    pub fn deadline(&self) -> Option<ClusterTime> {
        let interlock = self.interlock.as_ref().filter(|_| self.is_open())?;
        Some(self.last_deadline(interlock))
    }

    /// Why the target stays closed after the settlement, while it does.
    #[must_use]
    pub fn quarantine_reason(&self, clock: ClusterTime) -> Option<Reason> {
        let quarantine = self.quarantine.filter(|_| self.is_quarantined(clock))?;
        let detail = "the exchange is not known to have ended";
        Some(Reason::until(ReasonCode::Quarantined, detail, self.quarantine_began()?, quarantine.until))
    }

    /// Since when its target is closed although it is settled.
    pub(super) fn quarantine_began(&self) -> Option<WallTime> {
        let began = self.events.iter().rev().find(|event| event.kind == EventKind::QuarantineBegan)?;
        Some(began.at.wall)
    }

    /// True if nothing that was sent for it, or may have been, can still take effect.
    #[must_use]
    pub fn exchanges_have_ended(&self) -> bool {
        (self.is_attested_unsent() || self.exchange.as_ref().is_some_and(Exchange::has_ended))
            && self.starts.iter().all(Start::has_ended)
    }

    /// True if somebody who can know has said that its restart was not sent and never will be.
    fn is_attested_unsent(&self) -> bool {
        self.never_handed_on.is_some()
            || matches!(self.word, Some(JournalWord::NoIntent | JournalWord::NotSent))
    }

    /// The start that is outstanding, if one is.
    #[must_use]
    pub fn outstanding_start(&self, clock: ClusterTime) -> Option<&Start> {
        self.starts.iter().find(|start| start.is_outstanding(clock))
    }

    /// One of its starts.
    #[must_use]
    pub fn start(&self, id: &RunId) -> Option<&Start> {
        self.starts.iter().find(|start| start.id == *id)
    }

    /// What is on record of its restart, to be added to. Under the first rules (`level`) only the settlement
    /// itself stood against bytes that are reported later.
    pub(super) fn facts<'a>(&'a mut self, interlock: &'a Interlock, level: u32) -> OrderFacts<'a> {
        let proven_unsent =
            matches!(self.status, Status::NotApplied { .. }) || (level >= 2 && self.is_attested_unsent());
        OrderFacts {
            proposer: &interlock.proposer,
            dispatcher: &interlock.dispatcher,
            status: self.status.word(),
            proven_unsent,
            rules: level,
            exchange: &mut self.exchange,
            word: &mut self.word,
            never_handed_on: &mut self.never_handed_on,
        }
    }

    /// How often something of this kind happened.
    #[must_use]
    pub fn times(&self, kind: EventKind) -> u64 {
        let of_kind = self.events.iter().filter(|event| event.kind == kind);
        of_kind.fold(0, |times, event| times.saturating_add(event.times))
    }

    /// The cluster clock at its newest event.
    pub(super) fn changed_at(&self) -> ClusterTime {
        self.events.last().map_or(self.opened.clock, |event| event.at.clock)
    }

    /// The index of the newest event, which is when it last changed.
    #[must_use]
    pub fn changed(&self) -> LogIndex {
        self.events.last().map_or(self.opened.index, |event| event.at.index)
    }
}
