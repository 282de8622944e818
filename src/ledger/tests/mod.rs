//! State, command, expected decision. No mock, no sleep.

mod admission;
mod checks;
mod evidence;
mod golden;
mod histories;
mod holds;
mod hosts;
mod interleavings;
mod operators;
mod properties;
mod prune;
mod reach;
mod requests;
mod resolve;
mod rules;
mod starts;
mod stored;
mod verify;

use super::*;
use crate::model::*;

/// The guards that this run of the tests takes out: none, unless `RELATCH_HOLE` names one.
fn holes() -> Holes {
    crate::env::holes().unwrap()
}

fn cluster() -> ClusterId {
    ClusterId::new("c".repeat(32)).unwrap()
}

fn journal(digit: &str) -> JournalId {
    JournalId::new(digit.repeat(32)).unwrap()
}

fn container(digit: &str) -> ContainerId {
    ContainerId::new(digit.repeat(64)).unwrap()
}

fn engine(name: &str) -> EngineId {
    EngineId::new(name).unwrap()
}

fn run_id(n: u64) -> RunId {
    RunId::new(format!("{n:032x}")).unwrap()
}

fn at(unix_s: i64) -> EngineInstant {
    EngineInstant::new(unix_s, 500).unwrap()
}

fn proposer() -> Proposer {
    Proposer { node: NodeId(1), nonce: ProcessNonce::new("d".repeat(32)).unwrap() }
}

fn position(digit: &str, sequence: u64) -> JournalPosition {
    JournalPosition { journal: journal(digit), sequence }
}

/// A ledger with a log before it: each command becomes the next entry.
struct World {
    ledger: Ledger,
    term: Term,
    index: u64,
    clock_ms: u64,
    runs: u64,
    /// Every entry that was applied.
    log: Vec<(EntryPosition, Stamped)>,
    /// What the last of them changed.
    changes: Vec<Change>,
}

/// An `OpenInterlock` in the making.
struct Ask(OpenInterlock);

impl World {
    /// Host `local` is bound to engine `E1` and journal `a…`.
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        let mut world = Self::under_the_first_rules(limits);
        assert_eq!(world.apply(Command::RaiseRulesLevel { level: RULES_LEVEL }), Outcome::Done);
        world
    }

    /// As it is before the rules are raised.
    fn under_the_first_rules(limits: Limits) -> Self {
        let mut world = Self {
            ledger: Ledger::new(cluster(), holes()),
            term: Term(1),
            index: 0,
            clock_ms: 0,
            runs: 0,
            log: Vec::new(),
            changes: Vec::new(),
        };
        assert_eq!(world.apply(Command::SetLimits(limits)), Outcome::Done);
        assert_eq!(world.bind("local", "E1", "a"), Outcome::Done);
        world
    }

    /// Limits under which no test meets a pause or a window that it did not ask for.
    fn roomy() -> Self {
        Self::with(roomy_limits())
    }

    fn bind(&mut self, host: &str, engine_id: &str, journal: &str) -> Outcome {
        self.apply(Command::BindHost(BindHost {
            host: HostName::new(host).unwrap(),
            engine_id: engine(engine_id),
            dispatcher: DispatcherRef { guard: Guard::Agent, journal: position(journal, 5) },
        }))
    }

    fn apply(&mut self, command: Command) -> Outcome {
        self.index += 1;
        let stamped = Stamped {
            // As a proposer stamps it.
            level: command.level().max(self.ledger.rules_level()),
            clock: ClusterTime(self.clock_ms),
            wall: self.wall(),
            node: NodeId(1),
            command,
        };
        let entry = EntryPosition { term: self.term, index: LogIndex(self.index) };
        self.log.push((entry, stamped.clone()));
        let applied = self.ledger.apply(entry, stamped).unwrap();
        self.changes = applied.changes;
        applied.outcome
    }

    /// The wall clock of the newest entry.
    fn wall(&self) -> WallTime {
        WallTime(1_700_000_000_000 + self.index)
    }

    /// A request for `local/web`, container `1…`, running since 100 s.
    fn ask(&mut self) -> Ask {
        self.runs += 1;
        Ask(OpenInterlock {
            run: run_id(self.runs),
            request: Request {
                id: None,
                caller: ANONYMOUS.to_owned(),
                by: None,
                digest: "00".to_owned(),
                reason: "test".to_owned(),
                spelling: "local/web".to_owned(),
            },
            target: Target::parse("local/web").unwrap(),
            baseline: Baseline {
                incarnation: Incarnation {
                    engine_id: engine("E1"),
                    container_id: container("1"),
                    started_at: at(100),
                },
                name: "web".to_owned(),
                state: ContainerState::Running,
                health: Health::None,
                health_check: None,
            },
            expect: None,
            grace: Grace { seconds: 10, source: GraceSource::Policy },
            diagnosis: Diagnosis::Callers,
            proposer: proposer(),
            dispatcher: DispatcherRef { guard: Guard::Agent, journal: position("a", 5) },
            term: self.term,
        })
    }

    fn decide(&mut self, ask: Ask) -> Decision {
        match self.apply(Command::OpenInterlock(Box::new(ask.0))) {
            Outcome::Decided(decision) => decision,
            other => panic!("not decided: {other:?}"),
        }
    }

    fn open(&mut self, ask: Ask) -> RunId {
        let decision = self.decide(ask);
        assert_eq!(decision.kind, DecisionKind::Opened, "{:?}", self.reasons(&decision.run));
        decision.run
    }

    fn refused(&mut self, ask: Ask) -> Vec<ReasonCode> {
        let decision = self.decide(ask);
        assert_eq!(decision.kind, DecisionKind::Refused);
        self.reasons(&decision.run)
    }

    fn run(&self, id: &RunId) -> &Run {
        self.ledger.run(id).unwrap()
    }

    fn reasons(&self, id: &RunId) -> Vec<ReasonCode> {
        self.run(id).reasons().iter().map(|reason| reason.code).collect()
    }

    fn word(&self, id: &RunId) -> &'static str {
        self.run(id).status.word()
    }

    fn exchanged(&mut self, run: &RunId, exchange: Exchange) -> Outcome {
        self.exchanged_by(run, exchange, position("a", 6))
    }

    fn exchanged_by(&mut self, run: &RunId, exchange: Exchange, journal: JournalPosition) -> Outcome {
        self.apply(Command::RecordExchange(Box::new(RecordExchange {
            run: run.clone(),
            start: None,
            journal,
            exchange,
        })))
    }

    fn journal_says(&mut self, run: &RunId, at: JournalPosition, word: JournalWord) -> Outcome {
        let attestation = Attestation::Journal { at, word };
        self.apply(Command::Attest(Box::new(Attest { run: run.clone(), start: None, attestation })))
    }

    fn never_handed_on(&mut self, run: &RunId, cause: NotWrittenCause) -> Outcome {
        let refusal = NotWritten { cause, detail: "test".to_owned() };
        let attestation = Attestation::NeverHandedOn { proposer: proposer(), refusal };
        self.apply(Command::Attest(Box::new(Attest { run: run.clone(), start: None, attestation })))
    }

    fn verify(&mut self, run: &RunId, sighting: Option<Sighting>) -> Outcome {
        self.apply(Command::Verify(Box::new(Verify { run: run.clone(), sighting, unseen: None, gone: None })))
    }

    fn observe(&mut self, run: &RunId, observation: Observation) -> Outcome {
        self.apply(Command::Observe(Box::new(Observe { run: run.clone(), observation })))
    }
}

