//! Golden files: for each level of rules, a log and the state that it leads to. Whatever lies on a disk must
//! stay readable, and lead to the same state, for ever.
//!
//! A file of an older level is never written again. The newest level's is written anew by
//! `RELATCH_BLESS=1 cargo test golden`, as long as that level was never released.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::operators::{down, hold, hold_id, journal_word, of_target, start_id};
use super::*;

/// One line of a log.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    term: Term,
    index: LogIndex,
    entry: Stamped,
}

fn file(level: u32, name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("src/ledger/tests/golden/level-{level}/{name}.jsonl"))
}

fn read<T: serde::de::DeserializeOwned>(level: u32, name: &str) -> Vec<T> {
    let path = file(level, name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .map(|line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}: {line}", path.display()))
        })
        .collect()
}

fn write<T: Serialize>(level: u32, name: &str, lines: &[T]) {
    let text: String = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
    std::fs::create_dir_all(file(level, name).parent().unwrap()).unwrap();
    std::fs::write(file(level, name), text).unwrap();
}

/// Applies a log to an empty ledger.
fn replayed(log: &[Line]) -> Ledger {
    let mut ledger = Ledger::new(cluster(), Holes::none());
    for line in log {
        let position = EntryPosition { term: line.term, index: line.index };
        ledger.apply(position, line.entry.clone()).unwrap();
    }
    ledger
}

/// Every kind of command, and every status that a run can have, under each level of rules in turn.
fn history() -> World {
    let mut world = World::under_the_first_rules(roomy_limits());
    under_the_first_rules(&mut world);
    world.apply(Command::RaiseRulesLevel { level: 2 });
    operators_hold(&mut world);
    operators_start(&mut world);
    operators_resolve(&mut world);
    callers_and_hosts(&mut world);
    what_is_forgotten(&mut world);
    world.apply(Command::RaiseRulesLevel { level: 3 });
    what_is_watched(&mut world);
    what_is_told_once(&mut world);
    what_is_asked_for_so(&mut world);
    world.apply(Command::RaiseRulesLevel { level: 4 });
    what_is_not_seen(&mut world);
    what_is_asked_by_name(&mut world);
    holds_that_go_on(&mut world);
    world
}

