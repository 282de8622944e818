//! Taking over: a run that somebody else proposed, or that this process gave up. It is never dispatched.

use super::facts::{attest, observe, open_run, tell_known, unreachable};
use super::look::look_once;
use super::shared::{Deposed, HostLink, Shared};
use crate::ledger::{Baseline, Interlock};
use crate::model::{JournalWord, Observation, RunId, Term};

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

/// Revokes the run at its dispatcher and commits what the journal says, unless that is known.
pub(super) async fn ask_journal(
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
        Ok(known) => tell_known(shared, term, id, known).await,
        // Said once; it is asked again with every look.
        Err(error) => match shared.run(id).and_then(|run| run.word) {
            Some(JournalWord::Unreachable { .. }) => Ok(()),
            _ => attest(shared, term, id, unreachable(interlock, &error.to_string())).await,
        },
    }
}
