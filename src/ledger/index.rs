//! Ways to find runs quickly. Derived from the runs alone, and so never stored.

use std::collections::{BTreeMap, BTreeSet};

use super::run::Run;
use super::status::Verification;
use crate::model::{ClusterTime, ContainerId, EngineId, HostName, LogIndex, RunId, Target, WallTime};

/// Derived look-ups over the runs.
#[derive(Debug, Default, Clone)]
pub(super) struct Index {
    /// The run that stands (open, or closed into quarantine) for a container.
    by_container: BTreeMap<(EngineId, ContainerId), Holder>,
    /// The run that stands for a target.
    by_target: BTreeMap<Target, Holder>,
    /// Open runs, with what every admission asks of each of them.
    open: BTreeMap<RunId, Flight>,
    /// Applied runs whose recovery is still watched.
    verifying: BTreeSet<RunId>,
    /// Runs that are settled and in quarantine, by the bound of that.
    quarantined: BTreeSet<(ClusterTime, RunId)>,
    /// The runs of approved starts.
    by_start: BTreeMap<RunId, RunId>,
    /// Runs by the index of their newest event.
    by_change: BTreeMap<LogIndex, RunId>,
    /// Runs by the index that made them.
    by_opening: BTreeMap<LogIndex, RunId>,
}

/// What the limits of restarts in flight count an open run by.
#[derive(Debug, Clone)]
pub(super) struct Flight {
    pub(super) host: HostName,
    /// Until when it is in flight.
    pub(super) deadline: Option<ClusterTime>,
    /// The entry that made it, and its wall clock.
    pub(super) opened: (LogIndex, WallTime),
    /// True if a start was ever approved for it.
    has_starts: bool,
}

impl Flight {
    fn of(run: &Run) -> Self {
        Self {
            host: run.target.host().clone(),
            deadline: run.interlock.as_ref().map(|interlock| interlock.deadline),
            opened: (run.opened.index, run.opened.wall),
            has_starts: !run.starts.is_empty(),
        }
    }
}

/// A run that holds a key, and the index that made it.
type Holder = (LogIndex, RunId);

impl Index {
    /// Takes note of a run as it is now. `before` is the index of its newest event as noted last.
    pub(super) fn note(&mut self, run: &Run, before: Option<LogIndex>) {
        if let Some(before) = before {
            self.by_change.remove(&before);
        }
        self.by_change.insert(run.changed(), run.id.clone());
        self.by_opening.insert(run.opened.index, run.id.clone());
        if run.is_open() {
            self.open.insert(run.id.clone(), Flight::of(run));
        } else {
            self.open.remove(&run.id);
        }
        set(&mut self.verifying, &run.id, matches!(run.verification, Verification::Pending { .. }));

        for start in &run.starts {
            self.by_start.insert(start.id.clone(), run.id.clone());
        }
        if let Some(quarantine) = run.quarantine {
            let entry = (quarantine.until, run.id.clone());
            if quarantine.ended {
                self.quarantined.remove(&entry);
            } else {
                self.quarantined.insert(entry);
            }
        }
        let Some(baseline) = &run.baseline else { return };
        if run.interlock.is_none() {
            return;
        }
        let stands = run.is_open() || run.quarantine.is_some_and(|q| !q.ended);
        let container = (baseline.incarnation.engine_id.clone(), baseline.incarnation.container_id.clone());
        let holder = (run.opened.index, run.id.clone());
        hold(&mut self.by_container, container, &holder, stands);
        hold(&mut self.by_target, run.target.clone(), &holder, stands);
    }

    /// Forgets a run that stands for nothing any more.
    pub(super) fn forget(&mut self, run: &Run) {
        self.by_change.remove(&run.changed());
        self.by_opening.remove(&run.opened.index);
        self.open.remove(&run.id);
        self.verifying.remove(&run.id);
        for start in &run.starts {
            self.by_start.remove(&start.id);
        }
    }

    pub(super) fn for_container(&self, engine_id: &EngineId, container_id: &ContainerId) -> Option<&RunId> {
        self.by_container.get(&(engine_id.clone(), container_id.clone())).map(|(_, run)| run)
    }

    pub(super) fn for_target(&self, target: &Target) -> Option<&RunId> {
        self.by_target.get(target).map(|(_, run)| run)
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &RunId> {
        self.open.keys()
    }

    pub(super) fn open_with_starts(&self) -> impl Iterator<Item = &RunId> {
        self.open.iter().filter(|(_, flight)| flight.has_starts).map(|(run, _)| run)
    }

    /// Every open run, as the limits count it.
    pub(super) fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.open.values()
    }

    pub(super) fn verifying(&self) -> impl Iterator<Item = &RunId> {
        self.verifying.iter()
    }

    /// Settled runs in quarantine, by the bound of that.
    pub(super) fn quarantined(&self) -> impl Iterator<Item = &(ClusterTime, RunId)> {
        self.quarantined.iter()
    }

    pub(super) fn run_of_start(&self, start: &RunId) -> Option<&RunId> {
        self.by_start.get(start)
    }

    /// Every run, those first that have not changed for longest.
    pub(super) fn longest_unchanged_first(&self) -> impl Iterator<Item = &RunId> {
        self.by_change.values()
    }

    /// How many runs are open, quarantined or watched.
    pub(super) fn not_ended_count(&self) -> usize {
        let quarantined = self.quarantined.iter().map(|(_, run)| run);
        let settled: BTreeSet<&RunId> = self.verifying.iter().chain(quarantined).collect();
        self.open.len() + settled.len()
    }

    pub(super) fn changed_after(&self, index: LogIndex) -> impl Iterator<Item = &RunId> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.by_change.range((Excluded(index), Unbounded)).map(|(_, run)| run)
    }

    pub(super) fn newest_first(&self) -> impl Iterator<Item = &RunId> {
        self.by_opening.values().rev()
    }
}

fn set(members: &mut BTreeSet<RunId>, run: &RunId, member: bool) {
    if member {
        members.insert(run.clone());
    } else {
        members.remove(run);
    }
}

/// The newest run that stands holds the key; one that no longer stands lets go of its own key only.
///
/// A quarantine that has run out by the clock still stands here until word of its end comes: its run may
/// change long after a newer one holds the key, and must not take it back.
fn hold<K: Ord>(holders: &mut BTreeMap<K, Holder>, key: K, run: &Holder, stands: bool) {
    let held = holders.get(&key);
    if stands {
        if held.is_none_or(|holder| holder.0 <= run.0) {
            holders.insert(key, run.clone());
        }
    } else if held == Some(run) {
        holders.remove(&key);
    }
}
