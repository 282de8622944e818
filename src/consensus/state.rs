//! The applied state, as the rest of the process sees it.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::watch;

use super::clock::ClockPair;
use crate::env::Clock;
use crate::ledger::{Applied, ApplyError, EntryPosition, Ledger, Stamped};
use crate::model::{ClusterTime, LogIndex, NodeId};

/// The ledger and its clock. Raft's state machine writes it; everyone reads it.
pub(super) struct State {
    node: NodeId,
    clock: Arc<dyn Clock>,
    held: RwLock<Held>,
    applied: watch::Sender<LogIndex>,
}

/// Replaced and read together.
struct Held {
    ledger: Ledger,
    pair: ClockPair,
}

impl State {
    pub(super) fn new(node: NodeId, clock: Arc<dyn Clock>, ledger: Ledger, applied: LogIndex) -> Self {
        let pair = ClockPair::take(ledger.clock(), clock.monotonic_ms());
        let held = RwLock::new(Held { ledger, pair });
        Self { node, clock, held, applied: watch::Sender::new(applied) }
    }

    pub(super) fn read<T>(&self, f: impl FnOnce(&Ledger) -> T) -> T {
        f(&self.held.read().unwrap_or_else(PoisonError::into_inner).ledger)
    }

    pub(super) fn cluster_time(&self) -> ClusterTime {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.pair.estimate(self.clock.monotonic_ms())
    }

    pub(super) fn applied(&self) -> watch::Receiver<LogIndex> {
        self.applied.subscribe()
    }

    /// Applies one command. What changed is to be stored before [`State::moved`] is called.
    pub(super) fn apply(&self, position: EntryPosition, stamped: Stamped) -> Result<Applied, ApplyError> {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        let own = stamped.node == self.node;
        let applied = held.ledger.apply(position, stamped)?;
        let ledger_clock = held.ledger.clock();
        held.pair.applied(ledger_clock, own, self.clock.monotonic_ms());
        Ok(applied)
    }

    /// Replaces everything by what a snapshot holds.
    pub(super) fn replace(&self, ledger: Ledger) {
        let pair = ClockPair::take(ledger.clock(), self.clock.monotonic_ms());
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = Held { ledger, pair };
    }

    /// Tells everyone who waits that the state is now that of `index`.
    pub(super) fn moved(&self, index: LogIndex) {
        self.applied.send_replace(index);
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "State(node {}, applied {:?})", self.node, *self.applied.borrow())
    }
}
