//! The journal's records, as they are stored. JSON, with no field that is not named here.

use serde::{Deserialize, Serialize};

use crate::model::{ClusterId, ContainerId, Exchange, Fence, JournalId, JournalWord, Term};

/// What there is one of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) journal: JournalId,
    pub(super) cluster: ClusterId,
    /// How many changes were written.
    pub(super) sequence: u64,
    /// The highest term accepted.
    pub(super) term: Term,
}

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunRecord {
    pub(super) fence: Fence,
    pub(super) container_id: ContainerId,
    /// "I am about to send."
    pub(super) intent: bool,
    /// It will never be sent, if it was not.
    pub(super) revoked: bool,
    /// How its exchange ended, once it did.
    pub(super) end: Option<Exchange>,
}

impl RunRecord {
    pub(super) fn word(&self) -> JournalWord {
        match (&self.end, self.intent) {
            (Some(Exchange::NeverWritten(_)), _) => JournalWord::NotSent,
            (_, true) => JournalWord::Intent,
            (_, false) => JournalWord::NoIntent,
        }
    }
}
