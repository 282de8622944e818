//! One look at a run's container.

use super::facts::{OrderOf, observe, open_run};
use super::resolve::{Resolved, find};
use super::shared::{Deposed, HostLink, Shared};
use crate::env::failpoint;
use crate::ledger::{Baseline, Proof, Run, Status};
use crate::model::{ContainerId, Observation, RunId, Term};

/// One look at the run's container, committed if it shows something new.
pub(super) async fn look_once(
    shared: &Shared,
    term: Term,
    host: &HostLink,
    id: &RunId,
) -> Result<(), Deposed> {
    let Some((run, baseline, _)) = open_run(shared, id) else { return Ok(()) };
    let seen = see(host, &run, &baseline).await;
    if run.observation.as_ref() == Some(&seen) {
        return Ok(());
    }
    failpoint::reach("coordinator-before-settle");
    tell_of_starts(shared, term, host, id).await?;
    observe(shared, term, id, seen).await
}

/// What was seen may be the doing of a start whose end nobody has reported yet. That it may have been sent goes on
/// record before what was seen, which would else be put down to somebody else.
async fn tell_of_starts(shared: &Shared, term: Term, host: &HostLink, id: &RunId) -> Result<(), Deposed> {
    let Some((run, _, _)) = open_run(shared, id) else { return Ok(()) };
    for order in OrderOf::all(&run).iter().filter(|order| order.start.is_some()) {
        if order.known_of(&run) == (None, None)
            && let Some(known) = host.dispatcher.known(&order.id)
        {
            order.tell_known(shared, term, known).await?;
        }
    }
    Ok(())
}

/// The engine answered 404 to the restart itself: who is there instead is looked up once, and set beside the
/// settlement.
pub(super) async fn look_aside(shared: &Shared, term: Term, id: &RunId) -> Result<(), Deposed> {
    let refused = |run: &Run| {
        matches!(&run.status, Status::NotApplied { proof: Proof::EngineRefused { status: 404, .. } })
    };
    let Some(run) = shared.run(id).filter(refused) else { return Ok(()) };
    let (Some(baseline), Some(host)) = (&run.baseline, shared.host(run.target.host())) else { return Ok(()) };
    match see(host, &run, baseline).await {
        gone @ Observation::Gone { .. } => observe(shared, term, id, gone).await,
        Observation::Seen(_) | Observation::Unreadable { .. } => Ok(()),
    }
}

/// The run's container as it is now, by its full id.
async fn see(host: &HostLink, run: &Run, baseline: &Baseline) -> Observation {
    let mut seen = host.dispatcher.engine().observe(&baseline.incarnation.container_id).await;
    if let Observation::Gone { successor, .. } = &mut seen {
        match successor_of(host, run).await {
            Ok(found) => *successor = found,
            // Who is there instead belongs to the settlement: not known, not settled.
            Err(detail) => seen = Observation::Unreadable { detail },
        }
    }
    seen
}

async fn successor_of(host: &HostLink, run: &Run) -> Result<Option<ContainerId>, String> {
    let found = find(host.dispatcher.engine(), &run.target).await.map_err(|error| error.to_string())?;
    Ok(match found {
        Resolved::One(id, _) => Some(id),
        // It was replaced, if not by one alone.
        Resolved::Several(found) => found.into_iter().next().map(|(id, _)| id),
        Resolved::None(_) => None,
    })
}
