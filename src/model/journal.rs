//! What a dispatcher's journal says of a run.

use serde::{Deserialize, Serialize};

use super::ids::JournalId;

/// A point in one journal. A journal that is another, or behind this point, proves nothing about what
/// happened after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JournalPosition {
    /// Which journal.
    pub journal: JournalId,
    /// How many records it had durably written.
    pub sequence: u64,
}

/// What is known of a run from the journal that its interlock names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum JournalWord {
    /// The dispatcher durably revoked the run, and has no intent for it: nothing was sent and nothing will be.
    NoIntent,
    /// An intent stands: the request may have been sent.
    Intent,
    /// The write gate was closed before the first write call, or there never was a connection: nothing was sent,
    /// and nothing will be.
    NotSent,
    /// The journal could not be asked, or what answered is not the journal that the interlock names.
    Unreachable {
        /// Why.
        detail: String,
    },
}
