//! A node that runs: proposals, authority, restarts, time, and what is fatal.

use openraft::async_runtime::WatchReceiver as _;

use super::super::stored::{APPLIED, END, LEDGER, LOG, MEMBERSHIP, RAFT, StoredLogId, load};
use super::super::type_config::Proposal;
use super::*;
use crate::consensus::{AuthorityLost, ProposeError};
use crate::storage::Batch;

#[tokio::test]
async fn a_proposal_is_answered_once_it_is_applied() {
    let dir = tempfile::tempdir().unwrap();
    let (node, term) = Node::leading(dir.path(), &HandClock::at(0)).await;
    let (position, outcome) = node.propose(term, bind("edge")).await;
    assert_eq!((position.term, outcome), (term, Outcome::Done));
    assert!(*node.consensus.applied().borrow() >= position.index);
    assert!(node.consensus.read(|ledger| ledger.host(&HostName::new("edge").unwrap()).is_some()));
    node.stop().await;
}

#[tokio::test]
async fn initializing_twice_or_after_a_restart_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let clock = HandClock::at(0);
    let (node, term) = Node::leading(dir.path(), &clock).await;
    node.consensus.initialize_single().await.unwrap();
    node.propose(term, Command::Tick).await;
    node.stop().await;
    let (node, later) = Node::leading(dir.path(), &clock).await;
    assert!(later > term);
    node.stop().await;
}

#[tokio::test]
async fn the_state_is_the_same_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let clock = HandClock::at(0);
    let (node, term) = Node::leading(dir.path(), &clock).await;
    for host in ["a", "b", "c"] {
        clock.advance(10);
        node.propose(term, bind(host)).await;
    }
    let before = node.records();
    node.stop().await;
    let node = Node::start(dir.path(), &clock).await;
    assert_eq!(node.records(), before);
    node.stop().await;
}

#[tokio::test]
async fn state_that_a_crash_took_is_applied_again_from_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let clock = HandClock::at(0);
    let (node, term) = Node::leading(dir.path(), &clock).await;
    for host in ["a", "b", "c"] {
        clock.advance(10);
        node.propose(term, bind(host)).await;
    }
    let before = node.records();
    node.stop().await;

    // What has no sync of its own is gone: the ledger, its position, its membership.
    let database = open(dir.path());
    let mut batch = Batch::new();
    batch.delete_range(LEDGER, "", END);
    batch.delete(RAFT, APPLIED);
    batch.delete(RAFT, MEMBERSHIP);
    database.write_synced("sync-test", batch).unwrap();
    drop(database);

    let node = Node::start(dir.path(), &clock).await;
    assert_eq!(node.records(), before);
    node.leads().await;
    node.stop().await;
}

#[tokio::test]
async fn a_proposal_of_an_earlier_term_is_refused_and_never_appended() {
    let dir = tempfile::tempdir().unwrap();
    let clock = HandClock::at(0);
    let (node, old) = Node::leading(dir.path(), &clock).await;
    node.propose(old, Command::Tick).await;
    node.stop().await;

    let node = Node::start(dir.path(), &clock).await;
    let new = node.leads().await;
    assert!(new > old, "a restarted leader took up its old term again");
    let log = node.database.last(LOG).unwrap();
    let error = node.consensus.propose(old, bind("edge"), LONG_MS).await.unwrap_err();
    assert!(matches!(error, ProposeError::NotLeader { .. }), "{error}");
    assert_eq!(node.database.last(LOG).unwrap(), log, "nothing was appended");
    node.propose(new, bind("edge")).await;
    node.stop().await;
}

#[tokio::test]
async fn a_node_that_leads_nothing_refuses_proposals_and_has_no_authority() {
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(dir.path(), &HandClock::at(0)).await;
    let error = node.consensus.propose(Term(1), Command::Tick, LONG_MS).await.unwrap_err();
    assert!(matches!(error, ProposeError::NotLeader { leader: None, .. }), "{error}");
    let error = node.consensus.confirm_authority(Term(1), LONG_MS).await.unwrap_err();
    assert!(matches!(error, AuthorityLost::NotLeader { leader: None, .. }), "{error}");
    assert_eq!(*node.consensus.leadership().borrow(), None);
    node.stop().await;
}

