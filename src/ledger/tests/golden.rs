//! Golden files: for each level of rules, a log and the state that it leads to. Whatever lies on a disk must
//! stay readable, and lead to the same state, for ever.
//!
//! A file of an older level is never written again. The newest level's is written anew by
//! `RELATCH_BLESS=1 cargo test golden`, as long as that level was never released.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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

/// Every kind of command, and every status that a run can have.
fn history() -> World {
    let mut world = World::roomy();
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
    let request = ask(&mut world, 1).health_check(check);
    let run = world.open(request);
    let request = ask(&mut world, 1).id("q1-again").digest("01");
    world.decide(request);
    world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
    world.observe(&run, look(1, StartedAt::At(at(200))));
    world.clock_ms = 10;
    let mut well = sighting(StartedAt::At(at(200)));
    well.health = Health::Healthy;
    world.apply(Command::Verify(Box::new(Verify { run, sighting: Some(well) })));
    // Applied, quarantined.
    let request = ask(&mut world, 2);
    let run = world.open(request);
    world.exchanged(&run, lost(true));
    world.observe(&run, look(2, StartedAt::At(at(100))));
    world.observe(&run, look(2, StartedAt::At(at(200))));
    // Not applied, by each proof.
    for (n, cause) in [(3, NotWrittenCause::Unreachable), (4, NotWrittenCause::TicketExpired)] {
        let request = ask(&mut world, n);
        let run = world.open(request);
        world.exchanged(&run, never_written(cause));
    }
    let request = ask(&mut world, 5);
    let run = world.open(request);
    world.exchanged(&run, replied(404, Wire::Unix, EngineProof::Proven));
    let request = ask(&mut world, 6);
    let run = world.open(request);
    world.journal_says(&run, position("a", 9), JournalWord::NoIntent);
    let request = ask(&mut world, 7);
    let run = world.open(request);
    let refusal = NotWritten { cause: NotWrittenCause::AuthorityLost, detail: "test".to_owned() };
    let attestation = Attestation::NeverHandedOn { proposer: proposer(), refusal };
    world.apply(Command::Attest(Box::new(Attest { run, start: None, attestation })));
    // Superseded.
    let request = ask(&mut world, 8);
    let run = world.open(request);
    world.exchanged(&run, lost(false));
    world.observe(&run, Observation::Gone { engine_id: engine("E1"), successor: Some(container("f")) });
    // Unresolved, and interlocked.
    let request = ask(&mut world, 9);
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
    })));
    world.clock_ms = 5_000;
    world.apply(Command::Tick);
    world
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
