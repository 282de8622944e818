//! The guard: which order may still be sent, under one lock with the first write call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::order::{Action, Order};
use super::record::{Head, RunRecord};
use super::ticket::Ticket;
use crate::docker::Permit;
use crate::env::{Clock, failpoint};
use crate::model::{
    ContainerId, Exchange, Fence, Hole, Holes, JournalPosition, LogIndex, NotWritten, NotWrittenCause, RunId,
    Term,
};

/// What the journal holds, in memory.
#[derive(Debug)]
pub(super) struct GuardState {
    pub(super) head: Head,
    /// Per container, the highest interlock that was acted for or revoked. Kept for ever.
    pub(super) floors: BTreeMap<ContainerId, LogIndex>,
    pub(super) runs: BTreeMap<RunId, RunRecord>,
}

impl GuardState {
    fn floor(&self, container_id: &ContainerId) -> LogIndex {
        self.floors.get(container_id).copied().unwrap_or(LogIndex(0))
    }
}

#[derive(Debug)]
pub(super) struct Guard {
    state: Mutex<GuardState>,
    holes: Holes,
}

impl Guard {
    pub(super) fn new(state: GuardState, holes: Holes) -> Self {
        Self { state: Mutex::new(state), holes }
    }

    fn state(&self) -> MutexGuard<'_, GuardState> {
        // Every change below is complete before anything that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn head(&self) -> Head {
        self.state().head.clone()
    }

    pub(super) fn position(&self) -> JournalPosition {
        let state = self.state();
        JournalPosition { journal: state.head.journal.clone(), sequence: state.head.sequence }
    }

    pub(super) fn floor(&self, container_id: &ContainerId) -> LogIndex {
        self.state().floor(container_id)
    }

    pub(super) fn highest_floor(&self) -> LogIndex {
        self.state().floors.values().copied().max().unwrap_or(LogIndex(0))
    }

    /// The head as it is on disk now.
    pub(super) fn advance(&self, head: Head) {
        let mut state = self.state();
        state.head.sequence = head.sequence;
        state.head.term = state.head.term.max(head.term);
    }

    /// From this moment no lower term passes the gate. True if the term is new.
    pub(super) fn raise_term(&self, term: Term) -> bool {
        let mut state = self.state();
        let higher = term > state.head.term;
        state.head.term = state.head.term.max(term);
        higher
    }

    /// From this moment the run does not pass the gate. None if what was known of it is folded away: it does not
    /// pass either, but nothing more can be said.
    pub(super) fn revoke(&self, run: &RunId, fence: &Fence, container_id: &ContainerId) -> Option<RunRecord> {
        let mut state = self.state();
        if is_folded(&state, run, fence, container_id) {
            return None;
        }
        raise_floor(&mut state, container_id, fence.index);
        let record = record_of(&mut state, run, fence, container_id);
        record.revoked = true;
        Some(record.clone())
    }

    /// True if what was known of the run, if anything was, is folded away.
    pub(super) fn is_folded(&self, run: &RunId, fence: &Fence, container_id: &ContainerId) -> bool {
        is_folded(&self.state(), run, fence, container_id) && !self.holes.open(Hole::ForgetIndex)
    }

    /// The runs that came before this restart of the same container. Its interlock was not opened before theirs
    /// were settled and out of quarantine, so that nobody asks for them any more; the floor refuses them all.
    pub(super) fn before(&self, order: &Order) -> Vec<RunId> {
        // A start comes after its restart, which is open still.
        if order.action == Action::Start {
            return Vec::new();
        }
        let (container_id, index) = (&order.incarnation.container_id, order.fence.index);
        let earlier = |record: &RunRecord| record.container_id == *container_id && record.fence.index < index;
        let state = self.state();
        state.runs.iter().filter(|(_, record)| earlier(record)).map(|(run, _)| run.clone()).collect()
    }

    pub(super) fn acted_for(&self, run: &RunId) -> Option<RunRecord> {
        if self.holes.open(Hole::ForgetIndex) {
            return None;
        }
        self.state().runs.get(run).filter(|record| record.intent || record.end.is_some()).cloned()
    }

    /// The record that an intent will be, if the order may be sent.
    pub(super) fn may_intend(
        &self,
        run: &RunId,
        fence: &Fence,
        container_id: &ContainerId,
    ) -> Result<RunRecord, NotWritten> {
        let state = self.state();
        check_authority(&state, fence)?;
        if state.runs.get(run).is_some_and(|record| record.revoked) {
            let detail = "the run was revoked".to_owned();
            return Err(NotWritten { cause: NotWrittenCause::Revoked, detail });
        }
        let floor = state.floor(container_id);
        if fence.index <= floor && !self.holes.open(Hole::ForgetIndex) {
            let detail = format!("index {floor} was acted for, which is not below {}", fence.index);
            return Err(NotWritten { cause: NotWrittenCause::Fenced, detail });
        }
        Ok(RunRecord {
            fence: fence.clone(),
            container_id: container_id.clone(),
            intent: true,
            revoked: false,
            end: None,
        })
    }

    /// The intent is on disk, and what is folded away is gone from there.
    pub(super) fn intended(&self, run: &RunId, record: RunRecord, folded: &[RunId]) {
        let mut state = self.state();
        for earlier in folded {
            state.runs.remove(earlier);
        }
        raise_floor(&mut state, &record.container_id, record.fence.index);
        state.runs.insert(run.clone(), record);
    }

    /// The exchange is over. What was never written now never will be.
    pub(super) fn ended(
        &self,
        run: &RunId,
        fence: &Fence,
        container_id: &ContainerId,
        exchange: &Exchange,
    ) -> RunRecord {
        let mut state = self.state();
        raise_floor(&mut state, container_id, fence.index);
        let record = record_of(&mut state, run, fence, container_id);
        assert!(
            record.end.is_none() || self.holes.open(Hole::ForgetIndex),
            "run {run} ended twice: its first word must stand"
        );
        record.end = Some(exchange.clone());
        record.revoked |= !exchange.was_written();
        record.clone()
    }
}

