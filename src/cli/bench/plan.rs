//! How much of everything is done.

use std::time::Duration;

/// How much of everything is done.
#[derive(Debug)]
pub(super) struct Plan {
    /// How many ask at the same time, from one to the most.
    pub(super) requesters: Vec<usize>,
    /// How long the disk's own rate is measured each time.
    pub(super) probe: Duration,
    /// How long interlocks are committed, for each number of requesters.
    pub(super) commit_for: Duration,
    /// How often the time to the first byte is taken.
    pub(super) first_bytes: usize,
    /// How many of those before them do not count: connections and caches are new.
    pub(super) warm_up: usize,
    /// How many containers the engine has. Each request lists them all.
    pub(super) containers: usize,
    /// How long containers are recovered, for each number of requesters.
    pub(super) recover_for: Duration,
    /// How many runs are open in the large ledger.
    pub(super) open_runs: usize,
    /// How many have ended there.
    pub(super) ended_runs: usize,
}

impl Plan {
    pub(super) fn full() -> Self {
        Self {
            requesters: vec![1, 16, 64, 256],
            probe: Duration::from_secs(1),
            commit_for: Duration::from_secs(5),
            first_bytes: 1_000,
            warm_up: 100,
            containers: 256,
            recover_for: Duration::from_secs(10),
            open_runs: 1_000,
            ended_runs: 100_000,
        }
    }

    pub(super) fn quick() -> Self {
        Self {
            requesters: vec![1, 8],
            probe: Duration::from_millis(50),
            commit_for: Duration::from_millis(200),
            first_bytes: 5,
            warm_up: 1,
            containers: 8,
            recover_for: Duration::from_millis(500),
            open_runs: 5,
            ended_runs: 50,
        }
    }
}
