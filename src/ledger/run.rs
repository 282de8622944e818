//! A run: one decision about one target, and its history.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::command::{Baseline, DispatcherRef, Expectation, Proposer, Request};
use super::diagnosis::Diagnosis;
use super::moment::Moment;
use super::order::OrderFacts;
use super::reason::{Reason, ReasonCode};
use super::resolution::Resolution;
use super::start::Start;
use crate::model::{
    ClusterTime, ContainerId, Exchange, Fence, Grace, Incarnation, JournalWord, LogIndex, NotWritten,
    Observation, RunId, Target, WallTime,
};

/// What is claimed about a run's effect. `Uncertain` is the absence of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// The container was started again.
    Applied,
    /// This run's request had no effect and never will.
    NotApplied,
    /// No claim.
    Uncertain,
}

/// A run's status, with what it needs to stand on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Admission said no; there never was an interlock.
    Refused {
        /// Why. Never empty.
        reasons: Vec<Reason>,
    },
    /// Committed; nobody knows yet whether the request left.
    Interlocked {
        /// Why that is uncertain.
        reasons: Vec<Reason>,
    },
    /// The request may have left, and its effect is not known.
    Unresolved {
        /// Why that is uncertain. Never empty.
        reasons: Vec<Reason>,
    },
    /// The same container on the same engine shows a strictly later start.
    Applied {
        /// The life that it shows.
        observed: Incarnation,
        /// What stands behind it.
        evidence: Evidence,
    },
    /// A proof that this run's request had no effect and never will.
    NotApplied {
        /// The proof.
        proof: Proof,
    },
    /// The engine, proven to be one, answers 404 for the full old id.
    Superseded {
        /// What is there instead.
        by: SupersededBy,
    },
    /// An operator ended it. No claim is made about the effect.
    OperatorResolved {
        /// How.
        resolution: Resolution,
    },
}

/// What stands behind `applied`, beside the later `StartedAt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// The engine's own success as well.
    StartedAtAndReply,
    /// No whole reply of success: the start was seen, its cause was not.
    StartedAtOnly,
    /// The journal could not be asked whether anything was sent: attribution unknown.
    JournalUnreachable,
    /// It was seen after an approved start that may have done it: by that, not by the restart.
    ByFollowUpStart,
}

/// A proof that a run's request had no effect and never will.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// (a) The dispatcher's gate was closed before the first write call.
    GateClosed(NotWritten),
    /// (b) The journal has no intent, after the run was revoked there.
    NoIntent,
    /// (b) The proposer never began to hand the run on, and never will.
    NeverHandedOn(NotWritten),
    /// (c) The engine itself looked and refused, over a unix socket.
    EngineRefused {
        /// 400 or 404.
        status: u16,
        /// The engine's text.
        message: String,
    },
}

/// What is there instead of the old container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SupersededBy {
    /// Another container answers to the target (`incarnation-replaced`).
    Replaced(ContainerId),
    /// None does (`incarnation-removed`).
    Removed,
}

/// After `APPLIED`: did the container become well? Applied is not recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verification {
    /// Not applied, or not yet.
    NotStarted,
    /// Watched until `until`.
    Pending {
        /// The end of the verify window.
        until: ClusterTime,
    },
    /// It became healthy.
    Recovered,
    /// It did not within the window.
    NotRecovered,
    /// It has no health check.
    Unverified,
}

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
        self.events.iter().filter(|event| event.kind == kind).map(|event| event.times).sum()
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

impl Status {
    /// The status word, as in the public interface.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Refused { .. } => "REFUSED",
            Self::Interlocked { .. } => "INTERLOCKED",
            Self::Unresolved { .. } => "UNRESOLVED",
            Self::Applied { .. } => "APPLIED",
            Self::NotApplied { .. } => "NOT_APPLIED",
            Self::Superseded { .. } => "SUPERSEDED",
            Self::OperatorResolved { .. } => "OPERATOR_RESOLVED",
        }
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GateClosed(why) => write!(f, "no byte was written: {}", why.detail),
            Self::NoIntent => f.write_str("the journal has no intent, and the run is revoked there"),
            Self::NeverHandedOn(why) => write!(f, "it was never handed to the dispatcher: {}", why.detail),
            Self::EngineRefused { status, message } => {
                write!(f, "the engine refused it with {status}: {message}")
            }
        }
    }
}

impl fmt::Display for SupersededBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replaced(id) => write!(f, "incarnation-replaced: {id} answers to the target"),
            Self::Removed => f.write_str("incarnation-removed"),
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StartedAtAndReply => "a later StartedAt and the engine's reply",
            Self::StartedAtOnly => "StartedAt only, no response",
            Self::JournalUnreachable => "StartedAt only, journal unreachable: attribution unknown",
            Self::ByFollowUpStart => "a later StartedAt, by-follow-up-start",
        })
    }
}
