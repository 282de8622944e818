//! Following: looks until a run is settled and its recovery known (steps 7 to 9 of a restart).

use std::time::Duration;

use tokio::sync::broadcast;
use tokio::time::{sleep, timeout};

use super::facts::{OrderOf, open_run};
use super::look::look_once;
use super::shared::{Deposed, HostLink, Shared};
use super::take_over::ask_journal;
use crate::dispatch::Known;
use crate::ledger::{Command, EventKind, Run, Status, Verification, Verify};
use crate::model::{ContainerId, JournalWord, Observation, RunId, Term};

/// The pause between two looks at a container whose restart was applied.
const VERIFY_EVERY: Duration = Duration::from_secs(1);

/// How often it is looked for at the end of its verify window before it is said that it cannot be seen. With the usual
/// limit of an inspect that takes 8 s at most, which is less than `recover --wait` waits beyond the window.
const LOOKS_AT_THE_END: u32 = 3;

/// Steps 7 to 9: looks, with growing pauses, until the run is settled; then until its recovery is known, and
/// its exchange has ended or its quarantine is over.
pub(super) async fn follow_to_the_end(shared: &Shared, term: Term, id: &RunId) -> Result<(), Deposed> {
    let limits = shared.consensus.read(|ledger| ledger.limits().clone());
    let mut pause = Duration::from_millis(limits.observe_first_ms);
    while let Some((run, _, _)) = open_run(shared, id) {
        let Some(host) = shared.host(run.target.host()) else { break };
        // Before the look: what comes while it looks is a reason to look again.
        let reasons = Reasons::from_now_on(shared, &run);
        learn_from_the_dispatcher(shared, term, host, &run).await?;
        look_once(shared, term, host, id).await?;
        if open_run(shared, id).is_none() {
            break;
        }
        reasons.wait(shared, term, pause).await?;
        pause = (pause * 2).min(Duration::from_millis(limits.observe_longest_ms));
    }
    let (verified, ended) =
        tokio::join!(verify_to_the_end(shared, term, id), wait_out_the_exchange(shared, term, id, pause));
    verified.and(ended)
}

/// What makes another look worth while before its time.
struct Reasons {
    run: RunId,
    container: Option<ContainerId>,
    stirred: u64,
    hints: broadcast::Receiver<ContainerId>,
}

impl Reasons {
    fn from_now_on(shared: &Shared, run: &Run) -> Self {
        Self {
            run: run.id.clone(),
            container: run.baseline.as_ref().map(|baseline| baseline.incarnation.container_id.clone()),
            stirred: stirred(run),
            hints: shared.hints.subscribe(),
        }
    }

    /// Waits for the pause to pass, for an event of the container, for another request to attach, for a start
    /// to end, or for leadership to go.
    async fn wait(mut self, shared: &Shared, term: Term, pause: Duration) -> Result<(), Deposed> {
        let mut applied = shared.consensus.applied();
        let mut leadership = shared.consensus.leadership();
        let mut over = std::pin::pin!(sleep(pause));
        loop {
            if *leadership.borrow_and_update() != Some(term) {
                return Err(Deposed(term));
            }
            if shared.run(&self.run).is_none_or(|run| stirred(&run) != self.stirred) {
                return Ok(());
            }
            tokio::select! {
                () = &mut over => return Ok(()),
                // One that lagged behind may have missed the one that matters.
                hint = self.hints.recv() => if hint.ok().is_none_or(|hinted| Some(hinted) == self.container) {
                    return Ok(());
                },
                changed = applied.changed() => if changed.is_err() {
                    return Err(Deposed(term));
                },
                changed = leadership.changed() => if changed.is_err() {
                    return Err(Deposed(term));
                },
            }
        }
    }
}

/// How often something came that makes another look worth while.
fn stirred(run: &Run) -> u64 {
    run.times(EventKind::Attached) + run.times(EventKind::StartExchanged)
}

/// A run that was settled while an exchange goes on is in quarantine until that ends: whoever learns of the
/// end sets the target free. At its bound it ends all the same.
async fn wait_out_the_exchange(
    shared: &Shared,
    term: Term,
    id: &RunId,
    mut pause: Duration,
) -> Result<(), Deposed> {
    let longest = Duration::from_millis(shared.consensus.read(|ledger| ledger.limits().observe_longest_ms));
    loop {
        let Some(run) = shared.run(id) else { return Ok(()) };
        let Some(quarantine) = run.quarantine.filter(|quarantine| !quarantine.ended) else { return Ok(()) };
        let left_ms = quarantine.until.since_ms(shared.consensus.cluster_time());
        if left_ms == 0 {
            shared.commit(term, Command::EndQuarantine { run: id.clone() }).await?;
        }
        let reasons = Reasons::from_now_on(shared, &run);
        if let Some(host) = shared.host(run.target.host()) {
            learn_from_the_dispatcher(shared, term, host, &run).await?;
        }
        // The clock that the ledger goes by moves on with its entries, at most so much behind the estimate.
        let at_most = Duration::from_millis(left_ms.max(100));
        reasons.wait(shared, term, pause.min(at_most)).await?;
        pause = (pause * 2).min(longest);
    }
}

