//! Retention: what has ended is forgotten by count and age. What is open, quarantined or watched never is
//! (invariants 6 and 9).

use super::apply::Ledger;
use super::attempts::AttemptKey;
use super::entry::Entry;
use super::outcome::Outcome;
use super::run::Run;
use super::status::Verification;
use crate::model::{ClusterTime, Hole, RunId};

/// How many records one command forgets at most: apply stays short.
const AT_ONCE: usize = 1_000;

impl Ledger {
    /// True if a [`Command::Prune`](super::Command::Prune) would forget anything.
    #[must_use]
    pub fn has_something_to_prune(&self) -> bool {
        let clock = self.clock();
        !self.ended_beyond(clock, 1).is_empty()
            || !self.memory().forgettable(clock, self.limits(), 1).is_empty()
            || self.attempt_accounts().any(|account| !account.matters(clock, self.limits()))
            || self.holds().any(|hold| !hold.stands(clock))
    }

    /// Forgets what has ended, oldest first.
    pub(super) fn prune(&mut self, entry: &Entry) -> Outcome {
        let clock = entry.clock;
        for run in self.ended_beyond(clock, AT_ONCE) {
            self.remove_run(&run);
        }
        for request in self.memory().forgettable(clock, self.limits(), AT_ONCE) {
            self.remove_request(&request);
        }
        let spent: Vec<AttemptKey> = self
            .attempt_accounts()
            .filter(|account| !account.matters(clock, self.limits()))
            .map(|account| account.key.clone())
            .take(AT_ONCE)
            .collect();
        for key in &spent {
            self.remove_attempts(key);
        }
        let over: Vec<_> = self.holds().filter(|hold| !hold.stands(clock)).cloned().collect();
        for hold in &over {
            self.remove_hold(hold);
        }
        Outcome::Done
    }

    /// The runs that have ended and are too many or too old, the longest unchanged first. A run's age counts from
    /// its newest event: no answer to a request is younger than that, and it is kept for as long as they must be.
    fn ended_beyond(&self, clock: ClusterTime, most: usize) -> Vec<RunId> {
        let limits = self.limits();
        let surplus = self.ended_runs_count().saturating_sub(limits.ended_runs as usize);
        let ended = self
            .runs_longest_unchanged_first()
            .filter(|run| has_ended(run) || self.holes().open(Hole::PruneOpenRuns));
        ended
            .enumerate()
            .take_while(|(at, run)| {
                let age_ms = clock.since_ms(run.changed_at());
                let unwanted = *at < surplus || age_ms >= limits.ended_runs_ms;
                unwanted && age_ms >= limits.request_memory_ms
            })
            .take(most)
            .map(|(_, run)| run.id.clone())
            .collect()
    }
}

/// True if nothing that is known of the run can change any more, and nothing waits for it.
fn has_ended(run: &Run) -> bool {
    let quarantined = run.quarantine.is_some_and(|quarantine| !quarantine.ended);
    !run.is_open() && !quarantined && !matches!(run.verification, Verification::Pending { .. })
}
