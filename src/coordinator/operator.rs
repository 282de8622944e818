//! What operators decide about a run that is open: its end by their word, and a start of what it left down.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::admit::confirm;
use super::ask::unexpected;
use super::facts::OrderOf;
use super::request::{ApproveRequest, RequestError, ResolveRequest};
use super::shared::Shared;
use super::take_over::ask_journal;
use crate::env::failpoint;
use crate::ledger::{Command, DispatcherRef, OpenStart, Outcome, Resolve, Run, StartDecision};
use crate::model::{Observation, RunId, Term};

/// Ends a run by an operator's word. The dispatcher hears first that nothing more is to be sent, and what it
/// knows is put on record: that may settle the run, which is then the answer. True if the run had been
/// resolved so before.
pub(super) async fn resolve_run(
    shared: &Arc<Shared>,
    term: Term,
    request: ResolveRequest,
) -> Result<(Run, bool), RequestError> {
    confirm(shared, term).await?;
    let id = request.run.clone();
    let run = shared.run(&id).ok_or_else(|| RequestError::NoSuchRun { run: id.clone() })?;
    let was_open = run.is_open();
    if was_open {
        revoke(shared, term, &run).await?;
    }
    let settled_by_its_word = |run: &Run| was_open && !run.is_open();
    if let Some(run) = shared.run(&id).filter(settled_by_its_word) {
        return Ok((run, false));
    }
    let ResolveRequest { run, by, reason, assertion, accept_late_post } = request;
    let command = Resolve { run, by, reason, assertion, accept_late_post };
    let changed = match shared.ask(term, Command::Resolve(Box::new(command))).await? {
        Outcome::Recorded { changed } => changed,
        other => return Err(unexpected(other)),
    };
    let run = shared.run(&id).ok_or(RequestError::NoSuchRun { run: id })?;
    Ok((run, !changed))
}

/// Tells the dispatcher of a run to send nothing more for it, within the time that a replay has.
async fn revoke(shared: &Shared, term: Term, run: &Run) -> Result<(), RequestError> {
    let Some(host) = shared.host(run.target.host()) else { return Ok(()) };
    let limit = Duration::from_millis(shared.consensus.read(|ledger| ledger.limits().replay_ms));
    for order in OrderOf::all(run) {
        // One that does not answer in time has acknowledged nothing, which the ledger then minds.
        if let Ok(asked) = timeout(limit, ask_journal(shared, term, host, &order)).await {
            asked.map_err(|deposed| RequestError::Unavailable { detail: deposed.to_string() })?;
        }
    }
    Ok(())
}

/// Decides about an approved start, after a look at the container.
pub(super) async fn approve_start(
    shared: &Arc<Shared>,
    term: Term,
    request: ApproveRequest,
) -> Result<(Run, StartDecision), RequestError> {
    confirm(shared, term).await?;
    let id = request.run;
    let no_such_run = || RequestError::NoSuchRun { run: id.clone() };
    let run = shared.run(&id).ok_or_else(no_such_run)?;
    let baseline = run.baseline.as_ref().filter(|_| run.interlock.is_some()).ok_or_else(no_such_run)?;
    let Some(host) = shared.host(run.target.host()) else {
        let detail = format!("host {} is not known to this node", run.target.host());
        return Err(RequestError::Unavailable { detail });
    };
    let look = host.dispatcher.engine().observe(&baseline.incarnation.container_id).await;
    if let Observation::Unreadable { detail } = &look {
        tracing::info!(run = %id, %detail, "a start is asked for, but the container could not be looked at");
    }
    let start = request.start.map_or_else(|| shared.mint(RunId::new), Ok)?;
    let order = shared.mint(RunId::new)?;
    let command = OpenStart {
        run: id.clone(),
        start,
        order: order.clone(),
        by: request.by,
        reason: request.reason,
        look,
        proposer: shared.proposer.clone(),
        dispatcher: DispatcherRef { guard: host.guard, journal: host.dispatcher.position() },
        term,
    };
    // As for a restart, the pledge stands before the proposal, and ends with it unless it was applied.
    shared.pledges.make(&order, term);
    let proposed = shared.ask(term, Command::OpenStart(Box::new(command))).await;
    failpoint::reach("coordinator-after-approve");
    let decision = match proposed {
        Ok(Outcome::StartDecided(decision)) => decision,
        other => {
            shared.pledges.take(&order, term);
            return Err(other.map_or_else(|error| error, unexpected));
        }
    };
    if !decision.reasons.is_empty() || decision.repeated {
        shared.pledges.take(&order, term);
    }
    Ok((shared.run(&id).ok_or_else(no_such_run)?, decision))
}