fn under_the_first_rules(world: &mut World) {
    let check = HealthCheck { interval_ms: 1_000, timeout_ms: 500, start_period_ms: 0 };
    let ask = |world: &mut World, n: u8| {
        let digit = n.to_string();
        world.ask().id(&format!("q{n}")).container(&digit).target(&format!("local/c{n}"))
    };
    let look = |n: u8, started_at| {
        let mut seen = sighting(started_at);
        seen.container_id = container(&n.to_string());
        seen.finished_at = Some(at(150));
        Observation::Seen(seen)
    };

    // Applied, in time, and recovered.
    let request = ask(world, 1).health_check(check);
    let run = world.open(request);
    let request = ask(world, 1).id("q1-again").digest("01");
    world.decide(request);
    world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
    world.observe(&run, look(1, StartedAt::At(at(200))));
    world.clock_ms = 10;
    let mut well = sighting(StartedAt::At(at(200)));
    well.health = Health::Healthy;
    world.verify(&run, Some(well));
    // Applied, quarantined.
    let request = ask(world, 2);
    let run = world.open(request);
    world.exchanged(&run, lost(true));
    world.observe(&run, look(2, StartedAt::At(at(100))));
    world.observe(&run, look(2, StartedAt::At(at(200))));
    // Not applied, by each proof.
    for (n, cause) in [(3, NotWrittenCause::Unreachable), (4, NotWrittenCause::TicketExpired)] {
        let request = ask(world, n);
        let run = world.open(request);
        world.exchanged(&run, never_written(cause));
    }
    let request = ask(world, 5);
    let run = world.open(request);
    world.exchanged(&run, replied(404, Wire::Unix, EngineProof::Proven));
    let request = ask(world, 6);
    let run = world.open(request);
    world.journal_says(&run, position("a", 9), JournalWord::NoIntent);
    let request = ask(world, 7);
    let run = world.open(request);
    let refusal = NotWritten { cause: NotWrittenCause::AuthorityLost, detail: "test".to_owned() };
    let attestation = Attestation::NeverHandedOn { proposer: proposer(), refusal };
    world.apply(Command::Attest(Box::new(Attest { run, start: None, attestation })));
    // Superseded.
    let request = ask(world, 8);
    let run = world.open(request);
    world.exchanged(&run, lost(false));
    world.observe(&run, Observation::Gone { engine_id: engine("E1"), successor: Some(container("f")) });
    // Unresolved, and interlocked.
    let request = ask(world, 9);
    let run = world.open(request);
    world.journal_says(&run, position("b", 9), JournalWord::Intent);
    world.observe(&run, Observation::Unreadable { detail: "test".to_owned() });
    let request = world.ask().id("qa").container("a").target("local/shop/web/1");
    world.open(request);
    // Refused, after a look and before.
    let mut request = world.ask().id("qb").container("b").target("local/cb").state(ContainerState::Paused);
    request.0.expect = Some(Expectation { container_id: container("c"), started_at: at(1) });
    world.decide(request);
    let request = world.ask().id("qc");
    world.apply(Command::RefuseRequest(Box::new(RefuseRequest {
        run: request.0.run,
        request: request.0.request,
        target: request.0.target,
        reasons: vec![Reason::new(ReasonCode::TargetNotFound, "test", WallTime(1))],
        diagnosis: Diagnosis::Callers,
    })));
    world.clock_ms = 5_000;
    world.apply(Command::Tick);
}

/// A request for a container of its own, for each `n`.
fn ask(world: &mut World, n: u8) -> Ask {
    let mut ask = world.ask().id(&format!("r{n}")).target(&format!("local/shop/s{n}/1"));
    ask.0.baseline.incarnation.container_id = container_of(n);
    ask.0.baseline.name = format!("shop-s{n}-1");
    ask
}

fn container_of(n: u8) -> ContainerId {
    ContainerId::new(format!("d0{n:02x}").repeat(16)).unwrap()
}

fn open(world: &mut World, n: u8) -> RunId {
    let ask = ask(world, n);
    world.open(ask)
}

fn look(n: u8, seen: Sighting) -> Observation {
    Observation::Seen(Sighting { container_id: container_of(n), name: format!("shop-s{n}-1"), ..seen })
}

/// Holds of every scope and owner; what they stop; how they end.
fn operators_hold(world: &mut World) {
    let local = || HostName::new("local").unwrap();
    let run = open(world, 0x11);
    world.place(hold(1, HoldScope::Everything));
    world.place(PlaceHold { owner: HoldOwner::Auto, ..hold(2, HoldScope::Host(local())) });
    world.place(PlaceHold {
        duration_ms: Some(1_000),
        ..hold(3, HoldScope::Project { host: local(), project: "shop".to_owned() })
    });
    world.place(hold(4, of_target("local/shop-s1-1")));
    world.place(hold(4, of_target("local/other")));
    world.never_handed_on(&run, NotWrittenCause::Held);
    let ask = ask(world, 0x12).caller("ann");
    world.decide(ask);
    world.lift(LiftHold::Scope(HoldScope::Everything));
    world.lift(LiftHold::Id(hold_id(2)));
    world.clock_ms += 1_000;
}

