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
