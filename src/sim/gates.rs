//! Named gates at which requests wait until the script's owner releases them.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use super::wire::Hold;

#[derive(Debug, Clone, Copy, Default)]
struct Gate {
    open: bool,
    reached: u64,
}

/// All gates by name. A released gate stays open, so a release is never lost by coming first.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    by_name: Mutex<BTreeMap<String, watch::Sender<Gate>>>,
}

impl Gates {
    fn gate(&self, name: &str) -> watch::Sender<Gate> {
        let mut gates = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        gates.entry(name.to_owned()).or_default().clone()
    }

    /// Lets everything pass that waits at `name` now or later.
    pub(crate) fn release(&self, name: &str) {
        self.gate(name).send_modify(|gate| gate.open = true);
    }

    /// Returns once at least `count` requests have come to the gate `name`.
    pub(crate) async fn reached(&self, name: &str, count: u64) {
        let gate = self.gate(name);
        // The sender is alive in this scope, so the only outcome is that the condition holds.
        let _ = gate.subscribe().wait_for(|gate| gate.reached >= count).await;
    }

    /// Waits as `hold` says.
    pub(crate) async fn pass(&self, hold: &Hold) {
        match hold {
            Hold::Ms(ms) => tokio::time::sleep(Duration::from_millis(*ms)).await,
            Hold::Until(name) => {
                let gate = self.gate(name);
                gate.send_modify(|gate| gate.reached += 1);
                let _ = gate.subscribe().wait_for(|gate| gate.open).await;
            }
        }
    }

    /// Each gate's name, whether it is open, and how many requests came to it.
    pub(crate) fn list(&self) -> Vec<(String, bool, u64)> {
        let gates = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        gates
            .iter()
            .map(|(name, gate)| {
                let gate = *gate.borrow();
                (name.clone(), gate.open, gate.reached)
            })
            .collect()
    }
}
