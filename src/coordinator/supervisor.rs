//! The supervisor: while this node leads, every open run in the applied ledger has a driver.
//!
//! A reign begins with the replay (invariant 7) and only then admits. After that the applied ledger is the
//! one source of work: a run that this process pledged to dispatch in this term is dispatched, any other is
//! taken over.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::drive;
use super::hints;
use super::shared::Shared;
use super::take_over::{give_up_reading, take_over};
use crate::docker::EngineLimits;
use crate::env::failpoint;
use crate::ledger::{Command, Ledger, LimitsChange, RULES_LEVEL};
use crate::model::{Hole, RunId, Term};

/// How often the cluster clock moves on while anything timed is pending.
const TICK: Duration = Duration::from_secs(10);

/// Supervises until `stop` says so.
pub(super) async fn supervise(shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let mut leadership = shared.consensus.leadership();
    // Drivers outlive the reign that began them: an exchange under way is waited out, and journalled.
    let mut drivers = JoinSet::new();
    let mut listeners = JoinSet::new();
    for host in shared.hosts.values() {
        listeners.spawn(hints::listen(Arc::clone(&shared), host.clone()));
    }
    loop {
        let term = *leadership.borrow_and_update();
        if let Some(term) = term {
            tokio::select! {
                () = reign(&shared, term, &mut drivers) => {}
                _ = leadership.wait_for(|now| *now != Some(term)) => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
            shared.admitting.send_replace(None);
            tracing::info!(%term, "this node does not admit any more");
        }
        if *stop.borrow() {
            break;
        }
        if *leadership.borrow() == term {
            tokio::select! {
                changed = leadership.changed() => if changed.is_err() { break },
                _ = stop.wait_for(|stop| *stop) => break,
            }
        }
    }
    listeners.shutdown().await;
    drivers.shutdown().await;
}

async fn reign(shared: &Arc<Shared>, term: Term, drivers: &mut JoinSet<()>) {
    let mut applied = shared.consensus.applied();
    if shared.holes.open(Hole::AdmitBeforeReplay) {
        shared.admitting.send_replace(Some(term));
    }
    give_engines_their_limits(shared);
    let replayed = replay(shared, term).await;
    for run in &replayed {
        drivers.spawn(drive::follow(Arc::clone(shared), term, run.clone()));
    }
    let open_runs = replayed.len();
    let mut driven = Driven::of(replayed);
    // The replay asked about each of them.
    let mut starts = Driven::of(unended_starts(shared).into_iter().map(|start| start.order).collect());
    if !put_rules_in_force(shared, term).await {
        return;
    }
    shared.admitting.send_replace(Some(term));
    tracing::info!(%term, open_runs, "replay is done: this node admits requests");

    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // One at a time, and beside the loop: one that hangs must not keep a run from its driver.
    let mut ticking = JoinSet::new();
    loop {
        applied.borrow_and_update();
        give_engines_their_limits(shared);
        for run in driven.not_yet(shared.consensus.read(|ledger| ledger.open_run_ids().cloned().collect())) {
            if shared.pledges.take(&run, term) {
                drivers.spawn(drive::dispatch_and_follow(Arc::clone(shared), term, run));
            } else {
                drivers.spawn(drive::take_over_and_follow(Arc::clone(shared), term, run));
            }
        }
        let unended = unended_starts(shared);
        let new = starts.not_yet(unended.iter().map(|start| start.order.clone()).collect());
        for Unended { run, start, order } in unended.into_iter().filter(|start| new.contains(&start.order)) {
            if shared.pledges.take(&order, term) {
                drivers.spawn(drive::send_start(Arc::clone(shared), term, run, start));
            } else {
                drivers.spawn(drive::give_up_start(Arc::clone(shared), term, run, start));
            }
        }
        while drivers.try_join_next().is_some() {}
        tokio::select! {
            changed = applied.changed() => if changed.is_err() { return },
            _ = ticks.tick(), if ticking.is_empty() => {
                ticking.spawn(tick(Arc::clone(shared), term));
            }
            Some(_ticked) = ticking.join_next() => {}
        }
    }
}

/// Invariant 7: every open interlock's journal is asked and its container looked at, side by side, within
/// one overall limit; what is unread by then counts as unreadable. Gives the runs that need a driver.
async fn replay(shared: &Arc<Shared>, term: Term) -> BTreeSet<RunId> {
    failpoint::reach("coordinator-before-replay");
    let (open, settled, limit_ms) = shared.consensus.read(|ledger| {
        let open: Vec<RunId> = ledger.open_runs().map(|run| run.id.clone()).collect();
        let settled = ledger.verifying_runs().chain(ledger.quarantined_runs());
        let settled: Vec<RunId> = settled.map(|run| run.id.clone()).collect();
        (open, settled, ledger.limits().replay_ms)
    });
    let limit = Duration::from_millis(limit_ms);
    let readings = open.iter().map(|run| async move {
        // Whoever pledged it did so in another term: it is not dispatched any more.
        shared.pledges.take(run, term);
        let read = timeout(limit, take_over(shared, term, run)).await;
        match read {
            Ok(read) => read,
            Err(_) => give_up_reading(shared, term, run, limit_ms).await,
        }
    });
    for (run, read) in open.iter().zip(join_all(readings).await) {
        if let Err(deposed) = read {
            tracing::info!(%run, "{deposed}: the next leader replays it");
        }
    }
    open.into_iter().chain(settled).collect()
}

/// The limits in force hold for what is asked of an engine from now on.
fn give_engines_their_limits(shared: &Shared) {
    let (connect_ms, inspect_ms) =
        shared.consensus.read(|ledger| (ledger.limits().connect_ms, ledger.limits().inspect_ms));
    for host in shared.hosts.values() {
        let engine = host.dispatcher.engine();
        engine.set_limits(EngineLimits { connect_ms, inspect_ms, ..engine.limits() });
    }
}

/// What has, or had, a driver in this reign, of what is still open. What has ended is forgotten: it never opens again,
/// and a reign may be long.
struct Driven(BTreeSet<RunId>);

impl Driven {
    fn of(driven: BTreeSet<RunId>) -> Self {
        Self(driven)
    }

    /// What has no driver yet, of what is open now; each is given once.
    fn not_yet(&mut self, open: BTreeSet<RunId>) -> BTreeSet<RunId> {
        let new = &open - &self.0;
        self.0 = open;
        new
    }
}

/// An approved start of which nobody knows yet how it ended.
struct Unended {
    run: RunId,
    start: RunId,
    order: RunId,
}

fn unended_starts(shared: &Shared) -> Vec<Unended> {
    shared.consensus.read(|ledger| {
        let starts =
            ledger.open_runs_with_starts().flat_map(|run| run.starts.iter().map(move |start| (run, start)));
        let unended = starts.filter(|(_, start)| !start.has_ended() && start.exchange.is_none());
        unended
            .map(|(run, start)| Unended {
                run: run.id.clone(),
                start: start.id.clone(),
                order: start.order.clone(),
            })
            .collect()
    })
}

/// Lets this build's rules be in force, and the limits that this node was started with. Only the one voter of a
/// cluster of one knows by itself that every member supports them. False if leadership is gone.
async fn put_rules_in_force(shared: &Shared, term: Term) -> bool {
    let level = shared.consensus.read(Ledger::rules_level);
    if level < RULES_LEVEL
        && shared.commit(term, Command::RaiseRulesLevel { level: RULES_LEVEL }).await.is_err()
    {
        return false;
    }
    let in_force = shared.consensus.read(|ledger| ledger.limits().clone());
    let wanted = shared.named_limits.over(&in_force);
    wanted == LimitsChange::default() || shared.commit(term, Command::ChangeLimits(wanted)).await.is_ok()
}

/// Moves the cluster clock on while anything timed is pending, and finds out whether commits go on again.
async fn tick(shared: Arc<Shared>, term: Term) {
    let wanted = shared.consensus.read(Ledger::has_timed_work) || !*shared.commits.borrow();
    if wanted && let Err(error) = shared.propose(term, Command::Tick).await {
        tracing::warn!(%error, "the cluster clock did not move on");
    }
    if shared.consensus.read(Ledger::has_something_to_prune)
        && let Err(error) = shared.propose(term, Command::Prune).await
    {
        tracing::warn!(%error, "what has ended could not be forgotten");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(numbers: std::ops::Range<u32>) -> BTreeSet<RunId> {
        numbers.map(|number| RunId::new(format!("{number:032x}")).unwrap()).collect()
    }

    #[test]
    fn what_has_ended_is_forgotten_and_what_is_open_is_driven_once() {
        // Of those that were replayed, one is only watched, and not open.
        let mut driven = Driven::of(runs(0..4));
        assert_eq!(driven.not_yet(runs(1..4)), runs(0..0));
        for number in 4..1_000 {
            // Each applied entry is a reason to look.
            let open = || runs(number - 2..number + 1);
            assert_eq!(
                (driven.not_yet(open()), driven.not_yet(open())),
                (runs(number..number + 1), runs(0..0))
            );
            assert_eq!(driven.0.len(), 3, "no more than what is open");
        }
        assert_eq!(driven.not_yet(runs(0..0)), runs(0..0));
        assert!(driven.0.is_empty());
    }
}
