//! The facts that drivers commit, each by one command.

use super::shared::{Deposed, Shared};
use crate::dispatch::Known;
use crate::ledger::{Attest, Attestation, Baseline, Command, Interlock, Observe, RecordExchange, Run};
use crate::model::{Exchange, JournalPosition, JournalWord, Observation, RunId, Term};

/// A run whose interlock is in force.
pub(super) fn open_run(shared: &Shared, id: &RunId) -> Option<(Run, Baseline, Interlock)> {
    let run = shared.run(id).filter(Run::is_open)?;
    let (baseline, interlock) = (run.baseline.clone()?, run.interlock.clone()?);
    Some((run, baseline, interlock))
}

/// The journal that the interlock names could not be asked.
pub(super) fn unreachable(interlock: &Interlock, detail: &str) -> Attestation {
    Attestation::Journal {
        at: interlock.dispatcher.journal.clone(),
        word: JournalWord::Unreachable { detail: detail.to_owned() },
    }
}

/// Commits what the wire showed.
pub(super) async fn record(
    shared: &Shared,
    term: Term,
    id: &RunId,
    exchange: Exchange,
    journal: JournalPosition,
) -> Result<(), Deposed> {
    let fact = RecordExchange { run: id.clone(), journal, exchange };
    shared.commit(term, Command::RecordExchange(Box::new(fact))).await.map(drop)
}

/// Commits what a dispatcher knows of a run: how its exchange ended, else what its journal says.
pub(super) async fn tell_known(shared: &Shared, term: Term, id: &RunId, known: Known) -> Result<(), Deposed> {
    let Known { word, exchange, journal } = known;
    match exchange {
        Some(exchange) => record(shared, term, id, exchange, journal).await,
        None => attest(shared, term, id, Attestation::Journal { at: journal, word }).await,
    }
}

/// Commits what somebody states who can know.
pub(super) async fn attest(
    shared: &Shared,
    term: Term,
    id: &RunId,
    attestation: Attestation,
) -> Result<(), Deposed> {
    let fact = Attest { run: id.clone(), attestation };
    shared.commit(term, Command::Attest(Box::new(fact))).await.map(drop)
}

/// Commits what a look showed.
pub(super) async fn observe(
    shared: &Shared,
    term: Term,
    id: &RunId,
    observation: Observation,
) -> Result<(), Deposed> {
    let fact = Observe { run: id.clone(), observation };
    shared.commit(term, Command::Observe(Box::new(fact))).await.map(drop)
}
