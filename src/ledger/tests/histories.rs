//! Random histories: every command, with ids and facts that fit together often enough to matter.

use proptest::prelude::*;

use super::operators::{down, hold, hold_id, of_target};
use super::*;

/// One step of a random history. Its numbers are choices among what there is when it is taken.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Ask { place: u8, request: Option<u8>, caller: u8, paused: bool, stale: bool },
    Refuse { request: Option<u8>, caller: u8 },
    Exchange { run: u8, of_start: bool, kind: u8, right: bool },
    Journal { run: u8, of_start: bool, word: u8, right: bool },
    NeverHandedOn { run: u8, of_start: bool, right: bool },
    Look { run: u8, kind: u8 },
    Verify { run: u8, seen: u8 },
    Start { run: u8, start: u8, kind: u8, stale: bool },
    Resolve { run: u8, by: u8, accept: bool },
    Hold { id: u8, scope: u8, auto: bool, timed: bool },
    Lift { id: u8, scope: Option<u8> },
    EndQuarantine { run: u8 },
    Prune,
    Limits { kind: u8 },
    Bind { host: u8, engine: u8, journal: u8 },
    RemoveHost { host: u8 },
    Clock { forward_ms: i64 },
    Term,
    Reload,
}

pub(super) const CALLERS: [&str; 3] = [ANONYMOUS, "ann", "bob"];
const HOSTS: [&str; 3] = ["local", "edge", "far"];

/// Small enough that every bound is met, and long enough that not everything is.
pub(super) fn tight_limits() -> Limits {
    Limits {
        attempts: 3,
        attempts_window_ms: 2_000_000,
        backoff_first_ms: 20_000,
        in_flight_cluster: 3,
        in_flight_host: 2,
        unresolved_host: 2,
        quarantine_ms: 100_000,
        request_memory_ms: 400_000,
        refusals_per_caller: 3,
        attaches_per_caller: 1,
        ended_runs: 4,
        ended_runs_ms: 1_500_000,
        ..Limits::default()
    }
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let run = || 0..4_u8;
    let asks = (0..9_u8, proptest::option::of(0..8_u8), 0..3_u8, one_in(8), one_in(12)).prop_map(
        |(place, request, caller, paused, stale)| Step::Ask { place, request, caller, paused, stale },
    );
    let evidence = prop_oneof![
        4 => (run(), one_in(2), 0..10_u8, not_one_in(8))
            .prop_map(|(run, of_start, kind, right)| Step::Exchange { run, of_start, kind, right }),
        2 => (run(), one_in(2), 0..5_u8, not_one_in(8))
            .prop_map(|(run, of_start, word, right)| Step::Journal { run, of_start, word, right }),
        1 => (run(), one_in(2), not_one_in(4))
            .prop_map(|(run, of_start, right)| Step::NeverHandedOn { run, of_start, right }),
        4 => (run(), 0..10_u8).prop_map(|(run, kind)| Step::Look { run, kind }),
        3 => (run(), 0..9_u8).prop_map(|(run, seen)| Step::Verify { run, seen }),
    ];
    let operators = prop_oneof![
        8 => (run(), 0..5_u8, 0..6_u8, one_in(12))
            .prop_map(|(run, start, kind, stale)| Step::Start { run, start, kind, stale }),
        1 => (run(), 0..2_u8, one_in(2)).prop_map(|(run, by, accept)| Step::Resolve { run, by, accept }),
        2 => (0..4_u8, 0..5_u8, one_in(4), not_one_in(4))
            .prop_map(|(id, scope, auto, timed)| Step::Hold { id, scope, auto, timed }),
        3 => (0..4_u8, proptest::option::of(0..5_u8)).prop_map(|(id, scope)| Step::Lift { id, scope }),
    ];
    let upkeep = prop_oneof![
        2 => run().prop_map(|run| Step::EndQuarantine { run }),
        3 => Just(Step::Prune),
        1 => (0..5_u8).prop_map(|kind| Step::Limits { kind }),
        1 => (0..3_u8, 0..2_u8, 0..2_u8)
            .prop_map(|(host, engine, journal)| Step::Bind { host, engine, journal }),
        1 => (0..3_u8).prop_map(|host| Step::RemoveHost { host }),
        4 => (-100_000..500_000_i64).prop_map(|forward_ms| Step::Clock { forward_ms }),
        1 => Just(Step::Term),
        1 => Just(Step::Reload),
    ];
    let refusals = (proptest::option::of(0..8_u8), 0..3_u8)
        .prop_map(|(request, caller)| Step::Refuse { request, caller });
    prop_oneof![7 => asks, 1 => refusals, 10 => evidence, 4 => operators, 6 => upkeep]
}

