//! How fast the ledger applies entries: no disk, no Raft, one thread.
//!
//! One element is one entry. A turn is the three entries of a whole recovery (the interlock, what the wire showed,
//! and the later `StartedAt`), in a ledger that holds as many ended runs as the benchmark's name says.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use relatch::ledger::{
    ANONYMOUS, Baseline, BindHost, Command, DecisionKind, Diagnosis, DispatcherRef, EntryPosition, Guard,
    Ledger, Limits, Observe, OpenInterlock, Outcome, Proposer, RULES_LEVEL, RecordExchange, Request, Stamped,
};
use relatch::model::{
    ClusterId, ClusterTime, ContainerId, ContainerState, EngineId, EngineInstant, EngineProof, Exchange,
    Grace, GraceSource, Health, Holes, HostName, Incarnation, JournalId, JournalPosition, LogIndex, NodeId,
    Observation, ProcessNonce, Reply, RunId, Sighting, StartedAt, Target, Term, WallTime, Wire,
};

/// How many containers take turns.
const CONTAINERS: u64 = 256;

/// A ledger with a log before it.
#[derive(Clone)]
struct Node {
    ledger: Ledger,
    index: u64,
    turns: u64,
}

impl Node {
    fn new() -> Self {
        let cluster = ClusterId::new("c".repeat(32)).expect("a cluster id");
        let mut node = Self { ledger: Ledger::new(cluster, Holes::none()), index: 0, turns: 0 };
        node.done(Command::RaiseRulesLevel { level: RULES_LEVEL });
        node.done(Command::SetLimits(Limits {
            attempts: u32::MAX,
            // An account holds the charges of its window: a short one keeps it as short as in daily use.
            attempts_window_ms: CONTAINERS,
            backoff_first_ms: 0,
            backoff_longest_ms: 0,
            in_flight_cluster: u32::MAX,
            in_flight_host: u32::MAX,
            ended_runs: u32::MAX,
            ..Limits::default()
        }));
        node.done(Command::BindHost(BindHost {
            host: HostName::new("local").expect("a host's name"),
            engine_id: engine(),
            dispatcher: dispatcher(),
        }));
        node
    }

    fn with_ended_runs(count: u64) -> Self {
        let mut node = Self::new();
        for _ in 0..count {
            node.recover();
        }
        node
    }

    /// One recovery from the interlock to `APPLIED`.
    fn recover(&mut self) {
        self.turns += 1;
        let turn = self.turns;
        let run = RunId::new(format!("{turn:032x}")).expect("a run id");
        let opened = self.apply(Command::OpenInterlock(Box::new(interlock(&run, turn))));
        let is_open = matches!(&opened, Outcome::Decided(decision) if decision.kind == DecisionKind::Opened);
        assert!(is_open, "{opened:?}");
        let exchange = Exchange::Written {
            wire: Wire::Unix,
            bytes: 120,
            reply: Reply::Complete { status: 204, proof: EngineProof::Proven, message: String::new() },
        };
        let fact = RecordExchange { run: run.clone(), start: None, journal: position(), exchange };
        self.done(Command::RecordExchange(Box::new(fact)));
        let observation = Observation::Seen(Sighting {
            engine_id: engine(),
            container_id: container(turn),
            name: name(turn),
            started_at: StartedAt::At(started(turn + CONTAINERS)),
            finished_at: None,
            state: ContainerState::Running,
            health: Health::None,
        });
        self.done(Command::Observe(Box::new(Observe { run, observation })));
    }

    /// Applies what is to be carried out: a benchmark of what is turned away would mean nothing.
    fn done(&mut self, command: Command) {
        let outcome = self.apply(command);
        assert!(matches!(outcome, Outcome::Done | Outcome::Recorded { changed: true }), "{outcome:?}");
    }

    fn apply(&mut self, command: Command) -> Outcome {
        self.index += 1;
        let stamped = Stamped {
            level: command.level().max(self.ledger.rules_level()),
            clock: ClusterTime(self.turns),
            wall: WallTime(1_700_000_000_000 + self.index),
            node: NodeId(1),
            command,
        };
        let position = EntryPosition { term: Term(1), index: LogIndex(self.index) };
        self.ledger.apply(position, stamped).expect("rules that this build knows").outcome
    }
}

fn engine() -> EngineId {
    EngineId::new("bench-engine").expect("an engine id")
}

fn position() -> JournalPosition {
    JournalPosition { journal: JournalId::new("a".repeat(32)).expect("a journal id"), sequence: 1 }
}

fn dispatcher() -> DispatcherRef {
    DispatcherRef { guard: Guard::Agent, journal: position() }
}

fn container(turn: u64) -> ContainerId {
    ContainerId::new(format!("{:064x}", turn % CONTAINERS)).expect("a container id")
}

fn name(turn: u64) -> String {
    format!("c{}", turn % CONTAINERS)
}

fn started(turn: u64) -> EngineInstant {
    EngineInstant::new(1_700_000_000 + i64::try_from(turn).expect("a small number"), 0).expect("an instant")
}

fn interlock(run: &RunId, turn: u64) -> OpenInterlock {
    OpenInterlock {
        run: run.clone(),
        request: Request {
            id: None,
            caller: ANONYMOUS.to_owned(),
            by: None,
            digest: "0".repeat(64),
            reason: "a benchmark".to_owned(),
            spelling: format!("local/{}", name(turn)),
        },
        target: Target::parse(&format!("local/{}", name(turn))).expect("a target"),
        baseline: Baseline {
            incarnation: Incarnation {
                engine_id: engine(),
                container_id: container(turn),
                started_at: started(turn),
            },
            name: name(turn),
            state: ContainerState::Running,
            health: Health::None,
            health_check: None,
        },
        expect: None,
        grace: Grace { seconds: 10, source: GraceSource::Policy },
        diagnosis: Diagnosis::Callers,
        proposer: Proposer {
            node: NodeId(1),
            nonce: ProcessNonce::new("d".repeat(32)).expect("a process nonce"),
        },
        dispatcher: dispatcher(),
        term: Term(1),
    }
}

fn apply(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("apply");
    group.throughput(Throughput::Elements(3));
    for ended_runs in [0, 100_000] {
        let node = Node::with_ended_runs(ended_runs);
        group.bench_function(BenchmarkId::from_parameter(ended_runs), |bencher| {
            let mut node = node.clone();
            bencher.iter(|| node.recover());
        });
    }
    group.finish();
}

criterion_group!(benches, apply);
criterion_main!(benches);