#[tokio::test]
async fn authority_is_of_one_term_and_shows_what_was_applied() {
    let dir = tempfile::tempdir().unwrap();
    let clock = HandClock::at(0);
    let (node, old) = Node::leading(dir.path(), &clock).await;
    let (position, _) = node.propose(old, Command::Tick).await;
    let index = node.consensus.confirm_authority(old, LONG_MS).await.unwrap();
    assert!(index >= position.index);
    assert!(*node.consensus.applied().borrow() >= index);
    node.stop().await;

    let node = Node::start(dir.path(), &clock).await;
    let new = node.leads().await;
    let error = node.consensus.confirm_authority(old, LONG_MS).await.unwrap_err();
    assert_eq!(error, AuthorityLost::OtherTerm { term: old, found: new });
    node.stop().await;
}

#[tokio::test]
async fn leadership_is_told_only_once_an_entry_of_that_term_is_applied() {
    let dir = tempfile::tempdir().unwrap();
    let clock = HandClock::at(0);
    let (node, first) = Node::leading(dir.path(), &clock).await;
    let applied: StoredLogId = load(&node.database, APPLIED).unwrap().unwrap();
    assert_eq!(Term(applied.term), first);
    node.stop().await;
    let node = Node::start(dir.path(), &clock).await;
    let second = node.leads().await;
    let applied: StoredLogId = load(&node.database, APPLIED).unwrap().unwrap();
    assert_eq!(Term(applied.term), second);
    node.stop().await;
}

/// Apply is held up by a reader until the proposal has timed out.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_proposal_that_timed_out_is_unknown_since_it_may_still_commit() {
    let dir = tempfile::tempdir().unwrap();
    let (node, term) = Node::leading(dir.path(), &HandClock::at(0)).await;
    let mut applied = node.consensus.applied();
    let before = *applied.borrow();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (entered, has_entered) = tokio::sync::oneshot::channel();
    let reader = node.consensus.clone();
    let reading = tokio::task::spawn_blocking(move || {
        reader.read(|_| {
            entered.send(()).unwrap();
            let _ = released.recv();
        });
    });
    has_entered.await.unwrap();
    let error = node.consensus.propose(term, bind("edge"), 20).await.unwrap_err();
    assert!(matches!(error, ProposeError::Unknown { .. }), "{error}");
    assert_eq!(*applied.borrow(), before);
    // And it does commit.
    release.send(()).unwrap();
    reading.await.unwrap();
    applied.wait_for(|index| *index > before).await.unwrap();
    assert!(node.consensus.read(|ledger| ledger.host(&HostName::new("edge").unwrap()).is_some()));
    node.stop().await;
}

#[tokio::test]
async fn the_cluster_clock_never_steps_back_and_counts_elapsed_time_once() {
    let dir = tempfile::tempdir().unwrap();
    let clock = HandClock::at(500_000);
    let (node, term) = Node::leading(dir.path(), &clock).await;
    let ledger_clock = |node: &Node| node.consensus.read(crate::ledger::Ledger::clock);
    assert_eq!(node.consensus.cluster_time(), ClusterTime(0), "the uptime of the machine does not count");
    clock.advance(5_000);
    assert_eq!(node.consensus.cluster_time(), ClusterTime(5_000));
    node.propose(term, Command::Tick).await;
    node.propose(term, Command::Tick).await;
    assert_eq!(ledger_clock(&node), ClusterTime(5_000));
    clock.advance(70);
    node.stop().await;

    // The machine restarts: its monotonic clock begins anew. Nobody ran meanwhile, nothing is counted.
    let clock = HandClock::at(3);
    let node = Node::start(dir.path(), &clock).await;
    let term = node.leads().await;
    assert_eq!(node.consensus.cluster_time(), ClusterTime(5_000));
    clock.advance(1_000);
    node.propose(term, Command::Tick).await;
    assert_eq!(ledger_clock(&node), ClusterTime(6_000));
    assert_eq!(node.consensus.cluster_time(), ClusterTime(6_000));
    node.stop().await;
}