fn one_in(n: u32) -> impl Strategy<Value = bool> {
    prop_oneof![1 => Just(true), n - 1 => Just(false)]
}

fn not_one_in(n: u32) -> impl Strategy<Value = bool> {
    one_in(n).prop_map(|one| !one)
}

fn exchange(kind: u8) -> Exchange {
    match kind {
        0 => never_written(NotWrittenCause::Unreachable),
        1 => lost(false),
        2 => never_written(NotWrittenCause::Held),
        3 => replied(204, Wire::Unix, EngineProof::Proven),
        4 => replied(404, Wire::Unix, EngineProof::Proven),
        5 => replied(502, Wire::Tcp, EngineProof::Unproven),
        6 => lost(true),
        _ => replied(500, Wire::Unix, EngineProof::Proven),
    }
}

fn word(kind: u8) -> JournalWord {
    match kind {
        0 => JournalWord::NoIntent,
        1 | 2 => JournalWord::Intent,
        3 => JournalWord::NotSent,
        _ => JournalWord::Unreachable { detail: "test".to_owned() },
    }
}

fn scope(kind: u8) -> HoldScope {
    let host = HostName::new("local").unwrap();
    match kind {
        0 => HoldScope::Everything,
        1 => HoldScope::Host(host),
        2 => HoldScope::Project { host, project: "shop".to_owned() },
        3 => of_target("local/t0"),
        _ => of_target("edge/shop/t1/1"),
    }
}

/// A look at a run's container: its life before, another one, down, gone, or nothing that can be read.
fn look(baseline: &Baseline, kind: u8) -> Observation {
    let as_before = |seen: Sighting| {
        let Incarnation { engine_id, container_id, .. } = baseline.incarnation.clone();
        Observation::Seen(Sighting { engine_id, container_id, ..seen })
    };
    match kind {
        0 | 1 | 9 => as_before(down()),
        2 | 3 => as_before(sighting(StartedAt::At(at(101)))),
        4 => as_before(sighting(StartedAt::At(at(100)))),
        5 => as_before(sighting(StartedAt::At(at(99)))),
        6 => as_before(sighting(StartedAt::Zero)),
        7 => Observation::Gone { engine_id: baseline.incarnation.engine_id.clone(), successor: None },
        _ => Observation::Unreadable { detail: "test".to_owned() },
    }
}

fn of_caller(mut request: Request, id: Option<u8>, caller: u8) -> Request {
    request.caller = CALLERS[usize::from(caller)].to_owned();
    // Most ids are one caller's alone.
    let text = |n| if n == 0 { "q0".to_owned() } else { format!("{}-{n}", request.caller) };
    request.id = id.map(|n| RequestId::new(text(n)).unwrap());
    // Each caller asks for other content.
    request.digest = format!("0{caller}");
    request
}

impl World {
    pub(super) fn tight() -> Self {
        let mut world = Self::with(tight_limits());
        assert_eq!(world.bind("edge", "E2", "b"), Outcome::Done);
        world
    }

    /// One of the newest runs with an interlock, if there is any.
    fn pick(&self, n: u8) -> Option<Run> {
        let runs: Vec<&Run> =
            self.ledger.runs_newest_first().filter(|run| run.interlock.is_some()).take(4).collect();
        runs.get(usize::from(n) % runs.len().max(1)).map(|run| (*run).clone())
    }

    /// The newest start of a run, where one is meant; and the journal that the order names, or another one.
    fn order(run: &Run, of_start: bool, right: bool) -> (Option<RunId>, JournalPosition) {
        let start = run.starts.last().filter(|_| of_start);
        let named = match start {
            Some(start) => &start.dispatcher.journal,
            None => &run.interlock.as_ref().unwrap().dispatcher.journal,
        };
        let journal = if right { named.journal.clone() } else { journal("f") };
        let at = JournalPosition { journal, sequence: named.sequence + 1 };
        (start.map(|start| start.id.clone()), at)
    }

