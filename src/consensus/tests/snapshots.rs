//! Snapshots: built on one node, installed on another, and refused where they are not what they say.

use std::fs;

use openraft::EntryPayload;
use openraft::RaftSnapshotBuilder as _;
use openraft::storage::{RaftLogStorage as _, RaftLogStorageExt as _, RaftStateMachine as _};

use super::super::log_store::LogStore;
use super::super::snapshot::SnapshotFile;
use super::super::state_machine::StateMachine;
use super::super::type_config::{Entry, Member, Membership, SnapshotMeta};
use super::stores::{apply, entry, id, machine, machine_of};
use super::*;

fn records(state: &super::super::state::State) -> Vec<Record> {
    state.read(|ledger| ledger.records().collect())
}

/// A state machine with a membership and two hosts, and its snapshot's meta.
async fn filled(dir: &Path, database: &Database) -> (StateMachine, Vec<Record>, SnapshotMeta) {
    let (mut machine, state) = machine(dir, database);
    let members = Membership::new(
        vec![[1, 2, 3].into()],
        [1, 2, 3]
            .map(|node| (node, Member::default()))
            .into_iter()
            .collect::<std::collections::BTreeMap<_, _>>(),
    )
    .unwrap();
    let membership = Entry { log_id: id(1, 1), payload: EntryPayload::Membership(members) };
    apply(&mut machine, membership).await.unwrap();
    apply(&mut machine, entry(1, 2, bind("a"))).await.unwrap();
    apply(&mut machine, entry(2, 3, bind("b"))).await.unwrap();
    let built = machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
    assert_eq!(built.meta.last_log_id, Some(id(2, 3)));
    (machine, records(&state), built.meta)
}

fn file(dir: &Path) -> std::path::PathBuf {
    dir.join("snapshot/current.jsonl")
}

#[tokio::test]
async fn a_snapshot_carries_the_whole_state_to_another_node_and_stays_there() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let database = open(from.path());
    let (_machine, expected, meta) = filled(from.path(), &database).await;

    let other = open(to.path());
    let (mut machine, state) = machine(to.path(), &other);
    // What it held before must be gone afterwards.
    apply(&mut machine, entry(1, 1, bind("stale"))).await.unwrap();
    let snapshot = SnapshotFile::open(&file(from.path())).unwrap();
    machine.install_snapshot(&meta, snapshot).await.unwrap();
    assert_eq!(records(&state), expected);
    assert_eq!(state.applied().borrow().0, 3);
    assert_eq!(machine.applied_state().await.unwrap(), (meta.last_log_id, meta.last_membership.clone()));
    assert_eq!(machine.get_current_snapshot().await.unwrap().unwrap().meta, meta);

    let gone = other.gone();
    drop((machine, other));
    gone.wait().await;
    let other = open(to.path());
    let (mut machine, state) = super::stores::machine(to.path(), &other);
    assert_eq!(records(&state), expected);
    assert_eq!(machine.applied_state().await.unwrap().0, meta.last_log_id);
}

/// A power loss that brought the old tail back beside the new snapshot would leave a log that no start takes.
#[tokio::test]
async fn a_snapshot_takes_its_place_only_after_what_was_truncated_for_it_is_durable() {
    #[cfg(feature = "failpoints")]
    if let Ok(name) = std::env::var("RELATCH_TEST_LOST_SYNC") {
        fail::cfg(name, "return(lose)").unwrap();
    }
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_machine, _, meta) = filled(from.path(), &open(from.path())).await;

    let database = open(to.path());
    let mut log = LogStore::open(database.clone()).unwrap();
    log.blocking_append((0..6).map(|index| entry(1, index, Command::Tick))).await.unwrap();
    let (mut machine, _) = machine(to.path(), &database);
    log.truncate_after(Some(id(1, 0))).await.unwrap();
    database.let_syncs_fail();
    let snapshot = SnapshotFile::open(&file(from.path())).unwrap();
    machine.install_snapshot(&meta, snapshot).await.expect_err("the truncation was not synced");
    assert!(!file(to.path()).exists(), "the snapshot is there, and the log's old tail may return");
}

