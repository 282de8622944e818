//! The cluster clock, as one node reckons it between two entries.

use crate::model::ClusterTime;

/// The ledger's clock, and this machine's `CLOCK_MONOTONIC` at the moment when that was taken. The two are
/// only ever replaced together: a new ledger clock with an old monotonic time would count the same stretch
/// of time twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClockPair {
    ledger: ClusterTime,
    monotonic_ms: u64,
}

impl ClockPair {
    /// Begins anew: when state is loaded or a snapshot installed.
    pub(super) fn take(ledger: ClusterTime, monotonic_ms: u64) -> Self {
        Self { ledger, monotonic_ms }
    }

    /// The cluster clock now: the ledger's, plus what has elapsed since.
    pub(super) fn estimate(&self, monotonic_ms: u64) -> ClusterTime {
        self.ledger.after_ms(monotonic_ms.saturating_sub(self.monotonic_ms))
    }

    /// Takes note of an applied entry that carried a time. `ledger` is the ledger's clock after it.
    ///
    /// Another node's entry replaces the pair. This node's own entry was stamped from this very pair some
    /// time ago; replacing the pair by it would lose the time that the commit took, at every entry, and a
    /// busy leader's clock would all but stand still. So it replaces the pair only if it is ahead.
    pub(super) fn applied(&mut self, ledger: ClusterTime, own: bool, monotonic_ms: u64) {
        if !own || ledger > self.estimate(monotonic_ms) {
            *self = Self::take(ledger, monotonic_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_the_ledgers_clock_and_what_elapsed_since() {
        let pair = ClockPair::take(ClusterTime(1_000), 50_000);
        assert_eq!(pair.estimate(50_000), ClusterTime(1_000));
        assert_eq!(pair.estimate(50_700), ClusterTime(1_700));
        assert_eq!(pair.estimate(49_000), ClusterTime(1_000), "a clock that lies never takes time back");
    }

    #[test]
    fn an_hour_cut_off_is_counted_once_however_the_news_arrives() {
        // A follower is cut off for an hour while the cluster's clock goes on.
        let cut_off = ClockPair::take(ClusterTime(1_000), 0);
        let hour = 3_600_000;
        assert_eq!(cut_off.estimate(hour), ClusterTime(1_000 + hour));
        // It hears of the hour by another node's entry, or by a snapshot: the same instant either way.
        let mut by_entry = cut_off;
        by_entry.applied(ClusterTime(1_000 + hour), false, hour);
        let by_snapshot = ClockPair::take(ClusterTime(1_000 + hour), hour);
        assert_eq!(by_entry, by_snapshot);
        assert_eq!(by_entry.estimate(hour + 5), ClusterTime(1_000 + hour + 5));
    }

    #[test]
    fn a_leaders_own_entries_do_not_slow_its_clock_down() {
        let mut pair = ClockPair::take(ClusterTime(0), 0);
        // 10,000 entries, one each millisecond, each applied 5 ms after it was stamped.
        for now in 5..10_005 {
            let stamped = pair.estimate(now - 5);
            pair.applied(stamped, true, now);
        }
        assert_eq!(pair.estimate(10_004), ClusterTime(10_004));
    }

    #[test]
    fn an_entry_of_this_nodes_earlier_life_moves_the_clock_on() {
        let mut pair = ClockPair::take(ClusterTime(100), 7);
        pair.applied(ClusterTime(900), true, 8);
        assert_eq!(pair.estimate(10), ClusterTime(902));
    }
}