    /// A request for one of three containers on one of three hosts, as that is bound now.
    fn ask_at(&mut self, place: u8) -> OpenInterlock {
        let (host, n) =
            if place == 8 { (HOSTS[2], 0) } else { (HOSTS[usize::from(place % 2)], place / 2 % 3) };
        let path = if n == 1 { "shop/t1/1".to_owned() } else { format!("t{n}") };
        // The container of one name is another's now and then: it was renamed or made anew.
        let digit = if self.index.is_multiple_of(5) { "9" } else { ["1", "2", "3"][usize::from(n)] };
        let mut ask = self.ask().container(digit).target(&format!("{host}/{path}")).0;
        if let Some(bound) = self.ledger.host(&HostName::new(host).unwrap()) {
            ask.baseline.incarnation.engine_id = bound.engine_id.clone();
            ask.dispatcher = bound.dispatcher.clone();
        }
        if self.index.is_multiple_of(3) {
            ask.baseline.health_check =
                Some(HealthCheck { interval_ms: 1_000, timeout_ms: 500, start_period_ms: 0 });
        }
        ask
    }

    fn start_of(&self, run: &Run, start: u8, kind: u8, stale: bool) -> OpenStart {
        let baseline = run.baseline.as_ref().unwrap();
        let bound = self.ledger.host(run.target.host());
        OpenStart {
            order: RunId::new(format!("0d{:030x}", self.index)).unwrap(),
            // Mostly what such a start is for.
            look: look(baseline, if kind < 4 { 0 } else { kind }),
            dispatcher: bound.map_or_else(
                || run.interlock.as_ref().unwrap().dispatcher.clone(),
                |host| host.dispatcher.clone(),
            ),
            term: Term(self.term.0 + u64::from(stale)),
            ..self.approval(&run.id, u64::from(start))
        }
    }