/// What the dispatcher knows by now: a journal that could not be asked may answer, and an exchange that
/// outlived the leader that began it may have ended.
async fn learn_from_the_dispatcher(
    shared: &Shared,
    term: Term,
    host: &HostLink,
    run: &Run,
) -> Result<(), Deposed> {
    for order in OrderOf::all(run) {
        match order.known_of(run) {
            (Some(_), _) | (None, Some(JournalWord::NoIntent | JournalWord::NotSent)) => {}
            // A start that nobody has spoken of yet has a driver of its own, while its run is open.
            (None, None) if order.start.is_some() && run.is_open() => {}
            (None, None | Some(JournalWord::Unreachable { .. })) => {
                // One whose disk hangs must not keep the container from being looked at.
                let limit = Duration::from_millis(shared.consensus.read(|ledger| ledger.limits().replay_ms));
                if let Ok(asked) = timeout(limit, ask_journal(shared, term, host, &order)).await {
                    asked?;
                }
            }
            (None, Some(JournalWord::Intent)) => {
                if let Some(Known { exchange: Some(exchange), journal, .. }) =
                    host.dispatcher.known(&order.id)
                {
                    order.record(shared, term, exchange, journal).await?;
                }
            }
        }
    }
    Ok(())
}

/// Watches an applied run's container until its recovery is known: to the end of the verify window, if nothing is
/// known before. What changes nothing is not committed.
async fn verify_to_the_end(shared: &Shared, term: Term, id: &RunId) -> Result<(), Deposed> {
    let mut was_down = None;
    let mut failed_at_the_end = 0;
    loop {
        let Some(run) = shared.run(id) else { return Ok(()) };
        let (Verification::Pending { until }, Status::Applied { observed, .. }) =
            (run.verification, &run.status)
        else {
            return Ok(());
        };
        // Before the look: what comes while it looks is a reason to look again.
        let reasons = Reasons::from_now_on(shared, &run);
        // And so is the time: what was seen before the window's end says nothing of that.
        let now = shared.consensus.cluster_time();
        let look = look_for_recovery(shared, &run, &observed.container_id).await;
        let verdict = shared.consensus.read(|ledger| ledger.verification_after(now, &look));
        let is_early = now < until;
        match verdict {
            // A restart by somebody else stops it first: only one that stays down is.
            Some(Verification::NotRecovered) if is_early && was_down != look.sighting => {
                was_down = look.sighting;
                sleep(VERIFY_EVERY).await;
            }
            // A look that failed or was late says nothing of the container: the next one may.
            Some(_) if has_failed(&look) && failed_at_the_end + 1 < LOOKS_AT_THE_END => {
                failed_at_the_end += 1;
                sleep(VERIFY_EVERY).await;
            }
            Some(_) => {
                shared.commit(term, Command::Verify(Box::new(look))).await?;
            }
            None => {
                was_down = None;
                // The clock that the ledger goes by moves on with its entries, at most so much behind the estimate.
                let left = Duration::from_millis(until.since_ms(now).max(100));
                reasons.wait(shared, term, VERIFY_EVERY.min(left)).await?;
            }
        }
        if !shared.leads(term) {
            return Err(Deposed(term));
        }
    }
}

/// One look at an applied run's container. A host that this node does not know shows nothing, for as long as the
/// window lasts.
async fn look_for_recovery(shared: &Shared, run: &Run, container_id: &ContainerId) -> Verify {
    let seen = match shared.host(run.target.host()) {
        Some(host) => host.dispatcher.engine().observe(container_id).await,
        None => Observation::Unreadable { detail: "its host is not known to this node".to_owned() },
    };
    let (sighting, unseen, gone) = match seen {
        Observation::Seen(sighting) => (Some(sighting), None, None),
        Observation::Gone { engine_id, .. } => {
            (None, Some("the engine answers that there is no such container".to_owned()), Some(engine_id))
        }
        Observation::Unreadable { detail } => (None, Some(detail), None),
    };
    let unseen = unseen.filter(|_| shared.knows_rules(3));
    let gone = gone.filter(|_| shared.knows_rules(4));
    Verify { run: run.id.clone(), sighting, unseen, gone }
}

/// True if it shows neither the container nor that there is none.
fn has_failed(look: &Verify) -> bool {
    look.sighting.is_none() && look.gone.is_none()
}
