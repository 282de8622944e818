//! Following: looks until a run is settled and its recovery known (steps 7 to 9 of a restart).

use std::time::Duration;

use tokio::time::sleep;

use super::facts::{open_run, record};
use super::look::look_once;
use super::shared::{Deposed, HostLink, Shared};
use crate::ledger::{Command, EventKind, Run, Verification, Verify};
use crate::model::{Health, Observation, RunId, Term};

/// The pause between two looks at a container that is to become healthy.
const VERIFY_EVERY: Duration = Duration::from_secs(1);

/// Steps 7 to 9: looks, with growing pauses, until the run is settled, its quarantine is over, and its
/// recovery is known.
pub(super) async fn follow_to_the_end(shared: &Shared, term: Term, id: &RunId) -> Result<(), Deposed> {
    let limits = shared.consensus.read(|ledger| ledger.limits().clone());
    let mut pause = Duration::from_millis(limits.observe_first_ms);
    while let Some((run, _, _)) = open_run(shared, id) {
        let Some(host) = shared.host(run.target.host()) else { break };
        learn_of_the_end(shared, term, host, &run).await?;
        look_once(shared, term, host, id).await?;
        if open_run(shared, id).is_none() {
            break;
        }
        wait_for_a_reason_to_look(shared, term, id, pause).await?;
        pause = (pause * 2).min(Duration::from_millis(limits.observe_longest_ms));
    }
    verify_to_the_end(shared, term, id).await
}

/// Waits for the pause to pass, for another request to attach, or for leadership to go.
async fn wait_for_a_reason_to_look(
    shared: &Shared,
    term: Term,
    id: &RunId,
    pause: Duration,
) -> Result<(), Deposed> {
    let attached = |run: &Run| run.events.iter().filter(|event| event.kind == EventKind::Attached).count();
    let before = shared.run(id).as_ref().map(attached);
    let mut applied = shared.consensus.applied();
    let mut leadership = shared.consensus.leadership();
    let mut over = std::pin::pin!(sleep(pause));
    loop {
        if *leadership.borrow_and_update() != Some(term) {
            return Err(Deposed(term));
        }
        tokio::select! {
            () = &mut over => return Ok(()),
            changed = applied.changed() => {
                if changed.is_err() || shared.run(id).as_ref().map(attached) != before {
                    return Ok(());
                }
            }
            changed = leadership.changed() => {
                if changed.is_err() {
                    return Err(Deposed(term));
                }
            }
        }
    }
}

/// An exchange that outlived the leader that began it may have ended since: the dispatcher knows.
async fn learn_of_the_end(shared: &Shared, term: Term, host: &HostLink, run: &Run) -> Result<(), Deposed> {
    if run.exchange.is_none()
        && let Some(known) = host.dispatcher.known(&run.id)
        && let Some(exchange) = known.exchange
    {
        record(shared, term, &run.id, exchange, known.journal).await?;
    }
    Ok(())
}

async fn verify_to_the_end(shared: &Shared, term: Term, id: &RunId) -> Result<(), Deposed> {
    loop {
        let Some(run) = shared.run(id) else { return Ok(()) };
        let (Verification::Pending { .. }, Some(baseline)) = (run.verification, &run.baseline) else {
            return Ok(());
        };
        let Some(host) = shared.host(run.target.host()) else { return Ok(()) };
        let sighting = match host.dispatcher.engine().observe(&baseline.incarnation.container_id).await {
            Observation::Seen(sighting) => Some(sighting),
            Observation::Gone { .. } | Observation::Unreadable { .. } => None,
        };
        let healthy = sighting.as_ref().is_some_and(|seen| seen.health == Health::Healthy);
        let over = matches!(run.verification, Verification::Pending { until } if shared.consensus.cluster_time() >= until);
        if healthy || over {
            shared.commit(term, Command::Verify(Box::new(Verify { run: id.clone(), sighting }))).await?;
        }
        if !shared.leads(term) {
            return Err(Deposed(term));
        }
        sleep(VERIFY_EVERY).await;
    }
}
