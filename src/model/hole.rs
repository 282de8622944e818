//! Named holes: each takes one guard out, so that a test can show that the guard is what holds.
//!
//! They exist only with the feature `failpoints`. Without it [`Holes`] is empty, and `open` is a constant.

use std::fmt;
use std::str::FromStr;

/// One guard that can be taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hole {
    /// Invariant 1: dispatch before the interlock is committed.
    DispatchBeforeCommit,
    /// Invariant 2: the dispatcher forgets the highest index that it acted for.
    ForgetIndex,
    /// Invariant 3: the container id is left out of the match for open interlocks.
    MatchByTargetAlone,
    /// Invariant 2: a request whose reply was lost goes out once more, over another connection.
    PostIsRetried,
    /// Invariant 4: a lost reply is read as "not applied".
    TimeoutIsNotApplied,
    /// Invariant 4: a gate that was closed before the first write call proves nothing.
    ClosedGateIsUncertain,
    /// Invariant 4: the first write call counts only once it took bytes.
    WriteIsCountedLate,
    /// Invariant 4: a gate through which bytes passed can still be closed.
    WrittenCanBeClosed,
    /// Invariant 4: a 400 or 404 over TCP is proof as well.
    TcpRefusalProves,
    /// Invariant 4: a 400 or 404 is proof whoever wrote it.
    AnyonesRefusalProves,
    /// Invariant 4: any answer of the engine itself is proof.
    AnyStatusProves,
    /// Invariant 4: an absent intent counts without asking which journal says so.
    AnyJournalProves,
    /// Invariant 5: a 204 alone settles a run as applied.
    ReplyIsEvidence,
    /// Invariant 5: an equal `StartedAt` counts as later.
    EqualIsLater,
    /// Invariant 6: what has not ended is pruned as well.
    PruneOpenRuns,
    /// Invariant 7: admission opens before the replay.
    AdmitBeforeReplay,
    /// Invariant 8: a fact whose proposal had no answer counts as committed.
    FailedSettlementSettles,
    /// Invariant 9: attempts are charged to the name alone.
    ChargeNameAlone,
    /// Invariant 10: the time to connect is taken out of the time for the work.
    DeadlineFromConnect,
    /// Invariant 10: only the head of a reply must come by the deadline.
    BodyHasNoDeadline,
}

const NAMES: &[(Hole, &str)] = &[
    (Hole::DispatchBeforeCommit, "dispatch-before-commit"),
    (Hole::ForgetIndex, "forget-index"),
    (Hole::MatchByTargetAlone, "match-by-target-alone"),
    (Hole::PostIsRetried, "post-is-retried"),
    (Hole::TimeoutIsNotApplied, "timeout-is-not-applied"),
    (Hole::ClosedGateIsUncertain, "closed-gate-is-uncertain"),
    (Hole::WriteIsCountedLate, "write-is-counted-late"),
    (Hole::WrittenCanBeClosed, "written-can-be-closed"),
    (Hole::TcpRefusalProves, "tcp-refusal-proves"),
    (Hole::AnyonesRefusalProves, "anyones-refusal-proves"),
    (Hole::AnyStatusProves, "any-status-proves"),
    (Hole::AnyJournalProves, "any-journal-proves"),
    (Hole::ReplyIsEvidence, "reply-is-evidence"),
    (Hole::EqualIsLater, "equal-is-later"),
    (Hole::PruneOpenRuns, "prune-open-runs"),
    (Hole::AdmitBeforeReplay, "admit-before-replay"),
    (Hole::FailedSettlementSettles, "failed-settlement-settles"),
    (Hole::ChargeNameAlone, "charge-name-alone"),
    (Hole::DeadlineFromConnect, "deadline-from-connect"),
    (Hole::BodyHasNoDeadline, "body-has-no-deadline"),
];

/// A hole that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no hole {0:?}")]
pub struct UnknownHole(pub String);

impl Hole {
    /// Every hole there is.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(hole, _)| *hole)
    }
}

impl fmt::Display for Hole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(hole, _)| hole == self).map_or("?", |(_, name)| name);
        f.write_str(name)
    }
}

impl FromStr for Hole {
    type Err = UnknownHole;
    fn from_str(text: &str) -> Result<Self, UnknownHole> {
        NAMES
            .iter()
            .find(|(_, name)| *name == text)
            .map(|(hole, _)| *hole)
            .ok_or_else(|| UnknownHole(text.to_owned()))
    }
}

/// The holes that are open in this process: none, except in a test that asked for one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Holes {
    #[cfg(feature = "failpoints")]
    open: Option<Hole>,
}

impl Holes {
    /// No hole: every guard is in place.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            #[cfg(feature = "failpoints")]
            open: None,
        }
    }

    /// One guard taken out.
    #[cfg(feature = "failpoints")]
    #[must_use]
    pub const fn only(hole: Hole) -> Self {
        Self { open: Some(hole) }
    }

    /// True if this guard was taken out.
    #[must_use]
    pub fn open(self, hole: Hole) -> bool {
        #[cfg(feature = "failpoints")]
        let open = self.open == Some(hole);
        #[cfg(not(feature = "failpoints"))]
        let open = {
            let _ = hole;
            false
        };
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hole_has_a_name_that_reads_back() {
        for hole in Hole::all() {
            assert_eq!(hole.to_string().parse(), Ok(hole));
        }
        assert!("no-such-hole".parse::<Hole>().is_err());
    }
}
