//! One line in the log for each thing that changed in a run.

use std::sync::Arc;

use tokio::sync::watch;

use super::shared::Shared;
use crate::ledger::{Event, EventKind, Verification};
use crate::model::{LogIndex, RunId, Target};

/// Tells what changes from now on, until `stop` says so. What changed before was told by the process that saw
/// it.
pub(super) async fn narrate(shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let mut applied = shared.consensus.applied();
    let mut told = *applied.borrow_and_update();
    loop {
        tokio::select! {
            changed = applied.changed() => if changed.is_err() { return },
            _ = stop.wait_for(|stop| *stop) => return,
        }
        // The ledger may be further by now than this says.
        let now = *applied.borrow_and_update();
        for (run, target, event, verification) in news(&shared, told) {
            tell(&run, &target, &event, verification);
            told = event.at.index;
        }
        told = told.max(now);
    }
}

/// Every event after `told`, in order.
fn news(shared: &Shared, told: LogIndex) -> Vec<(RunId, Target, Event, Verification)> {
    let mut news: Vec<_> = shared.consensus.read(|ledger| {
        let changed = ledger.runs_changed_after(told);
        changed
            .flat_map(|run| {
                let new = run.events.iter().filter(|event| event.at.index > told);
                new.map(|event| (run.id.clone(), run.target.clone(), event.clone(), run.verification))
            })
            .collect()
    });
    news.sort_by_key(|(_, _, event, _)| event.at.index);
    news
}

fn tell(run: &RunId, target: &Target, event: &Event, verification: Verification) {
    let (index, term, what) = (event.at.index, event.at.term, word(event.kind, verification));
    match event.kind {
        EventKind::Contradicted => {
            tracing::error!(%run, %target, %term, %index, "{what}: {}", event.detail);
        }
        _ => tracing::info!(%run, %target, %term, %index, "{what}: {}", event.detail),
    }
}

/// The end of verification is told by what it came to: `VERIFIED` reads as if all were well.
fn word(kind: EventKind, verification: Verification) -> &'static str {
    match (kind, verification) {
        (EventKind::Verified, Verification::Recovered) => "RECOVERED",
        (EventKind::Verified, Verification::NotRecovered) => "NOT_RECOVERED",
        (EventKind::Verified, Verification::Unverified) => "UNVERIFIED",
        _ => kind.word(),
    }
}
