//! The log store and the state machine by themselves.

use futures::stream;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt as _, RaftStateMachine as _};
use openraft::testing::log::{StoreBuilder, Suite};
use openraft::{EntryPayload, RaftLogReader as _, StorageError};
use tempfile::TempDir;

use super::super::log_store::{LogStore, Synced};
use super::super::reached::{Keeper, Kept};
use super::super::require_reached;
use super::super::snapshot_folder::SnapshotFolder;
use super::super::state::State;
use super::super::state_machine::{StateMachine, load_ledger};
use super::super::stored::{APPLIED, LOG, StoredLogId, load, log_key};
use super::super::type_config::{Entry, LogId, Proposal, TypeConfig, Vote};
use super::*;
use crate::model::LogIndex;
use crate::storage::Batch;

pub(super) fn machine(dir: &Path, database: &Database) -> (StateMachine, Arc<State>) {
    machine_of(dir, database, cluster())
}

pub(super) fn machine_of(dir: &Path, database: &Database, cluster: ClusterId) -> (StateMachine, Arc<State>) {
    let (ledger, applied) = load_ledger(database, &cluster, Holes::none()).unwrap();
    let state = Arc::new(State::new(NodeId(1), HandClock::at(0), ledger, applied));
    let snapshots = SnapshotFolder::open(dir.join("snapshot"), cluster).unwrap();
    let machine =
        StateMachine::open(database.clone(), Arc::clone(&state), Arc::new(snapshots), Holes::none()).unwrap();
    (machine, state)
}

pub(super) fn id(term: u64, index: u64) -> LogId {
    LogId::new_term_index(term, index)
}

pub(super) fn entry(term: u64, index: u64, command: Command) -> Entry {
    let stamped = stamped(NodeId(1), index * 10, command);
    Entry { log_id: id(term, index), payload: EntryPayload::Normal(Proposal(stamped)) }
}

pub(super) async fn apply(machine: &mut StateMachine, entry: Entry) -> std::io::Result<()> {
    machine.apply(stream::iter([Ok((entry, None))])).await
}

struct Stores;

impl StoreBuilder<TypeConfig, LogStore, StateMachine, TempDir> for Stores {
    async fn build(&self) -> Result<(TempDir, LogStore, StateMachine), StorageError<TypeConfig>> {
        let dir = tempfile::tempdir().unwrap();
        let database = open(dir.path());
        let (machine, _) = machine(dir.path(), &database);
        Ok((dir, LogStore::open(database).unwrap(), machine))
    }
}

#[tokio::test]
async fn the_stores_behave_as_the_library_demands_in_all_of_its_own_cases() {
    Suite::test_all(Stores).await.unwrap();
}

#[tokio::test]
async fn a_vote_and_the_log_are_there_after_a_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path());
    let mut log = LogStore::open(database.clone()).unwrap();
    log.save_vote(&Vote::new_committed(7, 1)).await.unwrap();
    let syncs = database.syncs();
    assert!(syncs >= 1, "a vote is synced before it is answered");
    let entries: Vec<Entry> = (0..5).map(|index| entry(7, index, Command::Tick)).collect();
    log.blocking_append(entries.clone()).await.unwrap();
    assert!(database.syncs() > syncs, "entries are synced before the callback");
    log.save_committed(Some(id(7, 3))).await.unwrap();
    let gone = database.gone();
    drop((log, database));
    gone.wait().await;

    let mut log = LogStore::open(open(dir.path())).unwrap();
    let mut reader = log.get_log_reader().await;
    assert_eq!(reader.read_vote().await.unwrap(), Some(Vote::new_committed(7, 1)));
    assert_eq!(reader.try_get_log_entries(..).await.unwrap(), entries);
    assert_eq!(log.read_committed().await.unwrap(), Some(id(7, 3)));
}

#[tokio::test]
async fn a_log_with_a_hole_is_refused_where_it_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path());
    let mut log = LogStore::open(database.clone()).unwrap();
    log.blocking_append((0..5).map(|index| entry(1, index, Command::Tick))).await.unwrap();
    let mut batch = Batch::new();
    batch.delete(LOG, log_key(2));
    database.write(batch).unwrap();
    assert!(log.get_log_reader().await.try_get_log_entries(..).await.is_err());
    let error = LogStore::open(database).unwrap_err();
    assert!(error.to_string().contains("hole before it, at 2"), "{error}");
}

#[tokio::test]
async fn an_entry_and_its_position_are_stored_together_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let database = open(dir.path());
    let (mut first, _) = machine(dir.path(), &database);
    apply(&mut first, entry(1, 1, bind("a"))).await.unwrap();
    database.let_syncs_fail();
    database.sync("sync-test").unwrap_err();
    apply(&mut first, entry(1, 2, bind("b"))).await.expect_err("a latched database took an entry");
    let gone = database.gone();
    drop((first, database));
    gone.wait().await;

    let database = open(dir.path());
    let applied: StoredLogId = load(&database, APPLIED).unwrap().unwrap();
    let (_, state) = machine(dir.path(), &database);
    let has = |name: &str| state.read(|ledger| ledger.host(&HostName::new(name).unwrap()).is_some());
    assert_eq!((applied.index, has("a"), has("b")), (1, true, false));
    assert_eq!(*state.applied().borrow(), LogIndex(1));
}

#[tokio::test]
async fn a_log_that_ends_before_what_it_is_known_to_have_reached_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let clock = HandClock::at(1);
    let (node, term) = Node::leading(folder.path(), &clock).await;
    let (position, _) = node.propose(term, bind("h1")).await;
    let database = node.database.clone();
    let reached = |index| require_reached(&database, folder.path(), index, folder.path());
    reached(position.index).unwrap();
    reached(LogIndex(position.index.0 + 1)).unwrap_err();
    drop(database);
    node.stop().await;
    // An orderly end has noted it. The whole log is gone, or an older one is in its place.
    std::fs::remove_dir_all(folder.path().join("raft")).unwrap();
    let error =
        Node::start_with(settings(folder.path(), Arc::clone(&clock))).await.err().expect("it started");
    println!("{error}");
    let ConsensusError::LogBehind { end, reached, witness, .. } = error else { panic!("{error}") };
    assert_eq!((end, reached), (LogIndex(0), position.index));
    assert_eq!(witness, folder.path().join("reached.json"));
}

/// Applied is not yet kept: its entry may be on the disks of others alone.
#[tokio::test]
async fn what_is_not_on_disk_here_is_not_noted() {
    let folder = tempfile::tempdir().unwrap();
    let (applied, seen) = tokio::sync::watch::channel(LogIndex(0));
    let synced = Synced::default();
    synced.after_append(7)();
    let keeper = Keeper::start(folder.path(), Kept { applied: seen, synced });
    applied.send_replace(LogIndex(9));
    keeper.close().await;
    let noted = std::fs::read_to_string(folder.path().join("reached.json")).unwrap();
    assert!(noted.contains(r#""index":7,"#), "{noted}");
}

#[test]
fn a_sync_of_what_was_truncated_since_says_nothing_of_what_came_in_its_place() {
    let synced = Synced::default();
    synced.after_append(6)();
    let late = synced.after_append(9);
    synced.truncated(4);
    assert_eq!(synced.index(), LogIndex(4));
    let next = synced.after_append(5);
    late();
    assert_eq!(synced.index(), LogIndex(4), "entry 5 of another leader is not on disk yet");
    next();
    assert_eq!(synced.index(), LogIndex(5));
}