impl Ask {
    fn id(mut self, id: &str) -> Self {
        self.0.request.id = Some(RequestId::new(id).unwrap());
        self
    }

    fn caller(mut self, caller: &str) -> Self {
        self.0.request.caller = caller.to_owned();
        self
    }

    fn digest(mut self, digest: &str) -> Self {
        self.0.request.digest = digest.to_owned();
        self
    }

    fn target(mut self, target: &str) -> Self {
        self.0.target = Target::parse(target).unwrap();
        self
    }

    fn container(mut self, digit: &str) -> Self {
        self.0.baseline.incarnation.container_id = container(digit);
        self
    }

    fn state(mut self, state: ContainerState) -> Self {
        self.0.baseline.state = state;
        self
    }

    fn health_check(mut self, check: HealthCheck) -> Self {
        self.0.baseline.health_check = Some(check);
        self
    }
}

fn roomy_limits() -> Limits {
    Limits {
        attempts: 1000,
        backoff_first_ms: 0,
        in_flight_cluster: 1000,
        in_flight_host: 1000,
        unresolved_host: 1000,
        ..Limits::default()
    }
}

fn never_written(cause: NotWrittenCause) -> Exchange {
    Exchange::NeverWritten(NotWritten { cause, detail: "test".to_owned() })
}

fn lost(timed_out: bool) -> Exchange {
    let reply = Reply::Lost(LostReply { status: None, timed_out, detail: "test".to_owned() });
    Exchange::Written { wire: Wire::Unix, bytes: 80, reply }
}

fn replied(status: u16, wire: Wire, proof: EngineProof) -> Exchange {
    Exchange::Written {
        wire,
        bytes: 80,
        reply: Reply::Complete { status, proof, message: "test".to_owned() },
    }
}

fn seen(started_at: StartedAt) -> Observation {
    Observation::Seen(sighting(started_at))
}

fn sighting(started_at: StartedAt) -> Sighting {
    Sighting {
        engine_id: engine("E1"),
        container_id: container("1"),
        name: "web".to_owned(),
        started_at,
        finished_at: None,
        state: ContainerState::Running,
        health: Health::None,
    }
}
