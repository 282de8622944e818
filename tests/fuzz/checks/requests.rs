//! What clients send: what is found well-formed fits into the ledger and into the log.

use prost::Message;
use relatch::api::fuzzing::{Request, WellFormed, well_formed};
use relatch::consensus::fuzzing::{Form, rewrite};
use relatch::coordinator::{ApproveRequest, HoldRequest, RecoveryRequest, ResolveRequest};
use relatch::ledger::{
    BindHost, Command, DispatcherRef, EntryPosition, Guard, HoldOwner, HoldScope, Ledger, LiftHold,
    OpenInterlock, OpenStart, Outcome, Proposer, RULES_LEVEL, Record, Rejection, Request as Asked, Resolve,
    Stamped,
};
use relatch::model::{
    ClusterId, ClusterTime, ContainerId, ContainerState, EngineId, EngineInstant, Grace, GraceSource, Health,
    HoldId, Holes, HostName, Incarnation, JournalId, JournalPosition, LogIndex, NodeId, Observation,
    ProcessNonce, RunId, Sighting, StartedAt, Term, WallTime,
};
use serde_json::json;

use super::choice;
use super::messages::told;

/// The first byte says which request the bytes after it are.
pub fn check(data: &[u8]) {
    let (kind, bytes) = choice(data);
    let Some(request) = decoded(kind, bytes) else { return };
    match well_formed(&request, &run_id("a")) {
        Ok(fits) => accepted(fits),
        Err(status) => {
            let text = status.message();
            assert_eq!(status.code(), tonic::Code::InvalidArgument, "{text}");
            // As much of each wrong field is shown as a person needs, whatever was sent.
            assert!(text.len() < 64 * 1024 || bytes.len() > 16 * 1024, "{} bytes: {text:.2000}", text.len());
        }
    }
}

fn decoded(kind: u8, bytes: &[u8]) -> Option<Request> {
    macro_rules! one {
        ($name:ident, $message:ident) => {{
            told::<relatch::rpc::v1::$message>(stringify!($message), bytes);
            Request::$name(Message::decode(bytes).ok()?)
        }};
    }
    Some(match kind % 9 {
        0 => one!(RequestRecovery, RequestRecoveryRequest),
        1 => one!(Explain, ExplainRequest),
        2 => one!(ResolveRun, ResolveRunRequest),
        3 => one!(ApproveStart, ApproveStartRequest),
        4 => one!(GetRun, GetRunRequest),
        5 => one!(ListRuns, ListRunsRequest),
        6 => one!(PlaceHold, PlaceHoldRequest),
        7 => one!(LiftHold, LiftHoldRequest),
        _ => one!(SetLimits, SetLimitsRequest),
    })
}

fn run_id(digit: &str) -> RunId {
    RunId::new(digit.repeat(32)).expect("32 hex digits")
}

/// A ledger with one host, to which each command becomes the next entry.
struct World {
    ledger: Ledger,
    index: u64,
}

impl World {
    fn new() -> Self {
        let cluster = ClusterId::new("c".repeat(32)).expect("32 hex digits");
        let mut world = Self { ledger: Ledger::new(cluster, Holes::none()), index: 0 };
        world.apply(Command::RaiseRulesLevel { level: RULES_LEVEL });
        let host = HostName::new("local").expect("a host name");
        world.apply(Command::BindHost(BindHost { host, engine_id: engine(), dispatcher: dispatcher() }));
        world
    }

    /// Applies a command as it comes out of the log.
    fn apply(&mut self, command: Command) -> Outcome {
        self.index += 1;
        let stamped = Stamped {
            level: RULES_LEVEL,
            clock: ClusterTime(self.index),
            wall: WallTime(0),
            node: NodeId(1),
            command,
        };
        let entry = json!({"id": {"term": 1, "index": self.index}, "payload": {"command": &stamped}});
        let written = serde_json::to_vec(&entry).expect("an entry is JSON");
        if let Err(error) = rewrite(Form::Entry, &written) {
            panic!("a log that cannot be read again: {error}: {entry}");
        }
        let position = EntryPosition { term: Term(1), index: LogIndex(self.index) };
        let outcome = self.ledger.apply(position, stamped).expect("its rules are known").outcome;
        self.reads_back();
        outcome
    }

    fn reads_back(&self) {
        let records = self.ledger.records().map(|record| {
            let text = serde_json::to_vec(&record).expect("a record is JSON");
            let read: Record = serde_json::from_slice(&text)
                .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&text)));
            assert_eq!(read, record);
            (read.key().to_string(), read)
        });
        let loaded = Ledger::load(self.ledger.cluster().clone(), Holes::none(), records.collect::<Vec<_>>());
        let loaded = loaded.unwrap_or_else(|error| panic!("the ledger cannot be loaded again: {error}"));
        assert!(loaded.records().eq(self.ledger.records()), "it is another ledger");
    }
}

fn engine() -> EngineId {
    EngineId::new("E1").expect("an engine id")
}

fn dispatcher() -> DispatcherRef {
    let journal = JournalId::new("a".repeat(32)).expect("32 hex digits");
    DispatcherRef { guard: Guard::Agent, journal: JournalPosition { journal, sequence: 5 } }
}

fn proposer() -> Proposer {
    Proposer { node: NodeId(1), nonce: ProcessNonce::new("d".repeat(32)).expect("32 hex digits") }
}

