//! Sending: recheck, authority, dispatch (steps 4 to 6 of a restart).

use super::facts::{attest, open_run, record, tell_known, unreachable};
use super::shared::{AUTHORITY_MS, Deposed, HostLink, Shared};
use crate::dispatch::{Action, DispatchError, Order, Ticket};
use crate::env::failpoint;
#[cfg(feature = "failpoints")]
use crate::ledger::OpenInterlock;
use crate::ledger::{Attestation, Interlock};
use crate::model::{ClusterTime, NotWritten, NotWrittenCause, RunId, Term};
#[cfg(feature = "failpoints")]
use crate::model::{Fence, LogIndex};

/// Hands a run to its dispatcher, and commits what became of it.
pub(super) async fn dispatch(shared: &Shared, term: Term, id: &RunId) -> Result<(), Deposed> {
    let Some((run, baseline, interlock)) = open_run(shared, id) else { return Ok(()) };
    failpoint::reach("coordinator-after-commit");
    let refuse = |refusal: NotWritten| {
        let proposer = shared.proposer.clone();
        attest(shared, term, id, Attestation::NeverHandedOn { proposer, refusal })
    };
    let Some(host) = shared.host(run.target.host()) else {
        let detail = "its host is not known to this node".to_owned();
        return refuse(NotWritten { cause: NotWrittenCause::Unreachable, detail }).await;
    };
    // What is left until the exchange must have begun, so that it ends by the interlock's own deadline: the
    // process may have slept since the commit.
    let left_ms = send_by(&interlock).since_ms(shared.consensus.cluster_time());
    let order = Order {
        run: id.clone(),
        fence: interlock.fence.clone(),
        incarnation: baseline.incarnation.clone(),
        action: Action::Restart(interlock.grace),
        client_deadline_ms: interlock.client_deadline_ms,
        dispatch_by_ms: interlock.dispatch_by_ms.min(left_ms),
    };
    let ticket = match recheck(shared, term, host, &order, send_by(&interlock)).await {
        Ok(ticket) => ticket,
        Err(refusal) => return refuse(refusal).await,
    };
    tracing::info!(run = %id, target = %run.target, fence = %order.fence, "handing the restart to the dispatcher");
    match host.dispatcher.dispatch(order, ticket).await {
        Ok(dispatched) => record(shared, term, id, dispatched.exchange, dispatched.journal).await,
        Err(DispatchError::ActedBefore { known, .. }) => tell_known(shared, term, id, *known).await,
        Err(error @ DispatchError::Journal(_)) => {
            attest(shared, term, id, unreachable(&interlock, &error.to_string())).await
        }
    }
}

/// Step 4, in this order: the container is looked at, which begins the ticket's time; then authority is
/// confirmed by a round that began after that look. So a leader that sleeps in between holds a ticket that
/// is older than its authority, never younger.
async fn recheck(
    shared: &Shared,
    term: Term,
    host: &HostLink,
    order: &Order,
    send_by: ClusterTime,
) -> Result<Ticket, NotWritten> {
    let ticket = host.dispatcher.mint_ticket(order).await?;
    failpoint::reach("coordinator-after-recheck");
    let lost = |detail: String| NotWritten { cause: NotWrittenCause::AuthorityLost, detail };
    shared.consensus.confirm_authority(term, AUTHORITY_MS).await.map_err(|error| lost(error.to_string()))?;
    if order.fence.term != term {
        return Err(lost(format!("the interlock is of term {}, this node leads {term}", order.fence.term)));
    }
    let now = shared.consensus.cluster_time();
    if now > send_by {
        let detail = format!("it is {now} on the cluster clock; it was to be sent by {send_by}");
        return Err(NotWritten { cause: NotWrittenCause::TicketExpired, detail });
    }
    Ok(ticket)
}

/// When an exchange must begin at the latest, to end by the interlock's deadline.
fn send_by(interlock: &Interlock) -> ClusterTime {
    ClusterTime(interlock.deadline.0.saturating_sub(interlock.client_deadline_ms))
}

/// The hole of invariant 1: sends for a proposal that nobody has committed, under a fence that is made up.
#[cfg(feature = "failpoints")]
pub(super) async fn send_uncommitted(shared: &Shared, proposal: &OpenInterlock) {
    let Some(host) = shared.host(proposal.target.host()) else { return };
    let order = Order {
        run: proposal.run.clone(),
        fence: Fence {
            cluster: shared.consensus.read(|ledger| ledger.cluster().clone()),
            term: proposal.term,
            index: LogIndex(shared.consensus.applied().borrow().0 + 1),
        },
        incarnation: proposal.baseline.incarnation.clone(),
        action: Action::Restart(proposal.grace),
        client_deadline_ms: proposal.grace.client_deadline_ms(20_000),
        dispatch_by_ms: 5_000,
    };
    if let Ok(ticket) = host.dispatcher.mint_ticket(&order).await {
        let sent = host.dispatcher.dispatch(order, ticket).await;
        tracing::warn!(?sent, "sent through a hole, for a proposal that is not committed");
    }
}