/// Starts, with every kind of evidence.
fn operators_start(world: &mut World) {
    for n in 0x21..0x28 {
        let run = open(world, n);
        world.exchanged(&run, replied(500, Wire::Unix, EngineProof::Proven));
        world.observe(&run, look(n, down()));
        let start = u64::from(n);
        let mut approval = world.approval(&run, start);
        approval.look = look(n, sighting(StartedAt::At(at(100))));
        world.approve(approval.clone());
        approval.look = look(n, down());
        world.approve(approval.clone());
        world.approve(OpenStart { start: start_id(start + 0x100), ..approval });
        let refusal = NotWritten { cause: NotWrittenCause::IncarnationChanged, detail: "test".to_owned() };
        let never_handed_on = Attestation::NeverHandedOn { proposer: proposer(), refusal };
        let unreachable = JournalWord::Unreachable { detail: "test".to_owned() };
        match n {
            0x21 => drop(world.start_exchanged(&run, start, replied(204, Wire::Unix, EngineProof::Proven))),
            0x22 => drop(world.start_exchanged(&run, start, lost(true))),
            0x23 => drop(world.start_exchanged(&run, start, never_written(NotWrittenCause::TicketExpired))),
            0x24 => drop(world.start_attested(&run, start, journal_word(JournalWord::Intent))),
            0x25 => drop(world.start_attested(&run, start, journal_word(unreachable))),
            0x26 => drop(world.start_attested(&run, start, never_handed_on.clone())),
            _ => {}
        }
        // In any case but one it contradicts what was said, or comes too late.
        world.start_attested(&run, start, never_handed_on);
        if n != 0x27 {
            world.observe(&run, look(n, sighting(StartedAt::At(at(200)))));
        }
    }
}

/// Resolutions, with and without the dispatcher's word; what comes later. Requests for the unhealthy alone.
fn operators_resolve(world: &mut World) {
    let resolve = |run: &RunId, assertion| Resolve {
        run: run.clone(),
        by: "ann".to_owned(),
        reason: "test".to_owned(),
        assertion,
        accept_late_post: assertion.is_some(),
    };
    for (n, assertion) in
        [(0x31, None), (0x32, Some(Assertion::Applied)), (0x33, Some(Assertion::NotApplied))]
    {
        let run = open(world, n);
        let command = resolve(&run, assertion);
        world.apply(Command::Resolve(Box::new(command.clone())));
        world.exchanged(&run, lost(false));
        world.apply(Command::Resolve(Box::new(command)));
        if n == 0x33 {
            world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
        }
    }
    for health in [Health::Healthy, Health::Unhealthy] {
        let mut ask = ask(world, 0x35).id(&format!("{health:?}"));
        ask.0.diagnosis = Diagnosis::Unhealthy;
        ask.0.baseline.health = health;
        world.decide(ask);
    }
    let until = world.ledger.quarantined_runs().last().and_then(|run| run.quarantine).unwrap().until;
    world.clock_ms = until.0;
    let over: Vec<RunId> = world.ledger.quarantined_runs().take(2).map(|run| run.id.clone()).collect();
    for run in over {
        world.apply(Command::EndQuarantine { run });
    }
    // The engine answered 404: who is there instead is set beside it.
    let run = open(world, 0x34);
    world.exchanged(&run, replied(404, Wire::Unix, EngineProof::Proven));
    world.observe(&run, Observation::Gone { engine_id: engine("E1"), successor: Some(container("e")) });
}

/// Shares of callers by name; a host that comes and goes.
fn callers_and_hosts(world: &mut World) {
    world.change_limits(LimitsChange {
        refusals_per_caller: Some(2),
        attaches_per_caller: Some(1),
        ..LimitsChange::default()
    });
    let run = open(world, 0x41);
    for id in ["bob-1", "bob-2"] {
        let attaching = ask(world, 0x41).id(id).caller("bob");
        world.apply(Command::OpenInterlock(Box::new(attaching.0)));
        let refused = ask(world, 0x42).id(&format!("{id}-refused")).caller("ann").state(ContainerState::Dead);
        world.apply(Command::OpenInterlock(Box::new(refused.0)));
    }
    world.exchanged(&run, replied(502, Wire::Tcp, EngineProof::Unproven));
    world.bind("edge", "E2", "b");
    world.bind("local", "E1", "b");
    world.bind("local", "E1", "a");
    for host in ["edge", "local"] {
        world.apply(Command::RemoveHost { host: HostName::new(host).unwrap() });
    }
}