    /// The command that a step is now; nothing, if it is none or there is nothing that it could be about.
    pub(super) fn command(&mut self, step: &Step) -> Option<Command> {
        Some(match step.clone() {
            Step::Ask { place, request, caller, paused, stale } => {
                let mut ask = self.ask_at(place);
                ask.request = of_caller(ask.request, request, caller);
                ask.term = Term(self.term.0 + u64::from(stale));
                if paused {
                    ask.baseline.state = ContainerState::Paused;
                }
                if self.index.is_multiple_of(7) {
                    ask.diagnosis = Diagnosis::Unhealthy;
                    ask.baseline.health = if caller == 0 { Health::Healthy } else { Health::Unhealthy };
                }
                Command::OpenInterlock(Box::new(ask))
            }
            Step::Refuse { request, caller } => {
                let ask = self.ask().0;
                Command::RefuseRequest(Box::new(RefuseRequest {
                    run: ask.run,
                    request: of_caller(ask.request, request, caller),
                    target: ask.target,
                    reasons: vec![Reason::new(ReasonCode::TargetNotFound, "test", WallTime(1))],
                    diagnosis: if caller == 2 { Diagnosis::Unhealthy } else { Diagnosis::Callers },
                }))
            }
            Step::Exchange { run, of_start, kind, right } => {
                let run = self.pick(run)?;
                let (start, journal) = Self::order(&run, of_start, right);
                let exchange = exchange(kind);
                Command::RecordExchange(Box::new(RecordExchange { run: run.id, start, journal, exchange }))
            }
            Step::Journal { run, of_start, word: kind, right } => {
                let run = self.pick(run)?;
                let (start, at) = Self::order(&run, of_start, right);
                let attestation = Attestation::Journal { at, word: word(kind) };
                Command::Attest(Box::new(Attest { run: run.id, start, attestation }))
            }
            Step::NeverHandedOn { run, of_start, right } => {
                let run = self.pick(run)?;
                let (start, _) = Self::order(&run, of_start, true);
                let mut proposer = proposer();
                if !right {
                    proposer.node = NodeId(9);
                }
                let refusal = NotWritten { cause: NotWrittenCause::AuthorityLost, detail: "test".to_owned() };
                let attestation = Attestation::NeverHandedOn { proposer, refusal };
                Command::Attest(Box::new(Attest { run: run.id, start, attestation }))
            }
            Step::Look { run, kind } => {
                let run = self.pick(run)?;
                let observation = look(run.baseline.as_ref()?, kind);
                Command::Observe(Box::new(Observe { run: run.id, observation }))
            }
            Step::Verify { run, seen: kind } => {
                let run = self.pick(run)?;
                let sighting = match look(run.baseline.as_ref()?, 2) {
                    Observation::Seen(seen) if kind == 0 => {
                        Some(Sighting { health: Health::Healthy, ..seen })
                    }
                    Observation::Seen(seen) if kind == 1 => {
                        Some(Sighting { state: ContainerState::Exited, ..seen })
                    }
                    Observation::Seen(seen) if kind < 7 => Some(seen),
                    _ => None,
                };
                let gone = run.baseline.filter(|_| kind > 7).map(|baseline| baseline.incarnation.engine_id);
                Command::Verify(Box::new(Verify { run: run.id, sighting, unseen: None, gone }))
            }
            Step::Start { run, start, kind, stale } => {
                let run = self.pick(run)?;
                Command::OpenStart(Box::new(self.start_of(&run, start, kind, stale)))
            }
            Step::Resolve { run, by, accept } => Command::Resolve(Box::new(Resolve {
                run: self.pick(run)?.id,
                by: CALLERS[usize::from(by)].to_owned(),
                reason: "test".to_owned(),
                assertion: None,
                accept_late_post: accept,
            })),
            Step::Hold { id, scope: kind, auto, timed } => Command::PlaceHold(Box::new(PlaceHold {
                owner: if auto { HoldOwner::Auto } else { HoldOwner::Operator },
                duration_ms: timed.then_some(200_000),
                ..hold(u64::from(id), scope(kind))
            })),
            Step::Lift { scope: Some(kind), .. } => Command::LiftHold(LiftHold::Scope(scope(kind))),
            Step::Lift { id, scope: None } => Command::LiftHold(LiftHold::Id(hold_id(u64::from(id)))),
            Step::EndQuarantine { run } => Command::EndQuarantine { run: self.pick(run)?.id },
            Step::Prune => Command::Prune,
            Step::Limits { kind } => Command::ChangeLimits(match kind {
                0 => LimitsChange { attempts: Some(2), ..LimitsChange::default() },
                1 => LimitsChange { attempts: Some(4), ..LimitsChange::default() },
                2 => LimitsChange { ended_runs: Some(1), ..LimitsChange::default() },
                3 => LimitsChange { refusals_per_caller: Some(1), ..LimitsChange::default() },
                _ => LimitsChange { quarantine_ms: Some(0), ..LimitsChange::default() },
            }),
            Step::Bind { host, engine: of, journal } => Command::BindHost(BindHost {
                host: HostName::new(HOSTS[usize::from(host)]).unwrap(),
                engine_id: engine(["E1", "E2"][usize::from(of)]),
                dispatcher: DispatcherRef {
                    guard: Guard::Agent,
                    journal: position(["a", "b"][usize::from(journal)], 5),
                },
            }),
            Step::RemoveHost { host } => {
                Command::RemoveHost { host: HostName::new(HOSTS[usize::from(host)]).unwrap() }
            }
            Step::Clock { forward_ms } => {
                self.clock_ms = self.clock_ms.saturating_add_signed(forward_ms);
                return None;
            }
            Step::Term => {
                self.term = Term(self.term.0 + 1);
                return None;
            }
            Step::Reload => {
                self.ledger = self.reloaded();
                return None;
            }
        })
    }

    /// The ledger as another process reads it: from its records, in their stored form.
    pub(super) fn reloaded(&self) -> Ledger {
        let stored = self.ledger.records().map(|record| {
            let text = serde_json::to_string(&record).unwrap();
            (record.key().to_string(), serde_json::from_str(&text).unwrap())
        });
        // In the order of their keys, as they lie on the disk.
        let stored: std::collections::BTreeMap<String, Record> = stored.collect();
        Ledger::load(cluster(), holes(), stored).unwrap()
    }
}
