//! Driving one run: dispatch, observe, settle, verify (steps 4 to 9 of a restart).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::resolve::{Resolved, resolve};
use super::shared::{AUTHORITY_MS, Deposed, HostLink, Shared};
use crate::dispatch::{DispatchError, Order, Ticket};
use crate::docker::ListFilter;
use crate::env::failpoint;
use crate::ledger::{
    Attest, Attestation, Baseline, Command, EventKind, Interlock, Limits, Observe, RecordExchange, Run,
    Verification, Verify,
};
use crate::model::{
    Exchange, JournalPosition, JournalWord, NotWritten, NotWrittenCause, Observation, RunId, Term,
};

/// The pause between two looks at a container that is to become healthy.
const VERIFY_EVERY: Duration = Duration::from_secs(1);

/// Dispatches a run that this process proposed in this very term, and sees it to its end.
pub(super) async fn dispatch_and_watch(shared: Arc<Shared>, term: Term, id: RunId) {
    let ended = async {
        dispatch(&shared, term, &id).await?;
        watch_to_the_end(&shared, term, &id).await
    };
    report(&id, ended.await);
}

/// Takes over a run that somebody else proposed, or that this process gave up, and sees it to its end. It is
/// never dispatched (again).
pub(super) async fn take_over_and_watch(shared: Arc<Shared>, term: Term, id: RunId) {
    let ended = async {
        take_over(&shared, term, &id).await?;
        watch_to_the_end(&shared, term, &id).await
    };
    report(&id, ended.await);
}

/// Sees a run to its end that was taken over already.
pub(super) async fn watch(shared: Arc<Shared>, term: Term, id: RunId) {
    report(&id, watch_to_the_end(&shared, term, &id).await);
}

fn report(id: &RunId, ended: Result<(), Deposed>) {
    match ended {
        Ok(()) => tracing::debug!(run = %id, "nothing is left to do for this run"),
        Err(deposed) => tracing::info!(run = %id, "{deposed}: the next leader goes on"),
    }
}

/// Asks the journal, then looks once: what a new leader does with each open run before it admits anything.
pub(super) async fn take_over(shared: &Shared, term: Term, id: &RunId) -> Result<(), Deposed> {
    let Some((run, baseline, interlock)) = open_run(shared, id) else { return Ok(()) };
    let Some(host) = shared.host(run.target.host()) else {
        return attest(shared, term, id, unreachable(&interlock, "its host is not known to this node")).await;
    };
    ask_journal(shared, term, host, id, &baseline, &interlock).await?;
    look_once(shared, term, host, id).await
}

/// Counts what could not be read in time as unreadable, so that one bad host stops nothing else.
pub(super) async fn give_up_reading(
    shared: &Shared,
    term: Term,
    id: &RunId,
    limit_ms: u64,
) -> Result<(), Deposed> {
    let Some((run, _, interlock)) = open_run(shared, id) else { return Ok(()) };
    let detail = format!("not read within the replay's {limit_ms} ms");
    if run.word.is_none() && run.exchange.is_none() {
        attest(shared, term, id, unreachable(&interlock, &detail)).await?;
    }
    if run.observation.is_none() {
        observe(shared, term, id, Observation::Unreadable { detail }).await?;
    }
    Ok(())
}

/// Steps 4 to 6.
async fn dispatch(shared: &Shared, term: Term, id: &RunId) -> Result<(), Deposed> {
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
    let order = Order {
        run: id.clone(),
        fence: interlock.fence.clone(),
        incarnation: baseline.incarnation.clone(),
        grace: interlock.grace,
        client_deadline_ms: interlock.client_deadline_ms,
        dispatch_by_ms: interlock.dispatch_by_ms,
    };
    let ticket = match recheck(shared, term, host, &order).await {
        Ok(ticket) => ticket,
        Err(refusal) => return refuse(refusal).await,
    };
    tracing::info!(run = %id, target = %run.target, fence = %order.fence, "handing the restart to the dispatcher");
    match host.dispatcher.dispatch(order, ticket).await {
        Ok(dispatched) => record(shared, term, id, dispatched.exchange, dispatched.journal).await,
        Err(DispatchError::ActedBefore { known, .. }) => match known.exchange {
            Some(exchange) => record(shared, term, id, exchange, known.journal).await,
            None => {
                attest(shared, term, id, Attestation::Journal { at: known.journal, word: known.word }).await
            }
        },
        Err(error @ DispatchError::Journal(_)) => {
            let word = JournalWord::Unreachable { detail: error.to_string() };
            let at = host.dispatcher.position();
            attest(shared, term, id, Attestation::Journal { at, word }).await
        }
    }
}

