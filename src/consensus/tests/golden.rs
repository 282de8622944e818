//! Golden files of snapshots: for each level of rules, the state to which the golden log of that level leads
//! (`src/ledger/tests/golden`), as a snapshot of format 1. Whatever lies on a disk must stay readable for ever.
//!
//! A file of an older level is never written again. The newest level's is written anew by
//! `RELATCH_BLESS=1 cargo test golden`, as long as that level was never released.

use std::collections::BTreeMap;
use std::path::PathBuf;

use openraft::storage::RaftStateMachine as _;

use super::super::snapshot::{Header, SnapshotFile, Writer};
use super::super::stored::{StoredConfiguration, StoredLogId};
use super::super::type_config::{Member, Membership, StoredMembership};
use super::stores::{id, machine};
use super::*;

fn file(level: u32) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("src/consensus/tests/golden/snapshot-1-of-level-{level}.jsonl"))
}

/// The records of the ledger's own golden file, in the order in which they are stored.
fn records(level: u32) -> BTreeMap<String, Record> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("src/ledger/tests/golden/level-{level}/records.jsonl"));
    let text = std::fs::read_to_string(path).unwrap();
    let records = text.lines().map(|line| serde_json::from_str::<Record>(line).unwrap());
    records.map(|record| (record.key().to_string(), record)).collect()
}

/// The last entry of the golden logs, and a membership that was being changed.
fn header() -> Header {
    let voters = vec![[1, 2, 3].into(), [2, 3].into()];
    let member = |node: u64| (node, Member { address: format!("n{node}:7371"), ..Member::default() });
    let members = Membership::new(voters, [1, 2, 3].map(member).into_iter().collect::<BTreeMap<_, _>>());
    let membership = StoredMembership::new(Some(id(1, 7)), members.unwrap());
    let last = StoredLogId { term: 1, index: 200 };
    Header::new(cluster(), Some(last), StoredConfiguration::from(&membership))
}

fn written(level: u32) -> Vec<u8> {
    let mut writer = Writer::begin(Vec::new(), header()).unwrap();
    for (key, record) in records(level) {
        writer.record(key, record).unwrap();
    }
    writer.end().unwrap()
}

#[tokio::test]
async fn golden_snapshots_of_every_level_are_read_and_are_the_state_that_they_were() {
    if std::env::var_os("RELATCH_BLESS").is_some() {
        std::fs::create_dir_all(file(RULES_LEVEL).parent().unwrap()).unwrap();
        std::fs::write(file(RULES_LEVEL), written(RULES_LEVEL)).unwrap();
    }
    for level in 1..=RULES_LEVEL {
        let path = file(level);
        let mut snapshot = SnapshotFile::open(&path).unwrap();
        let (read, found) = snapshot.read(&cluster()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read, header(), "level {level}");
        assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), records(level), "level {level}");

        let dir = tempfile::tempdir().unwrap();
        let database = open(dir.path());
        let (mut machine, state) = machine(dir.path(), &database);
        let meta = read.meta().unwrap();
        machine.install_snapshot(&meta, snapshot).await.unwrap();
        let installed: Vec<Record> = state.read(|ledger| ledger.records().collect());
        let installed: BTreeMap<String, Record> =
            installed.into_iter().map(|record| (record.key().to_string(), record)).collect();
        assert_eq!(installed, records(level), "level {level}");
        assert_eq!(machine.applied_state().await.unwrap(), (meta.last_log_id, meta.last_membership));
    }
    let newest = std::fs::read(file(RULES_LEVEL)).unwrap();
    assert!(newest == written(RULES_LEVEL), "the stored form of a snapshot changed");
}