fn is_accepted(outcome: &Outcome) {
    let wrong = matches!(outcome, Outcome::Rejected(Rejection::Invalid { .. }));
    assert!(!wrong, "what was found well-formed is refused: {outcome:?}");
}

fn accepted(fits: WellFormed) {
    let mut world = World::new();
    match fits {
        WellFormed::Recovery(asked) => recovery(&mut world, asked),
        WellFormed::Resolve(ResolveRequest { run, by, reason, assertion, accept_late_post }) => {
            world.apply(opened("web"));
            let resolve = Resolve { run, by, reason, assertion, accept_late_post };
            is_accepted(&world.apply(Command::Resolve(Box::new(resolve))));
        }
        WellFormed::Approve(ApproveRequest { run, by, reason, start }) => {
            world.apply(opened("web"));
            let open = OpenStart {
                run,
                start: start.unwrap_or_else(|| run_id("b")),
                order: run_id("c"),
                by,
                reason,
                look: look(),
                proposer: proposer(),
                dispatcher: dispatcher(),
                term: Term(1),
            };
            is_accepted(&world.apply(Command::OpenStart(Box::new(open))));
        }
        WellFormed::Hold(HoldRequest { scope, by, reason, duration_ms, id }) => {
            let id = id.unwrap_or_else(|| HoldId::new("9".repeat(32)).expect("32 hex digits"));
            let scope = as_no_container_answers(scope);
            let place = relatch::ledger::PlaceHold {
                id,
                scope: scope.clone(),
                asked_as: None,
                owner: HoldOwner::Operator,
                by,
                reason,
                duration_ms,
            };
            let outcome = world.apply(Command::PlaceHold(Box::new(place)));
            assert!(matches!(outcome, Outcome::Held { repeated: false, .. }), "{outcome:?}");
            let lifted = world.apply(Command::LiftHold(LiftHold::Scope(scope)));
            let over = duration_ms.is_some_and(|ms| ms <= world.index);
            assert!(over || matches!(&lifted, Outcome::Lifted(holds) if holds.len() == 1), "{lifted:?}");
        }
        WellFormed::Lift(which, by) => {
            assert!(!by.trim().is_empty());
            let which = match which {
                LiftHold::Scope(scope) => LiftHold::Scope(as_no_container_answers(scope)),
                id @ LiftHold::Id(_) => id,
            };
            is_accepted(&world.apply(Command::LiftHold(which)));
        }
        WellFormed::Limits(change) => {
            world.apply(Command::ChangeLimits(change));
            assert_eq!(world.ledger.limits().check(), Ok(()));
            // Whatever they are now, requests are decided, and time passes.
            world.apply(opened("web"));
            world.apply(Command::Tick);
            world.apply(Command::Prune);
        }
        WellFormed::Read => {}
    }
}

/// A hold of a target that no container answers to stays as it was spelled.
fn as_no_container_answers(scope: HoldScope) -> HoldScope {
    match scope {
        HoldScope::Target(spelling) => HoldScope::Target(spelling.first_replica()),
        other => other,
    }
}

fn recovery(world: &mut World, asked: RecoveryRequest) {
    let Command::OpenInterlock(mut open) = opened("web") else { return };
    let term = open.term;
    open.request = Asked {
        id: asked.id,
        caller: asked.caller,
        by: asked.by,
        digest: asked.digest,
        reason: asked.reason,
        spelling: asked.spelling.to_string(),
    };
    open.target = asked.spelling;
    open.expect = asked.expect;
    open.diagnosis = asked.diagnosis;
    open.grace.seconds = asked.grace_s.unwrap_or(10);
    let again = Command::OpenInterlock(open.clone());
    let outcome = world.apply(Command::OpenInterlock(open));
    let Outcome::Decided(decision) = &outcome else { panic!("not decided: {outcome:?}") };
    let run = world.ledger.run(&decision.run).expect("it has a run");
    assert!(run.opened.term == term && (run.is_open() || !run.reasons().is_empty()), "{run:?}");
    world.apply(again);
}

/// Run `a…` of a container of that name, running and well.
fn opened(name: &str) -> Command {
    let target = relatch::model::Target::parse(&format!("local/{name}")).expect("a target");
    Command::OpenInterlock(Box::new(OpenInterlock {
        run: run_id("a"),
        request: Asked {
            id: None,
            caller: relatch::ledger::ANONYMOUS.to_owned(),
            by: None,
            digest: String::new(),
            reason: "test".to_owned(),
            spelling: target.to_string(),
        },
        target,
        baseline: relatch::ledger::Baseline {
            incarnation: Incarnation { engine_id: engine(), container_id: container(), started_at: at() },
            name: name.to_owned(),
            state: ContainerState::Running,
            health: Health::Unhealthy,
            health_check: None,
        },
        expect: None,
        grace: Grace { seconds: 10, source: GraceSource::Request },
        diagnosis: relatch::ledger::Diagnosis::Callers,
        proposer: proposer(),
        dispatcher: dispatcher(),
        term: Term(1),
    }))
}

fn container() -> ContainerId {
    ContainerId::new("1".repeat(64)).expect("64 hex digits")
}

fn at() -> EngineInstant {
    EngineInstant::new(100, 0).expect("an instant")
}

fn look() -> Observation {
    Observation::Seen(Sighting {
        engine_id: engine(),
        container_id: container(),
        name: "web".to_owned(),
        started_at: StartedAt::At(at()),
        finished_at: None,
        state: ContainerState::Exited,
        health: Health::None,
    })
}