/// Retention, by count; every limit.
fn what_is_forgotten(world: &mut World) {
    let limits = Limits {
        request_memory_ms: 1_000,
        refusals_per_caller: 3,
        attaches_per_caller: 4,
        ended_runs: 20,
        ended_runs_ms: 90_000_000,
        ..roomy_limits()
    };
    world.apply(Command::SetLimits(limits));
    world.clock_ms += 1_000;
    world.apply(Command::Prune);
}

/// Every way in which a verification ends; words for what is seen.
fn what_is_watched(world: &mut World) {
    world.bind("local", "E1", "a");
    let check = HealthCheck { interval_ms: 1_000, timeout_ms: 500, start_period_ms: 0 };
    let seen = |n: u8, state, health| {
        let seen = sighting(StartedAt::At(at(200)));
        Some(Sighting { container_id: container_of(n), state, health, finished_at: Some(at(250)), ..seen })
    };
    let mut applied = Vec::new();
    for n in 0x51..0x58 {
        let mut ask = ask(world, n);
        if n > 0x54 {
            ask = ask.health_check(check);
        }
        let run = world.open(ask);
        world.exchanged(
            &run,
            if n == 0x51 { lost(false) } else { replied(204, Wire::Unix, EngineProof::Proven) },
        );
        world.observe(&run, look(n, sighting(StartedAt::Zero)));
        world.observe(&run, look(n, sighting(StartedAt::At(at(200)))));
        applied.push(run);
    }
    world.verify(&applied[0], seen(0x51, ContainerState::Exited, Health::None));
    world.verify(&applied[4], seen(0x55, ContainerState::Running, Health::Healthy));
    world.clock_ms += 30_000;
    world.verify(&applied[1], seen(0x52, ContainerState::Running, Health::None));
    world.verify(&applied[2], seen(0x53, ContainerState::Restarting, Health::None));
    let unseen = Some("no such container".to_owned());
    world.apply(Command::Verify(Box::new(Verify {
        run: applied[3].clone(),
        sighting: None,
        unseen,
        gone: None,
    })));
    world.verify(&applied[5], seen(0x56, ContainerState::Running, Health::Unhealthy));
}

/// Containers that nobody could see at the end of their windows: by themselves, and with what an engine says.
fn what_is_not_seen(world: &mut World) {
    let mut applied = Vec::new();
    for n in 0x71..0x74 {
        let run = open(world, n);
        world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
        world.observe(&run, look(n, sighting(StartedAt::At(at(200)))));
        applied.push(run);
    }
    world.clock_ms += 30_000;
    for (run, gone) in applied.into_iter().zip([None, Some(engine("E1")), Some(engine("E2"))]) {
        let unseen = Some("test".to_owned());
        world.apply(Command::Verify(Box::new(Verify { run, sighting: None, unseen, gone })));
    }
}

/// Contradictions, and word after a journal that could not be asked.
fn what_is_told_once(world: &mut World) {
    let run = open(world, 0x61);
    let unreachable = JournalWord::Unreachable { detail: "test".to_owned() };
    world.journal_says(&run, position("a", 9), unreachable);
    world.never_handed_on(&run, NotWrittenCause::AuthorityLost);
    for _ in 0..2 {
        world.exchanged(&run, lost(false));
    }
    let run = open(world, 0x62);
    world.journal_says(&run, position("a", 9), JournalWord::Intent);
    for _ in 0..2 {
        world.never_handed_on(&run, NotWrittenCause::AuthorityLost);
    }
    let mut start = world.approval(&run, 0x62);
    start.look = look(0x62, sighting(StartedAt::Empty));
    world.approve(start);
}