/// Step 4, in this order: the container is looked at, which begins the ticket's time; then authority is
/// confirmed by a round that began after that look. So a leader that sleeps in between holds a ticket that
/// is older than its authority, never younger.
async fn recheck(shared: &Shared, term: Term, host: &HostLink, order: &Order) -> Result<Ticket, NotWritten> {
    let ticket = host.dispatcher.mint_ticket(order).await?;
    failpoint::reach("coordinator-after-recheck");
    let lost = |detail: String| NotWritten { cause: NotWrittenCause::AuthorityLost, detail };
    shared.consensus.confirm_authority(term, AUTHORITY_MS).await.map_err(|error| lost(error.to_string()))?;
    if order.fence.term != term {
        return Err(lost(format!("the interlock is of term {}, this node leads {term}", order.fence.term)));
    }
    Ok(ticket)
}

/// Revokes the run at its dispatcher and commits what the journal says.
async fn ask_journal(
    shared: &Shared,
    term: Term,
    host: &HostLink,
    id: &RunId,
    baseline: &Baseline,
    interlock: &Interlock,
) -> Result<(), Deposed> {
    let asked = async {
        host.dispatcher.raise_term(term).await?;
        host.dispatcher.revoke(id, &interlock.fence, &baseline.incarnation.container_id).await
    };
    match asked.await {
        Ok(revoked) => {
            if let Some(exchange) = revoked.exchange {
                return record(shared, term, id, exchange, revoked.journal).await;
            }
            attest(shared, term, id, Attestation::Journal { at: revoked.journal, word: revoked.word }).await
        }
        Err(error) => attest(shared, term, id, unreachable(interlock, &error.to_string())).await,
    }
}

/// Steps 7 to 9: looks, with growing pauses, until the run is settled, its quarantine is over, and its
/// recovery is known.
async fn watch_to_the_end(shared: &Shared, term: Term, id: &RunId) -> Result<(), Deposed> {
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
    verify_to_the_end(shared, term, id, &limits).await
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

/// One look at the run's container, committed if it shows something new.
async fn look_once(shared: &Shared, term: Term, host: &HostLink, id: &RunId) -> Result<(), Deposed> {
    let Some((run, baseline, _)) = open_run(shared, id) else { return Ok(()) };
    let mut seen = host.dispatcher.engine().observe(&baseline.incarnation.container_id).await;
    if let Observation::Gone { successor, .. } = &mut seen {
        match successor_of(host, &run).await {
            Ok(found) => *successor = found,
            // Who is there instead belongs to the settlement: not known, not settled.
            Err(detail) => seen = Observation::Unreadable { detail },
        }
    }
    if run.observation.as_ref() == Some(&seen) {
        return Ok(());
    }
    failpoint::reach("coordinator-before-settle");
    observe(shared, term, id, seen).await
}

async fn successor_of(host: &HostLink, run: &Run) -> Result<Option<crate::model::ContainerId>, String> {
    let containers =
        host.dispatcher.engine().list(&ListFilter::default()).await.map_err(|error| error.to_string())?;
    Ok(match resolve(&run.target, &containers) {
        Resolved::One(id, _) => Some(id),
        Resolved::Several(_) | Resolved::None(_) => None,
    })
}

async fn verify_to_the_end(shared: &Shared, term: Term, id: &RunId, _: &Limits) -> Result<(), Deposed> {
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
        let healthy = sighting.as_ref().is_some_and(|seen| seen.health == crate::model::Health::Healthy);
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

fn open_run(shared: &Shared, id: &RunId) -> Option<(Run, Baseline, Interlock)> {
    let run = shared.run(id).filter(Run::is_open)?;
    let (baseline, interlock) = (run.baseline.clone()?, run.interlock.clone()?);
    Some((run, baseline, interlock))
}

fn unreachable(interlock: &Interlock, detail: &str) -> Attestation {
    Attestation::Journal {
        at: interlock.dispatcher.journal.clone(),
        word: JournalWord::Unreachable { detail: detail.to_owned() },
    }
}

async fn record(
    shared: &Shared,
    term: Term,
    id: &RunId,
    exchange: Exchange,
    journal: JournalPosition,
) -> Result<(), Deposed> {
    let fact = RecordExchange { run: id.clone(), journal, exchange };
    shared.commit(term, Command::RecordExchange(Box::new(fact))).await.map(drop)
}

async fn attest(shared: &Shared, term: Term, id: &RunId, attestation: Attestation) -> Result<(), Deposed> {
    let fact = Attest { run: id.clone(), attestation };
    shared.commit(term, Command::Attest(Box::new(fact))).await.map(drop)
}

async fn observe(shared: &Shared, term: Term, id: &RunId, observation: Observation) -> Result<(), Deposed> {
    let fact = Observe { run: id.clone(), observation };
    shared.commit(term, Command::Observe(Box::new(fact))).await.map(drop)
}
