//! A ledger of records that were changed on the disk: it is refused, or keeps its own rules.

use std::collections::{BTreeMap, BTreeSet};

use relatch::ledger::{
    Attest, Attestation, Baseline, Command, EntryPosition, Ledger, LiftHold, LoadError, Observe,
    OpenInterlock, OpenStart, Outcome, RULES_LEVEL, Record, RecordExchange, Request, Resolve, Run, Stamped,
    Verification, Verify,
};
use relatch::model::{
    ClusterId, ContainerState, Exchange, Holes, JournalWord, LogIndex, LostReply, NodeId, NotWritten,
    NotWrittenCause, Observation, Reply, RunId, Term, WallTime, Wire,
};

/// Each line is a record; a line that is none is passed over. What of it was loaded is then made to go on.
pub fn check(data: &[u8]) {
    let records = records(data);
    let Ok(ledger) = load(&records) else { return };
    holds_together(&ledger);
    let stored: Vec<Record> = ledger.records().collect();
    let kept: BTreeMap<String, Record> =
        stored.iter().map(|record| (record.key().to_string(), record.clone())).collect();
    for (key, record) in &records {
        assert_eq!(kept.get(key), Some(record), "{key} is lost");
    }
    goes_on(ledger);
}

/// The records of a text, by their keys. As in a database, the last of a key counts.
pub fn records(data: &[u8]) -> BTreeMap<String, Record> {
    let lines = data.split(|byte| *byte == b'\n');
    let records = lines.filter_map(|line| serde_json::from_slice::<Record>(line).ok());
    records.map(|record| (record.key().to_string(), record)).collect()
}

fn load(records: &BTreeMap<String, Record>) -> Result<Ledger, LoadError> {
    let cluster = records.values().find_map(|record| match record {
        Record::Meta(meta) => Some(meta.cluster.clone()),
        _ => None,
    });
    let cluster = cluster.unwrap_or_else(|| ClusterId::new("c".repeat(32)).expect("32 hex digits"));
    Ledger::load(cluster, Holes::none(), records.clone())
}

/// Every look-up tells the same as the runs themselves, and no two runs stand for one thing.
fn holds_together(ledger: &Ledger) {
    let runs: BTreeMap<&RunId, &Run> = ledger.runs_newest_first().map(|run| (&run.id, run)).collect();
    let stored = ledger.records().filter(|record| matches!(record, Record::Run(_))).count();
    assert_eq!(runs.len(), stored, "a run is not found by its opening");
    let ids = |found: &mut dyn Iterator<Item = &Run>| -> BTreeSet<RunId> {
        found.map(|run| run.id.clone()).collect()
    };
    let those = |which: &dyn Fn(&Run) -> bool| -> BTreeSet<RunId> {
        runs.values().filter(|run| which(run)).map(|run| run.id.clone()).collect()
    };
    let after_first = |run: &Run| run.changed() > LogIndex(0);
    assert_eq!(ids(&mut ledger.runs_changed_after(LogIndex(0))), those(&after_first), "by their changes");
    assert_eq!(ids(&mut ledger.open_runs()), those(&Run::is_open), "the open ones");
    let watched = |run: &Run| matches!(run.verification, Verification::Pending { .. });
    assert_eq!(ids(&mut ledger.verifying_runs()), those(&watched), "the watched ones");
    let closed = |run: &Run| run.quarantine.is_some_and(|quarantine| !quarantine.ended);
    assert_eq!(ids(&mut ledger.quarantined_runs()), those(&closed), "those in quarantine");

    let (mut targets, mut containers) = (BTreeSet::new(), BTreeSet::new());
    let clock = ledger.clock();
    for run in runs.values().filter(|run| run.is_open() || run.is_quarantined(clock)) {
        let (Some(baseline), Some(_)) = (&run.baseline, &run.interlock) else {
            panic!("run {} stands without an interlock", run.id);
        };
        let incarnation = &baseline.incarnation;
        assert!(targets.insert(&run.target), "two runs stand for {}", run.target);
        let container = (&incarnation.engine_id, &incarnation.container_id);
        assert!(containers.insert(container), "two runs stand for {container:?}");
        let found = ledger.standing_for_target(&run.target).map(|run| &run.id);
        assert_eq!(found, Some(&run.id), "what stands for {}", run.target);
    }
}