#[tokio::test]
async fn a_failed_sync_is_fatal_and_ends_leadership() {
    let dir = tempfile::tempdir().unwrap();
    let (node, term) = Node::leading(dir.path(), &HandClock::at(0)).await;
    node.database.let_syncs_fail();
    let error = node.consensus.propose(term, bind("edge"), LONG_MS).await.unwrap_err();
    assert!(matches!(error, ProposeError::Unknown { .. }), "a failed sync is no \"no\": {error}");
    let mut fatal = node.consensus.fatal();
    let why = fatal.wait_for(Option::is_some).await.unwrap().clone();
    assert!(why.as_deref().unwrap().contains("injected"), "{why:?}");
    assert!(node.consensus.leadership().wait_for(Option::is_none).await.is_ok());
    node.stop().await;
}

#[tokio::test]
async fn an_entry_of_newer_rules_stops_the_node_and_is_not_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let (node, term) = Node::leading(dir.path(), &HandClock::at(0)).await;
    let before = node.records();
    let newer = Stamped { level: RULES_LEVEL + 1, ..stamped(NodeId(1), 9, bind("edge")) };
    node.consensus.inner.raft.write(Proposal(newer)).with_leader(term.0).await.unwrap();
    let mut fatal = node.consensus.fatal();
    let why = fatal.wait_for(Option::is_some).await.unwrap().clone().unwrap();
    assert!(why.contains("needs rules level"), "{why}");
    assert_eq!(node.records(), before);
    let error = node.consensus.propose(term, Command::Tick, LONG_MS).await.unwrap_err();
    assert!(matches!(error, ProposeError::Stopped { .. } | ProposeError::Unknown { .. }), "{error}");
    node.stop().await;
}

#[tokio::test]
async fn an_ordered_shutdown_is_not_fatal() {
    let dir = tempfile::tempdir().unwrap();
    let (node, _) = Node::leading(dir.path(), &HandClock::at(0)).await;
    let mut fatal = node.consensus.fatal();
    let mut leadership = node.consensus.leadership();
    node.stop().await;
    // Both signals end with the watcher; the last thing said is "nothing fatal" and "leads nothing".
    while leadership.changed().await.is_ok() {}
    while fatal.changed().await.is_ok() {}
    assert_eq!((*leadership.borrow(), fatal.borrow().clone()), (None, None));
}

#[tokio::test]
async fn data_of_another_node_or_cluster_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let clock = HandClock::at(0);
    Node::start(dir.path(), &clock).await.stop().await;
    let right = settings(dir.path(), Arc::clone(&clock));
    let cluster = ClusterId::new("d".repeat(32)).unwrap();
    let of_other_cluster = Peers::new(Caller { cluster, ..peers(1).caller().clone() });
    for wrong in
        [Settings { peers: peers(2), ..right.clone() }, Settings { peers: of_other_cluster, ..right.clone() }]
    {
        let Err(error) = Node::start_with(wrong).await else { panic!("another node's data was taken") };
        assert!(matches!(error, ConsensusError::OtherOwner { .. }), "{error}");
    }
    Node::start_with(right).await.unwrap().stop().await;
}

#[tokio::test]
async fn snapshots_shorten_the_log_and_a_restart_finds_the_same_state() {
    let dir = tempfile::tempdir().unwrap();
    let clock = HandClock::at(0);
    let mut settings = settings(dir.path(), Arc::clone(&clock));
    settings.tuning.snapshot_entries = 20;
    settings.tuning.kept_entries = 5;
    let node = Node::start_with(settings.clone()).await.unwrap();
    node.consensus.initialize_single().await.unwrap();
    let term = node.leads().await;
    let mut metrics = node.consensus.inner.raft.metrics();
    let mut hosts = 0;
    // Purged in batches, and only what a snapshot holds.
    while metrics.borrow_and_update().purged.is_none() {
        node.propose(term, bind(&format!("host-{hosts}"))).await;
        hosts += 1;
        assert!(hosts < 10_000, "the log was never purged");
    }
    let before = node.records();
    assert_ne!(node.database.first(LOG).unwrap().unwrap().0, super::super::stored::log_key(0));
    node.stop().await;
    let node = Node::start_with(settings).await.unwrap();
    assert_eq!(node.records(), before);
    node.leads().await;
    node.stop().await;
}
