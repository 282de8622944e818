//! What applying a command answers.

use serde::{Deserialize, Serialize};

use crate::model::{RunId, Term};

/// The answer to the proposer of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    /// Done; there is nothing to tell.
    Done,
}

/// Why a command was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
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