fn is_folded(state: &GuardState, run: &RunId, fence: &Fence, container_id: &ContainerId) -> bool {
    fence.index < state.floor(container_id) && !state.runs.contains_key(run)
}

fn raise_floor(state: &mut GuardState, container_id: &ContainerId, index: LogIndex) {
    let floor = state.floors.entry(container_id.clone()).or_insert(index);
    *floor = (*floor).max(index);
}

fn record_of<'a>(
    state: &'a mut GuardState,
    run: &RunId,
    fence: &Fence,
    container_id: &ContainerId,
) -> &'a mut RunRecord {
    state.runs.entry(run.clone()).or_insert_with(|| RunRecord {
        fence: fence.clone(),
        container_id: container_id.clone(),
        intent: false,
        revoked: false,
        end: None,
    })
}

fn check_authority(state: &GuardState, fence: &Fence) -> Result<(), NotWritten> {
    if fence.cluster != state.head.cluster {
        let detail =
            format!("the fence is of cluster {}, this dispatcher of {}", fence.cluster, state.head.cluster);
        return Err(NotWritten { cause: NotWrittenCause::Fenced, detail });
    }
    if fence.term < state.head.term {
        let detail = format!("term {} was accepted, the fence is of term {}", state.head.term, fence.term);
        return Err(NotWritten { cause: NotWrittenCause::Fenced, detail });
    }
    Ok(())
}

/// Asked by the write gate, inside the first write call.
pub(super) struct OrderPermit {
    pub(super) guard: Arc<Guard>,
    pub(super) order: Order,
    pub(super) ticket: Ticket,
    pub(super) clock: Arc<dyn Clock>,
}

impl Permit for OrderPermit {
    fn admit(&self, write: &mut dyn FnMut()) -> Result<(), NotWritten> {
        let state = self.guard.state();
        let Order { run, fence, incarnation, .. } = &self.order;
        check_authority(&state, fence)?;
        let record = state.runs.get(run).filter(|record| record.intent);
        let Some(record) = record else {
            let detail = "the journal has no intent for this run".to_owned();
            return Err(NotWritten { cause: NotWrittenCause::Fenced, detail });
        };
        if record.revoked {
            let detail = "the run was revoked".to_owned();
            return Err(NotWritten { cause: NotWrittenCause::Revoked, detail });
        }
        let floor = state.floor(&incarnation.container_id);
        if fence.index < floor {
            let detail = format!("index {floor} was acted for since");
            return Err(NotWritten { cause: NotWrittenCause::Fenced, detail });
        }
        self.ticket.check(&self.order, self.clock.as_ref())?;
        failpoint::reach("dispatch-before-first-byte");
        write();
        failpoint::reach("dispatch-after-first-byte");
        Ok(())
    }
}
