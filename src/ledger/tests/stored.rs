//! The stored forms, and the way back from them.

use super::*;

#[test]
fn a_ledger_loaded_from_its_records_is_the_ledger() {
    let mut world = World::roomy();
    let ask = world.ask().id("q1");
    let run = world.open(ask);
    world.exchanged(&run, lost(true));
    let ask = world.ask().container("2").target("local/other");
    world.open(ask);
    let stored: Vec<(String, Record)> =
        world.ledger.records().map(|record| (record.key().to_string(), record)).collect();
    let loaded = Ledger::load(cluster(), holes(), stored).unwrap();
    assert_eq!(loaded.records().collect::<Vec<_>>(), world.ledger.records().collect::<Vec<_>>());
    let ids = |ledger: &Ledger| ledger.open_runs().map(|run| run.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&loaded), ids(&world.ledger));
}

#[test]
fn the_changes_of_every_entry_add_up_to_the_records() {
    let mut world = World::roomy();
    let mut stored = std::collections::BTreeMap::new();
    for record in world.ledger.records() {
        stored.insert(record.key().to_string(), record);
    }
    for n in 1..4_u64 {
        let digit = n.to_string();
        let ask = world.ask().id(&format!("q{n}")).container(&digit).target(&format!("local/c{n}"));
        let run = ask.0.run.clone();
        for command in [
            Command::OpenInterlock(Box::new(ask.0)),
            Command::RecordExchange(Box::new(RecordExchange {
                run,
                start: None,
                journal: position("a", 6),
                exchange: never_written(NotWrittenCause::TicketExpired),
            })),
        ] {
            world.index += 1;
            world.clock_ms += 10;
            let stamped = Stamped {
                level: RULES_LEVEL,
                clock: ClusterTime(world.clock_ms),
                wall: WallTime(0),
                node: NodeId(1),
                command,
            };
            let entry = EntryPosition { term: Term(1), index: LogIndex(world.index) };
            for change in world.ledger.apply(entry, stamped).unwrap().changes {
                match change.record {
                    Some(record) => drop(stored.insert(change.key.to_string(), record)),
                    None => drop(stored.remove(&change.key.to_string())),
                }
            }
        }
    }
    let whole: std::collections::BTreeMap<_, _> =
        world.ledger.records().map(|record| (record.key().to_string(), record)).collect();
    assert_eq!(stored, whole);
}

#[test]
fn the_records_of_another_cluster_are_refused() {
    let world = World::new();
    let stored = world.ledger.records().map(|record| (record.key().to_string(), record));
    let other = ClusterId::new("f".repeat(32)).unwrap();
    assert!(matches!(Ledger::load(other, holes(), stored), Err(LoadError::OtherCluster { .. })));
}

#[test]
fn a_record_under_another_key_is_refused() {
    let world = World::new();
    let stored = world.ledger.records().map(|record| ("run/1".to_owned(), record));
    assert!(matches!(Ledger::load(cluster(), holes(), stored), Err(LoadError::Misplaced { .. })));
}

/// The records of a ledger, changed.
fn loaded_with(world: &World, change: impl Fn(&mut Vec<Record>)) -> Result<Ledger, LoadError> {
    let mut records: Vec<Record> = world.ledger.records().collect();
    change(&mut records);
    let stored = records.into_iter().map(|record| (record.key().to_string(), record));
    Ledger::load(cluster(), holes(), stored.collect::<Vec<_>>())
}

fn run_in(records: &mut [Record]) -> &mut Run {
    let run = records.iter_mut().find_map(|record| match record {
        Record::Run(run) => Some(run),
        _ => None,
    });
    run.expect("it has a run")
}

#[test]
fn limits_that_break_a_rule_are_refused_wherever_they_come_from() {
    let found = loaded_with(&World::new(), |records| match &mut records[0] {
        Record::Meta(meta) => meta.limits.attempts = 0,
        other => panic!("{other:?}"),
    });
    assert!(matches!(&found, Err(LoadError::Limits(error)) if error.field == "attempts"), "{found:?}");
}

