//! The entries of made-up runs, as a coordinator would propose them.

use crate::ledger::{
    ANONYMOUS, Attest, Attestation, Baseline, Command, Diagnosis, DispatcherRef, Guard, Limits, Observe,
    OpenInterlock, Proposer, RecordExchange, Request, Verify,
};
use crate::model::{
    ContainerId, ContainerState, EngineId, EngineInstant, EngineProof, Exchange, Grace, GraceSource, Health,
    HealthCheck, Incarnation, InvalidId, JournalPosition, NodeId, NotWritten, NotWrittenCause, Observation,
    ProcessNonce, Reply, RequestId, RunId, Sighting, StartedAt, Target, Term, Wire,
};

/// How long an attempt counts while things are measured: an account holds all that count, and nobody restarts a
/// container a thousand times in an hour.
pub(super) const ATTEMPTS_WINDOW_MS: u64 = 1_000;

/// Limits that nothing here meets.
pub(super) fn roomy() -> Limits {
    Limits {
        attempts: u32::MAX,
        attempts_window_ms: ATTEMPTS_WINDOW_MS,
        backoff_first_ms: 0,
        backoff_longest_ms: 0,
        in_flight_cluster: u32::MAX,
        in_flight_host: u32::MAX,
        ..Limits::default()
    }
}

/// Who proposes, in which term, and who would send.
#[derive(Debug, Clone)]
pub(super) struct Workload {
    pub(super) engine: EngineId,
    pub(super) journal: JournalPosition,
    pub(super) proposer: Proposer,
    pub(super) term: Term,
}

/// A container in one of its lives.
#[derive(Debug, Clone)]
pub(super) struct Container {
    pub(super) id: ContainerId,
    pub(super) name: String,
    pub(super) started_at: EngineInstant,
}

impl Workload {
    pub(super) fn new(
        engine: EngineId,
        journal: JournalPosition,
        nonce: String,
        term: Term,
    ) -> Result<Self, InvalidId> {
        let proposer = Proposer { node: NodeId(1), nonce: ProcessNonce::new(nonce)? };
        Ok(Self { engine, journal, proposer, term })
    }

    /// The interlock of a run, as for a request of the command line.
    pub(super) fn open(&self, run: &RunId, container: &Container) -> anyhow::Result<Command> {
        let spelling = format!("local/{}", container.name);
        Ok(Command::OpenInterlock(Box::new(OpenInterlock {
            run: run.clone(),
            request: Request {
                id: Some(RequestId::new(run.as_str())?),
                caller: ANONYMOUS.to_owned(),
                by: None,
                // As long as a digest is.
                digest: format!("{run}{run}"),
                reason: "its queue is saturated".to_owned(),
                spelling: spelling.clone(),
            },
            target: Target::parse(&spelling)?,
            baseline: Baseline {
                incarnation: Incarnation {
                    engine_id: self.engine.clone(),
                    container_id: container.id.clone(),
                    started_at: container.started_at,
                },
                name: container.name.clone(),
                state: ContainerState::Running,
                health: Health::Healthy,
                health_check: Some(HealthCheck {
                    interval_ms: 30_000,
                    timeout_ms: 5_000,
                    start_period_ms: 0,
                }),
            },
            expect: None,
            grace: Grace { seconds: 10, source: GraceSource::Policy },
            diagnosis: Diagnosis::Callers,
            proposer: self.proposer.clone(),
            dispatcher: DispatcherRef { guard: Guard::Agent, journal: self.journal.clone() },
            term: self.term,
        })))
    }

    /// The proposer never handed the run on: it is settled, and its attempt is given back.
    pub(super) fn take_back(&self, run: &RunId) -> Command {
        let refusal = NotWritten { cause: NotWrittenCause::Held, detail: "it was only measured".to_owned() };
        let attestation = Attestation::NeverHandedOn { proposer: self.proposer.clone(), refusal };
        Command::Attest(Box::new(Attest { run: run.clone(), start: None, attestation }))
    }

    /// The engine answered that it is done.
    pub(super) fn replied(&self, run: &RunId) -> Command {
        Command::RecordExchange(Box::new(RecordExchange {
            run: run.clone(),
            start: None,
            journal: self.journal.clone(),
            exchange: done(),
        }))
    }

    /// The container was seen in its next life.
    pub(super) fn seen(&self, run: &RunId, container: &Container) -> Command {
        let observation = Observation::Seen(self.sighting(container));
        Command::Observe(Box::new(Observe { run: run.clone(), observation }))
    }

    /// And it is well.
    pub(super) fn well(&self, run: &RunId, container: &Container) -> Command {
        let sighting = Some(self.sighting(container));
        Command::Verify(Box::new(Verify { run: run.clone(), sighting, unseen: None, gone: None }))
    }

    fn sighting(&self, container: &Container) -> Sighting {
        Sighting {
            engine_id: self.engine.clone(),
            container_id: container.id.clone(),
            name: container.name.clone(),
            started_at: StartedAt::At(container.started_at),
            finished_at: None,
            state: ContainerState::Running,
            health: Health::Healthy,
        }
    }
}

/// A restart that the engine answered for.
pub(super) fn done() -> Exchange {
    let reply = Reply::Complete { status: 204, proof: EngineProof::Proven, message: String::new() };
    Exchange::Written { wire: Wire::Unix, bytes: 150, reply }
}

/// The `nth` container in its `life`th life.
pub(super) fn container(nth: u64, life: u64) -> anyhow::Result<Container> {
    let started_s = 1_700_000_000 + i64::try_from(life)?;
    Ok(Container {
        id: ContainerId::new(format!("{nth:064x}"))?,
        name: format!("old-{nth}"),
        started_at: EngineInstant::new(started_s, 123_456_789)?,
    })
}
