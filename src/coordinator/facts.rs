//! The facts that drivers commit, each by one command.

use super::shared::{Deposed, Shared};
use crate::dispatch::Known;
use crate::ledger::{
    Attest, Attestation, Baseline, Command, DispatcherRef, Interlock, Observe, RecordExchange, Run, Start,
};
use crate::model::{
    ContainerId, Exchange, Fence, JournalPosition, JournalWord, NotWritten, Observation, RunId, Term,
};

/// One order of a run: its restart, or one of its starts.
#[derive(Debug, Clone)]
pub(super) struct OrderOf {
    pub(super) run: RunId,
    /// The start, if it is one.
    pub(super) start: Option<RunId>,
    /// What its dispatcher knows it by.
    pub(super) id: RunId,
    pub(super) fence: Fence,
    pub(super) dispatcher: DispatcherRef,
    pub(super) container_id: ContainerId,
}

impl OrderOf {
    pub(super) fn restart(run: &Run, baseline: &Baseline, interlock: &Interlock) -> Self {
        Self {
            run: run.id.clone(),
            start: None,
            id: run.id.clone(),
            fence: interlock.fence.clone(),
            dispatcher: interlock.dispatcher.clone(),
            container_id: baseline.incarnation.container_id.clone(),
        }
    }

    pub(super) fn start(run: &Run, baseline: &Baseline, start: &Start) -> Self {
        Self {
            run: run.id.clone(),
            start: Some(start.id.clone()),
            id: start.order.clone(),
            fence: start.fence.clone(),
            dispatcher: start.dispatcher.clone(),
            container_id: baseline.incarnation.container_id.clone(),
        }
    }

    /// Every order of a run.
    pub(super) fn all(run: &Run) -> Vec<Self> {
        let (Some(baseline), Some(interlock)) = (&run.baseline, &run.interlock) else { return Vec::new() };
        let starts = run.starts.iter().map(|start| Self::start(run, baseline, start));
        std::iter::once(Self::restart(run, baseline, interlock)).chain(starts).collect()
    }

    /// What is on record of it: what the wire showed, and what its journal says.
    pub(super) fn known_of<'a>(&self, run: &'a Run) -> (Option<&'a Exchange>, Option<&'a JournalWord>) {
        match &self.start {
            None => (run.exchange.as_ref(), run.word.as_ref()),
            Some(id) => {
                run.start(id).map_or((None, None), |start| (start.exchange.as_ref(), start.word.as_ref()))
            }
        }
    }

    /// The journal that it names could not be asked.
    pub(super) fn unreachable(&self, detail: &str) -> Attestation {
        Attestation::Journal {
            at: self.dispatcher.journal.clone(),
            word: JournalWord::Unreachable { detail: detail.to_owned() },
        }
    }

    /// Commits what the wire showed.
    pub(super) async fn record(
        &self,
        shared: &Shared,
        term: Term,
        exchange: Exchange,
        journal: JournalPosition,
    ) -> Result<(), Deposed> {
        let fact = RecordExchange { run: self.run.clone(), start: self.start.clone(), journal, exchange };
        shared.commit(term, Command::RecordExchange(Box::new(fact))).await.map(drop)
    }

    /// Commits what a dispatcher knows: how the exchange ended, else what its journal says.
    pub(super) async fn tell_known(&self, shared: &Shared, term: Term, known: Known) -> Result<(), Deposed> {
        let Known { word, exchange, journal } = known;
        match exchange {
            Some(exchange) => self.record(shared, term, exchange, journal).await,
            None => self.attest(shared, term, Attestation::Journal { at: journal, word }).await,
        }
    }

    /// Commits that it was never handed to its dispatcher, and never will be.
    pub(super) async fn refuse(
        &self,
        shared: &Shared,
        term: Term,
        refusal: NotWritten,
    ) -> Result<(), Deposed> {
        let proposer = shared.proposer.clone();
        self.attest(shared, term, Attestation::NeverHandedOn { proposer, refusal }).await
    }

    /// Commits what somebody states who can know.
    pub(super) async fn attest(
        &self,
        shared: &Shared,
        term: Term,
        attestation: Attestation,
    ) -> Result<(), Deposed> {
        let fact = Attest { run: self.run.clone(), start: self.start.clone(), attestation };
        shared.commit(term, Command::Attest(Box::new(fact))).await.map(drop)
    }
}

/// A run whose interlock is in force.
pub(super) fn open_run(shared: &Shared, id: &RunId) -> Option<(Run, Baseline, Interlock)> {
    let run = shared.run(id).filter(Run::is_open)?;
    let (baseline, interlock) = (run.baseline.clone()?, run.interlock.clone()?);
    Some((run, baseline, interlock))
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