#[test]
fn records_that_no_history_leads_to_are_refused() {
    type Change = fn(&mut Vec<Record>);
    let mut world = World::roomy();
    let ask = world.ask();
    world.open(ask);
    let ask = world.ask().container("2").target("local/other");
    world.open(ask);
    assert!(loaded_with(&world, |_| ()).is_ok());
    let changes: &[(&str, Change)] = &[
        ("lacks an interlock", |records| run_in(records).interlock = None),
        ("lacks the container", |records| run_in(records).baseline = None),
        ("has an interlock", |records| run_in(records).status = Status::Refused { reasons: Vec::new() }),
        ("in quarantine", |records| {
            run_in(records).quarantine = Some(Quarantine { until: ClusterTime(u64::MAX), ended: false });
        }),
        ("is watched", |records| {
            run_in(records).verification = Verification::Pending { until: ClusterTime(u64::MAX) };
        }),
        ("opened another", |records| run_in(records).opened.index = LogIndex(world_index(records))),
        ("so does", |records| run_in(records).target = Target::parse("local/other").unwrap()),
        ("so does", |records| {
            let baseline = run_in(records).baseline.as_mut().unwrap();
            baseline.incarnation.container_id = container("2");
        }),
    ];
    for (why, change) in changes {
        match loaded_with(&world, change) {
            Err(LoadError::Unsound { detail, .. }) if detail.contains(why) => {}
            other => panic!("{why}: {:?}", other.map(|ledger| ledger.records().collect::<Vec<_>>())),
        }
    }
}

/// The place of the newest run among the records.
fn world_index(records: &[Record]) -> u64 {
    let opened = records.iter().filter_map(|record| match record {
        Record::Run(run) => Some(run.opened.index.0),
        _ => None,
    });
    opened.max().unwrap()
}

#[test]
fn two_holds_of_one_entry_are_refused_and_none_is_lost() {
    let mut world = World::new();
    for digit in ["7", "8"] {
        world.apply(Command::PlaceHold(Box::new(PlaceHold {
            id: HoldId::new(digit.repeat(32)).unwrap(),
            scope: HoldScope::Everything,
            owner: HoldOwner::Operator,
            by: "ann".to_owned(),
            reason: "test".to_owned(),
            duration_ms: None,
            asked_as: None,
        })));
    }
    let found = loaded_with(&world, |records| {
        for record in records {
            if let Record::Hold(hold) = record {
                hold.placed.index = LogIndex(9);
            }
        }
    });
    assert!(
        matches!(&found, Err(LoadError::Unsound { detail, .. }) if detail.contains("placed")),
        "{found:?}"
    );
}

#[test]
fn a_variant_with_a_field_that_nobody_knows_is_refused() {
    let wrong = [
        r#"{"written":{"wire":"unix","bytes":1,"reply":{"complete":{"status":204,"proof":"proven","message":""}},"x":1}}"#,
        r#"{"written":{"wire":"unix","bytes":1,"reply":{"complete":{"status":204,"proof":"proven","message":"","x":1}}}}"#,
    ];
    for text in wrong {
        assert!(serde_json::from_str::<Exchange>(text).is_err(), "{text}");
    }
    assert!(
        serde_json::from_str::<Observation>(r#"{"gone":{"engine_id":"E","successor":null,"x":1}}"#).is_err()
    );
    assert!(serde_json::from_str::<JournalWord>(r#"{"unreachable":{"detail":"","x":1}}"#).is_err());
    assert!(serde_json::from_str::<Command>(r#"{"raise-rules-level":{"level":2,"x":1}}"#).is_err());
    assert!(serde_json::from_str::<Status>(r#"{"refused":{"reasons":[],"x":1}}"#).is_err());
    assert!(serde_json::from_str::<HoldScope>(r#"{"project":{"host":"a","project":"b","x":1}}"#).is_err());
}

#[test]
fn a_stored_form_with_a_field_that_nobody_knows_is_refused() {
    let meta = Record::Meta(Meta {
        cluster: cluster(),
        clock: ClusterTime(1),
        limits: Limits::default(),
        rules_level: 1,
    });
    let mut json = serde_json::to_value(&meta).unwrap();
    json["meta"]["surprise"] = serde_json::json!(1);
    assert!(serde_json::from_value::<Record>(json).is_err());
}
