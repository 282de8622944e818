//! Where and when something was decided.

use serde::{Deserialize, Serialize};

use crate::model::{ClusterTime, LogIndex, NodeId, Term, WallTime};

/// Where and when something was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moment {
    /// The entry's place in the log.
    pub index: LogIndex,
    /// The entry's term.
    pub term: Term,
    /// The node that proposed it.
    pub node: NodeId,
    /// The cluster clock when it was applied.
    pub clock: ClusterTime,
    /// The proposer's wall clock.
    pub wall: WallTime,
}