#[tokio::test]
async fn a_snapshot_shows_the_moment_at_which_it_was_begun() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path());
    let (mut machine, _) = machine(dir.path(), &database);
    apply(&mut machine, entry(1, 1, bind("a"))).await.unwrap();
    let mut builder = machine.get_snapshot_builder().await;
    apply(&mut machine, entry(1, 2, bind("b"))).await.unwrap();
    let mut built = builder.build_snapshot().await.unwrap();
    assert_eq!(built.meta.last_log_id, Some(id(1, 1)));
    let (_, records) = built.snapshot.read(&cluster()).unwrap();
    let keys: Vec<String> = records.into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["host/a", "meta"]);
}

#[tokio::test]
async fn a_snapshot_that_was_slow_to_build_does_not_replace_a_newer_one() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path());
    let (mut machine, _) = machine(dir.path(), &database);
    apply(&mut machine, entry(1, 1, bind("a"))).await.unwrap();
    let old_file = machine.get_snapshot_builder().await.build_snapshot().await.unwrap().snapshot;
    apply(&mut machine, entry(1, 2, bind("b"))).await.unwrap();
    machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
    // The older one arrives last.
    let folder =
        super::super::snapshot_folder::SnapshotFolder::open(dir.path().join("snapshot"), cluster()).unwrap();
    let mut old_file = old_file;
    let header = old_file.header().unwrap();
    let current = folder.adopt(&mut old_file, &header).unwrap();
    assert_eq!(current.meta.last_log_id, Some(id(1, 2)));
    assert_eq!(folder.current().unwrap().unwrap().meta.last_log_id, Some(id(1, 2)));
}

#[tokio::test]
async fn a_snapshot_damaged_in_any_byte_or_cut_anywhere_is_refused_and_changes_nothing() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let database = open(from.path());
    let (_machine, _, meta) = filled(from.path(), &database).await;
    let sound = fs::read(file(from.path())).unwrap();

    let other = open(to.path());
    let (mut machine, state) = machine(to.path(), &other);
    apply(&mut machine, entry(1, 1, bind("mine"))).await.unwrap();
    let before = records(&state);
    let damaged = to.path().join("damaged.jsonl");
    let flips = (0..sound.len()).map(|at| {
        let mut content = sound.clone();
        content[at] ^= 0x04;
        (format!("byte {at} flipped"), content)
    });
    let cuts = (0..sound.len()).step_by(7).map(|at| (format!("cut at {at}"), sound[..at].to_vec()));
    let longer = [("goes on".to_owned(), [sound.as_slice(), b"{}\n"].concat())];
    for (what, content) in flips.chain(cuts).chain(longer) {
        fs::write(&damaged, content).unwrap();
        let snapshot = SnapshotFile::open(&damaged).unwrap();
        assert!(machine.install_snapshot(&meta, snapshot).await.is_err(), "installed although {what}");
        assert_eq!(records(&state), before, "{what}");
        assert!(machine.get_current_snapshot().await.unwrap().is_none(), "{what}");
    }
    // The reason was the damage: the sound one is taken.
    let snapshot = SnapshotFile::open(&file(from.path())).unwrap();
    machine.install_snapshot(&meta, snapshot).await.unwrap();
}

#[tokio::test]
async fn another_clusters_snapshot_is_refused_by_name() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let database = open(from.path());
    let (_machine, _, meta) = filled(from.path(), &database).await;
    let other = open(to.path());
    let (mut machine, _) = machine_of(to.path(), &other, ClusterId::new("d".repeat(32)).unwrap());
    let snapshot = SnapshotFile::open(&file(from.path())).unwrap();
    let error = machine.install_snapshot(&meta, snapshot).await.unwrap_err();
    assert!(error.to_string().contains("it is of cluster cccc"), "{error}");
}

#[tokio::test]
async fn a_snapshot_that_is_not_the_one_announced_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path());
    let (mut machine, _, mut meta) = filled(dir.path(), &database).await;
    meta.last_log_id = Some(id(2, 4));
    let snapshot = SnapshotFile::open(&file(dir.path())).unwrap();
    let error = machine.install_snapshot(&meta, snapshot).await.unwrap_err();
    assert!(error.to_string().contains("it is the snapshot"), "{error}");
}

#[test]
fn what_a_crash_left_half_written_is_cleared_away() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("snapshot");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("0.tmp"), "half").unwrap();
    super::super::snapshot_folder::SnapshotFolder::open(folder.clone(), cluster()).unwrap();
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
}
