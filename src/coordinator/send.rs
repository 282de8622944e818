//! Sending: recheck, authority, holds, dispatch (steps 4 to 6 of a restart).

use tracing::{Instrument, debug_span};

use super::facts::{OrderOf, open_run};
use super::look::look_aside;
use super::shared::{AUTHORITY_MS, Deposed, HostLink, Shared};
use crate::dispatch::{Action, DispatchError, Order, Ticket};
use crate::env::failpoint;
use crate::ledger::Diagnosis;
#[cfg(feature = "failpoints")]
use crate::ledger::OpenInterlock;
use crate::model::{ClusterTime, NotWritten, NotWrittenCause, RunId, Target, Term};
#[cfg(feature = "failpoints")]
use crate::model::{Fence, LogIndex};

/// Hands a run's restart to its dispatcher, and commits what became of it.
pub(super) async fn dispatch(shared: &Shared, term: Term, id: &RunId) -> Result<(), Deposed> {
    let Some((run, baseline, interlock)) = open_run(shared, id) else { return Ok(()) };
    failpoint::reach("coordinator-after-commit");
    let of = OrderOf::restart(&run, &baseline, &interlock);
    let order = Order {
        run: of.id.clone(),
        fence: of.fence.clone(),
        incarnation: baseline.incarnation.clone(),
        action: Action::Restart(interlock.grace),
        if_unhealthy: interlock.diagnosis == Diagnosis::Unhealthy,
        client_deadline_ms: interlock.client_deadline_ms,
        dispatch_by_ms: interlock.dispatch_by_ms,
    };
    let sending = Sending {
        send_by: ClusterTime(interlock.deadline.0.saturating_sub(interlock.client_deadline_ms)),
        target: run.target,
        name: baseline.name,
        of,
        order,
    };
    sending.send(shared, term).await?;
    look_aside(shared, term, id).await
}

/// Hands an approved start to its dispatcher, and commits what became of it.
pub(super) async fn dispatch_start(
    shared: &Shared,
    term: Term,
    id: &RunId,
    start: &RunId,
) -> Result<(), Deposed> {
    let Some((run, baseline, _)) = open_run(shared, id) else { return Ok(()) };
    let Some(start) = run.start(start) else { return Ok(()) };
    failpoint::reach("coordinator-after-approval");
    let of = OrderOf::start(&run, &baseline, start);
    let order = Order {
        run: of.id.clone(),
        fence: of.fence.clone(),
        incarnation: baseline.incarnation.clone(),
        action: Action::Start,
        if_unhealthy: false,
        client_deadline_ms: start.client_deadline_ms,
        dispatch_by_ms: start.dispatch_by_ms,
    };
    let send_by = ClusterTime(start.deadline.0.saturating_sub(start.client_deadline_ms));
    let sending = Sending { send_by, target: run.target.clone(), name: baseline.name, of, order };
    sending.send(shared, term).await
}

/// An order that is about to be handed on.
struct Sending {
    of: OrderOf,
    order: Order,
    /// When its exchange must begin at the latest, to end by its own deadline on the cluster clock.
    send_by: ClusterTime,
    target: Target,
    name: String,
}

impl Sending {
    async fn send(mut self, shared: &Shared, term: Term) -> Result<(), Deposed> {
        let Some(host) = shared.host(self.target.host()) else {
            let detail = "its host is not known to this node".to_owned();
            let refusal = NotWritten { cause: NotWrittenCause::Unreachable, detail };
            return self.of.refuse(shared, term, refusal).await;
        };
        // What is left until the exchange must have begun: the process may have slept since the commit.
        let left_ms = self.send_by.since_ms(shared.consensus.cluster_time());
        self.order.dispatch_by_ms = self.order.dispatch_by_ms.min(left_ms);
        let rechecking = debug_span!(target: "relatch::step", "recheck", run = %self.of.run);
        let ticket = match self.recheck(shared, term, host).instrument(rechecking).await {
            Ok(ticket) => ticket,
            Err(refusal) => return self.of.refuse(shared, term, refusal).await,
        };
        let Self { of, order, target, .. } = self;
        tracing::info!(run = %of.run, %target, fence = %order.fence, "handing an order to the dispatcher");
        match host.dispatcher.dispatch(order, ticket).await {
            Ok(dispatched) => of.record(shared, term, dispatched.exchange, dispatched.journal).await,
            Err(DispatchError::ActedBefore { known, .. }) => of.tell_known(shared, term, *known).await,
            Err(error @ DispatchError::Journal(_)) => {
                of.attest(shared, term, of.unreachable(&error.to_string())).await
            }
        }
    }

    /// Step 4, in this order: the container is looked at, which begins the ticket's time; then authority is
    /// confirmed by a round that began after that look; then the holds that are applied by then. So a leader
    /// that sleeps in between holds a ticket that is older than its authority, never younger.
    async fn recheck(&self, shared: &Shared, term: Term, host: &HostLink) -> Result<Ticket, NotWritten> {
        let ticket = host.dispatcher.mint_ticket(&self.order).await?;
        failpoint::reach("coordinator-after-recheck");
        let lost = |detail: String| NotWritten { cause: NotWrittenCause::AuthorityLost, detail };
        let confirmed = shared.consensus.confirm_authority(term, AUTHORITY_MS).await;
        confirmed.map_err(|error| lost(error.to_string()))?;
        let fence = &self.order.fence;
        if fence.term != term {
            return Err(lost(format!("the interlock is of term {}, this node leads {term}", fence.term)));
        }
        let now = shared.consensus.cluster_time();
        if now > self.send_by {
            let late_ms = now.since_ms(self.send_by);
            let detail = format!("the time to send it in was over {late_ms} ms before its last check");
            return Err(NotWritten { cause: NotWrittenCause::TicketExpired, detail });
        }
        let (names, id) = ([self.name.as_str(), ticket.name()], &self.order.incarnation.container_id);
        let held = shared.consensus.read(|ledger| ledger.held(&self.target, &names, id, now));
        match held.into_iter().next() {
            None => Ok(ticket),
            Some(reason) => Err(NotWritten { cause: NotWrittenCause::Held, detail: reason.detail }),
        }
    }
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
        if_unhealthy: false,
        client_deadline_ms: proposal.grace.client_deadline_ms(20_000),
        dispatch_by_ms: 5_000,
    };
    if let Ok(ticket) = host.dispatcher.mint_ticket(&order).await {
        let sent = host.dispatcher.dispatch(order, ticket).await;
        tracing::warn!(?sent, "sent through a hole, for a proposal that is not committed");
    }
}
