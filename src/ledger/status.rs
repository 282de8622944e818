//! Where a run stands, and what each claim stands on.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::reason::Reason;
use super::resolution::Resolution;
use crate::model::{ClusterTime, ContainerId, Incarnation, NotWritten};

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
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
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
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
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
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
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
    /// It did not within the window, or it went down again.
    NotRecovered,
    /// It has no health check, and ran to the end of the window (under the first rules nobody looked); or nobody could
    /// see it at that end.
    Unverified,
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

impl Evidence {
    /// The stable word, as in the public interface.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StartedAtAndReply => "started-at-and-reply",
            Self::StartedAtOnly => "started-at-only",
            Self::JournalUnreachable => "journal-unreachable",
            Self::ByFollowUpStart => "by-follow-up-start",
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
            Self::ByFollowUpStart => "a later StartedAt, after a start that was approved",
        })
    }
}
