//! Instants of two clocks that never mix.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Milliseconds on the cluster clock, which only Raft moves: it never steps back, and time in which no
/// leader ran is not counted. Every window, deadline and backoff runs on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterTime(pub u64);

/// Milliseconds since 1970-01-01T00:00:00Z on some machine's wall clock. For people; it decides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WallTime(pub u64);

impl ClusterTime {
    /// This instant moved on by `ms`; it stops at the end of time instead of wrapping.
    #[must_use]
    pub fn after_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// How long `self` lies after `earlier`; 0 if it does not.
    #[must_use]
    pub fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for ClusterTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}