/// A hold under the spelling that it was asked for; refusals of what was for the unhealthy alone; limits.
fn what_is_asked_for_so(world: &mut World) {
    let asked_as = Some(of_target("local/shop-s1-1"));
    world.place(PlaceHold { asked_as, ..hold(9, of_target("local/shop/s1/1")) });
    world.place(hold(9, of_target("local/shop-s1-1")));
    let mut ask = ask(world, 0x63);
    ask.0.diagnosis = Diagnosis::Unhealthy;
    world.decide(ask);
    let request = world.ask().id("qd");
    world.apply(Command::RefuseRequest(Box::new(RefuseRequest {
        run: request.0.run,
        request: request.0.request,
        target: request.0.target,
        reasons: vec![Reason::new(ReasonCode::TargetNotFound, "test", WallTime(1))],
        diagnosis: Diagnosis::Unhealthy,
    })));
    for change in [
        LimitsChange { quarantine_ms: Some(86_400_001), ..LimitsChange::default() },
        LimitsChange { attempts: Some(7), ..LimitsChange::default() },
    ] {
        world.apply(Command::ChangeLimits(change));
    }
}

/// Requests of people who said who they are: opened, attached and refused. What a start did, in words.
fn what_is_asked_by_name(world: &mut World) {
    let by = |mut ask: Ask, name: &str| {
        ask.0.request.by = Some(name.to_owned());
        ask
    };
    let opening = by(ask(world, 0x71), "ann");
    let run = world.open(opening);
    let attaching = by(ask(world, 0x71).id("r-bob"), "bob");
    world.decide(attaching);
    let refused = by(ask(world, 0x72).state(ContainerState::Dead), "ann");
    world.decide(refused);
    world.exchanged(&run, replied(500, Wire::Unix, EngineProof::Proven));
    world.observe(&run, look(0x71, down()));
    let mut approval = world.approval(&run, 0x71);
    approval.look = look(0x71, down());
    world.approve(approval);
    world.start_exchanged(&run, 0x71, replied(204, Wire::Unix, EngineProof::Proven));
    world.observe(&run, look(0x71, sighting(StartedAt::At(at(200)))));
}

/// Holds that are renewed in time, too late, and without need.
fn holds_that_go_on(world: &mut World) {
    let renew = |world: &mut World, n| drop(world.apply(Command::RenewHold { hold: hold_id(n) }));
    world.place(PlaceHold { duration_ms: Some(1_000), ..hold(10, of_target("local/c10")) });
    world.place(PlaceHold { duration_ms: Some(300), ..hold(11, of_target("local/c11")) });
    world.place(hold(12, of_target("local/c12")));
    world.clock_ms += 500;
    for n in [10, 11, 12, 13] {
        renew(world, n);
    }
    world.clock_ms += 600;
    renew(world, 10);
}

#[test]
fn golden_files_of_every_level_are_read_and_lead_to_the_same_state() {
    let world = history();
    let log: Vec<Line> = world
        .log
        .iter()
        .map(|(at, entry)| Line { term: at.term, index: at.index, entry: entry.clone() })
        .collect();
    let records: Vec<Record> = world.ledger.records().collect();
    if std::env::var_os("RELATCH_BLESS").is_some() {
        write(RULES_LEVEL, "log", &log);
        write(RULES_LEVEL, "records", &records);
    }
    assert_eq!(read::<Line>(RULES_LEVEL, "log"), log, "an entry's stored form changed");
    assert_eq!(read::<Record>(RULES_LEVEL, "records"), records, "a record's stored form changed");
    for level in 1..=RULES_LEVEL {
        let records: Vec<Record> = read(level, "records");
        let replayed: Vec<Record> = replayed(&read::<Line>(level, "log")).records().collect();
        assert_eq!(replayed, records, "the log of level {level} leads to another state than it did");
    }
}