/// Each run hears a word of each kind; then time passes, and what is over is forgotten.
fn goes_on(mut ledger: Ledger) {
    let runs: Vec<Run> = ledger.runs_newest_first().take(8).cloned().collect();
    let newest = ledger.runs_newest_first().map(Run::changed).max().unwrap_or(LogIndex(0));
    let mut index = newest.0.max(1_000);
    let mut step = |ledger: &mut Ledger, command: Command, after_ms: u64| -> Option<Outcome> {
        index = index.checked_add(1)?;
        let stamped = Stamped {
            level: RULES_LEVEL,
            clock: ledger.clock().after_ms(after_ms),
            wall: WallTime(0),
            node: NodeId(1),
            command,
        };
        let position = EntryPosition { term: Term(9), index: LogIndex(index) };
        Some(ledger.apply(position, stamped).expect("its rules are known").outcome)
    };
    step(&mut ledger, Command::RaiseRulesLevel { level: RULES_LEVEL }, 1);
    for run in &runs {
        for command in words_about(run) {
            if let Some(outcome) = step(&mut ledger, command, 1) {
                let text = serde_json::to_vec(&outcome).expect("an outcome is JSON");
                let again: Outcome = serde_json::from_slice(&text).expect("an outcome reads back");
                assert_eq!(again, outcome);
            }
            holds_together(&ledger);
        }
    }
    let held: Vec<_> = ledger.holds().take(4).map(|hold| hold.id.clone()).collect();
    for id in held {
        step(&mut ledger, Command::LiftHold(LiftHold::Id(id)), 1);
    }
    for after_ms in [1_000, 3_600_000, 100 * 86_400_000, u64::MAX] {
        step(&mut ledger, Command::Tick, after_ms);
        let passed: Vec<RunId> = ledger.quarantined_runs().map(|run| run.id.clone()).take(8).collect();
        for run in passed {
            step(&mut ledger, Command::EndQuarantine { run }, 1);
        }
        step(&mut ledger, Command::Prune, 1);
        holds_together(&ledger);
    }
    let records = ledger.records().map(|record| (record.key().to_string(), record)).collect();
    let loaded = load(&records).unwrap_or_else(|error| panic!("what it became is refused: {error}"));
    assert!(loaded.records().eq(ledger.records()), "what it became is not what it was");
}

/// What may be said about a run.
fn words_about(run: &Run) -> Vec<Command> {
    let id = run.id.clone();
    let mut words = vec![Command::EndQuarantine { run: id.clone() }];
    let Some(interlock) = &run.interlock else { return words };
    words.extend(run.baseline.clone().map(|baseline| {
        Command::OpenInterlock(Box::new(OpenInterlock {
            run: RunId::new(format!("d{}", &id.as_str()[1..])).expect("32 hex digits"),
            request: Request { id: None, ..run.request.clone() },
            target: run.target.clone(),
            baseline: Baseline { state: ContainerState::Running, ..baseline },
            expect: None,
            grace: interlock.grace,
            diagnosis: interlock.diagnosis,
            proposer: interlock.proposer.clone(),
            dispatcher: interlock.dispatcher.clone(),
            term: Term(9),
        }))
    }));
    let journal = interlock.dispatcher.journal.clone();
    let exchange = |exchange| {
        Command::RecordExchange(Box::new(RecordExchange {
            run: id.clone(),
            start: None,
            journal: journal.clone(),
            exchange,
        }))
    };
    let attest =
        |attestation| Command::Attest(Box::new(Attest { run: id.clone(), start: None, attestation }));
    let refusal = NotWritten { cause: NotWrittenCause::Held, detail: "test".to_owned() };
    let gone = run.baseline.as_ref().map(|baseline| Observation::Gone {
        engine_id: baseline.incarnation.engine_id.clone(),
        successor: None,
    });
    let observe =
        |observation: Observation| Command::Observe(Box::new(Observe { run: id.clone(), observation }));
    words.extend(run.observation.clone().map(observe));
    if let Some(look) = run.observation.clone() {
        words.push(Command::OpenStart(Box::new(OpenStart {
            run: id.clone(),
            start: RunId::new("e".repeat(32)).expect("32 hex digits"),
            order: RunId::new("f".repeat(32)).expect("32 hex digits"),
            by: "ann".to_owned(),
            reason: "test".to_owned(),
            look,
            proposer: interlock.proposer.clone(),
            dispatcher: interlock.dispatcher.clone(),
            term: Term(9),
        })));
    }
    words.extend([
        attest(Attestation::NeverHandedOn { proposer: interlock.proposer.clone(), refusal }),
        attest(Attestation::Journal { at: journal.clone(), word: JournalWord::Intent }),
        exchange(Exchange::Written {
            wire: Wire::Unix,
            bytes: 80,
            reply: Reply::Lost(LostReply { status: None, timed_out: true, detail: "test".to_owned() }),
        }),
        attest(Attestation::Journal { at: journal.clone(), word: JournalWord::NoIntent }),
    ]);
    words.extend(gone.map(observe));
    words.push(Command::Verify(Box::new(Verify {
        run: id.clone(),
        sighting: None,
        unseen: None,
        gone: None,
    })));
    words.push(Command::Resolve(Box::new(Resolve {
        run: id.clone(),
        by: "ann".to_owned(),
        reason: "test".to_owned(),
        assertion: None,
        accept_late_post: true,
    })));
    words
}
