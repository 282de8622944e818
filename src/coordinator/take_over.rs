//! Taking over: a run that somebody else proposed, or that this process gave up. It is never dispatched.

use super::facts::{OrderOf, observe, open_run};
use super::look::look_once;
use super::shared::{Deposed, HostLink, Shared};
use crate::model::{JournalWord, Observation, RunId, Term};

/// Asks the journals, then looks once: what a new leader does with each open run before it admits anything.
pub(super) async fn take_over(shared: &Shared, term: Term, id: &RunId) -> Result<(), Deposed> {
    let Some((run, _, _)) = open_run(shared, id) else { return Ok(()) };
    let orders = OrderOf::all(&run);
    let Some(host) = shared.host(run.target.host()) else {
        for order in &orders {
            order.attest(shared, term, order.unreachable("its host is not known to this node")).await?;
        }
        return Ok(());
    };
    for order in &orders {
        ask_journal(shared, term, host, order).await?;
    }
    look_once(shared, term, host, id).await
}

/// Takes over one approved start.
pub(super) async fn take_over_start(
    shared: &Shared,
    term: Term,
    id: &RunId,
    start: &RunId,
) -> Result<(), Deposed> {
    let Some((run, baseline, _)) = open_run(shared, id) else { return Ok(()) };
    let (Some(host), Some(start)) = (shared.host(run.target.host()), run.start(start)) else {
        return Ok(());
    };
    ask_journal(shared, term, host, &OrderOf::start(&run, &baseline, start)).await.map(drop)
}

/// Counts what could not be read in time as unreadable, so that one bad host stops nothing else.
pub(super) async fn give_up_reading(
    shared: &Shared,
    term: Term,
    id: &RunId,
    limit_ms: u64,
) -> Result<(), Deposed> {
    let Some((run, _, _)) = open_run(shared, id) else { return Ok(()) };
    let detail = format!("not read within the replay's {limit_ms} ms");
    for order in OrderOf::all(&run) {
        if order.known_of(&run) == (None, None) {
            order.attest(shared, term, order.unreachable(&detail)).await?;
        }
    }
    if run.observation.is_none() {
        observe(shared, term, id, Observation::Unreadable { detail }).await?;
    }
    Ok(())
}

/// Revokes an order at its dispatcher and commits what the journal says, unless that is known.
pub(super) async fn ask_journal(
    shared: &Shared,
    term: Term,
    host: &HostLink,
    order: &OrderOf,
) -> Result<(), Deposed> {
    let asked = async {
        host.dispatcher.raise_term(term).await?;
        host.dispatcher.revoke(&order.id, &order.fence, &order.container_id).await
    };
    match asked.await {
        Ok(known) => order.tell_known(shared, term, known).await,
        // Said once; it is asked again with every look.
        Err(error) => match shared.run(&order.run).as_ref().map(|run| order.known_of(run)) {
            Some((_, Some(JournalWord::Unreachable { .. }))) => Ok(()),
            _ => order.attest(shared, term, order.unreachable(&error.to_string())).await,
        },
    }
}
