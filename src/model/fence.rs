//! The fence: which authority, and which decision within it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::ClusterId;

/// A Raft term. A term has one leader, so the term alone is the authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Term(pub u64);

/// A place in the Raft log. It orders the interlocks within a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogIndex(pub u64);

/// Cluster, term and log index of the interlock that a dispatch acts for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fence {
    /// The cluster that decided.
    pub cluster: ClusterId,
    /// The authority under which it decided.
    pub term: Term,
    /// The decision.
    pub index: LogIndex,
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for LogIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "term {} index {}", self.term, self.index)
    }
}
