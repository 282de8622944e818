//! What applying a command answers.

use serde::{Deserialize, Serialize};

use super::hold::Hold;
use super::limits::InvalidLimits;
use super::reason::Reason;
use crate::model::{ClusterTime, HoldId, RunId, Term};

/// The answer to the proposer of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Outcome {
    /// A request was decided, now or when its id was seen first.
    Decided(Decision),
    /// The command was proposed in another term than the one it was committed in. Nothing changed.
    StaleTerm {
        /// The term of the proposal.
        proposed: Term,
        /// The term of the entry.
        committed: Term,
    },
    /// Evidence was recorded, or was known already.
    Recorded {
        /// True if it changed the run.
        changed: bool,
    },
    /// The command was not accepted. Nothing changed but, for a contradiction, the run's history.
    Rejected(Rejection),
    /// A share of what is remembered is full for this caller. Nothing was decided, and nothing stored.
    Exhausted(Exhausted),
    /// Whether an approved start was opened.
    StartDecided(StartDecision),
    /// A hold stands.
    Held {
        /// The hold.
        hold: Box<Hold>,
        /// True if it stood before: its id was known.
        repeated: bool,
    },
    /// This hold goes on; none, if it does not stand any more.
    Renewed(Option<Box<Hold>>),
    /// These holds were lifted; none, if none was meant.
    Lifted(Vec<Hold>),
    /// Done; there is nothing to tell.
    Done,
}

/// A caller's share of something that is full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exhausted {
    /// Of what.
    pub share: Share,
    /// How many the caller may have.
    pub most: u32,
    /// When there is room again.
    pub frees: ClusterTime,
    /// What the request would have been refused for, if that is known.
    pub reasons: Vec<Reason>,
}

/// What callers have a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    /// Remembered refusals.
    Refusals,
    /// Remembered attaches.
    Attaches,
}

/// Whether an approved start was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartDecision {
    /// Its id.
    pub start: RunId,
    /// Why it was refused; empty if it was opened.
    pub reasons: Vec<Reason>,
    /// True if this was answered before: the start's id was known.
    pub repeated: bool,
}

/// Why a command was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Rejection {
    /// The request id was used for another request.
    #[error("this request id was used for another request: use a new id")]
    RequestIdReused {
        /// The run that answered it.
        run: RunId,
    },
    /// The run id exists.
    #[error("run {run} exists: a run id is used once")]
    DuplicateRun {
        /// The id.
        run: RunId,
    },
    /// The run does not exist, or was refused and has no interlock.
    #[error("run {run} has no interlock")]
    NoInterlock {
        /// The id.
        run: RunId,
    },
    /// The word is not that of the process that the interlock names.
    #[error("{detail}")]
    NotItsWord {
        /// Who spoke, and who would have had to.
        detail: String,
    },
    /// It contradicts what is on record.
    #[error("{detail}")]
    Contradiction {
        /// What with what.
        detail: String,
    },
    /// The run has ended.
    #[error("run {run} is {status}: only an open run can be resolved")]
    RunSettled {
        /// The id.
        run: RunId,
        /// Where it stands, in the public word.
        status: String,
    },
    /// The dispatcher has not acknowledged that it sends nothing more.
    #[error(
        "run {run}: its dispatcher has not acknowledged that nothing more is sent, so that the restart may still \
         land; wait until it answers, or accept that (accept_late_post), which closes the target for a time"
    )]
    MayStillLand {
        /// The id.
        run: RunId,
    },
    /// The hold's id was used for another hold.
    #[error("hold id {hold} was used for another hold: use a new id")]
    HoldIdReused {
        /// The id.
        hold: HoldId,
    },
    /// The start's id was used for another start.
    #[error("start id {start} was used for another start: use a new id")]
    StartIdReused {
        /// The id.
        start: RunId,
    },
    /// The rules in force do not know the command yet.
    #[error(
        "this needs rules level {needed}, and {in_force} is in force: upgrade every node, or wait a moment"
    )]
    RulesTooOld {
        /// The level that it needs.
        needed: u32,
        /// The level in force.
        in_force: u32,
    },
    /// A limit breaks a rule.
    #[error(transparent)]
    InvalidLimit(InvalidLimits),
    /// It breaks a rule of its own.
    #[error("{detail}")]
    Invalid {
        /// Which.
        detail: String,
    },
}

/// How a request was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// How.
    pub kind: DecisionKind,
    /// The run that answers it: its own, or the open one that it attached to.
    pub run: RunId,
    /// What of the request an attach leaves aside, one line each.
    pub ignored: Vec<String>,
    /// True if this answer was given before: the request id was known.
    pub repeated: bool,
}

/// The three answers to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionKind {
    /// An interlock was opened for it.
    Opened,
    /// An open interlock stands for the same container or target.
    Attached,
    /// No.
    Refused,
}
