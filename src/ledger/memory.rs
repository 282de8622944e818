//! The memory of requests: the same request, however often it arrives, has one answer.
//!
//! An answer is remembered for at least a day of cluster clock, and for as long as its run is kept. What
//! callers can fill at will (refusals and attaches, which no cap bounds) is bounded for each of them.

use std::collections::{BTreeMap, BTreeSet};

use super::limits::Limits;
use super::outcome::{DecisionKind, Exhausted, Share};
use super::record::Remembered;
use super::run::Run;
use super::status::Status;
use crate::model::{ClusterTime, LogIndex, RequestId, RunId};

/// What was counted for each caller, and when. Derived, never stored.
type ByCaller = BTreeMap<String, BTreeMap<LogIndex, ClusterTime>>;

/// The answers that are remembered, and ways to find them quickly.
#[derive(Debug, Default, Clone)]
pub(super) struct Memory {
    requests: BTreeMap<RequestId, Remembered>,
    of_run: BTreeMap<RunId, BTreeSet<RequestId>>,
    /// Those whose run is gone, by the place of their answer.
    orphans: BTreeMap<LogIndex, RequestId>,
    attached: ByCaller,
    refused: ByCaller,
}

impl Memory {
    pub(super) fn get(&self, id: &RequestId) -> Option<&Remembered> {
        self.requests.get(id)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Remembered> {
        self.requests.values()
    }

    pub(super) fn put(&mut self, known: Remembered) {
        if known.decision.kind == DecisionKind::Attached {
            count(&mut self.attached, &known.caller, known.at.index, known.at.clock);
        }
        self.of_run.entry(known.decision.run.clone()).or_default().insert(known.id.clone());
        self.requests.insert(known.id.clone(), known);
    }

    pub(super) fn remove(&mut self, id: &RequestId) {
        let Some(known) = self.requests.remove(id) else { return };
        self.orphans.remove(&known.at.index);
        uncount(&mut self.attached, &known.caller, known.at.index);
        if let Some(of_run) = self.of_run.get_mut(&known.decision.run) {
            of_run.remove(id);
            if of_run.is_empty() {
                self.of_run.remove(&known.decision.run);
            }
        }
    }

    /// Takes note of a run that was refused.
    pub(super) fn note_run(&mut self, run: &Run) {
        if matches!(run.status, Status::Refused { .. }) {
            count(&mut self.refused, &run.request.caller, run.opened.index, run.opened.clock);
        }
    }

    /// Takes note that a run is gone: what answered by it is remembered for its time alone from now on.
    pub(super) fn forget_run(&mut self, run: &Run) {
        uncount(&mut self.refused, &run.request.caller, run.opened.index);
        self.orphan(&run.id);
    }

    /// After all records were read: finds the requests whose run is gone.
    pub(super) fn find_orphans(&mut self, exists: impl Fn(&RunId) -> bool) {
        let gone: Vec<RunId> = self.of_run.keys().filter(|run| !exists(run)).cloned().collect();
        for run in &gone {
            self.orphan(run);
        }
    }

    fn orphan(&mut self, run: &RunId) {
        for id in self.of_run.get(run).into_iter().flatten() {
            if let Some(known) = self.requests.get(id) {
                self.orphans.insert(known.at.index, id.clone());
            }
        }
    }

    /// Requests that were answered long enough ago, and whose run is gone.
    pub(super) fn forgettable(&self, clock: ClusterTime, limits: &Limits, most: usize) -> Vec<RequestId> {
        let aged = |id: &&RequestId| {
            self.requests
                .get(*id)
                .is_some_and(|known| clock.since_ms(known.at.clock) >= limits.request_memory_ms)
        };
        self.orphans.values().take_while(aged).take(most).cloned().collect()
    }

    /// Whether a caller's share of something is full at `clock`.
    pub(super) fn full(
        &self,
        share: Share,
        caller: &str,
        clock: ClusterTime,
        limits: &Limits,
    ) -> Option<Exhausted> {
        let (counted, most) = match share {
            Share::Refusals => (&self.refused, limits.refusals_per_caller),
            Share::Attaches => (&self.attached, limits.attaches_per_caller),
        };
        let newest_first = counted.get(caller)?.values().rev();
        let mut within = newest_first.take_while(|at| clock.since_ms(**at) < limits.request_memory_ms);
        // The one whose end brings the count below the limit again.
        let frees = within.nth(most as usize - 1)?;
        Some(Exhausted { share, most, frees: frees.after_ms(limits.request_memory_ms), reasons: Vec::new() })
    }
}

fn count(counted: &mut ByCaller, caller: &str, index: LogIndex, clock: ClusterTime) {
    counted.entry(caller.to_owned()).or_default().insert(index, clock);
}

fn uncount(counted: &mut ByCaller, caller: &str, index: LogIndex) {
    if let Some(of_caller) = counted.get_mut(caller) {
        of_caller.remove(&index);
        if of_caller.is_empty() {
            counted.remove(caller);
        }
    }
}
