//! What is left when the machine loses its power: everything that somebody was told of.
//!
//! Each of these fails once the sync that it is about is left out (`tests/holes.txt`).

use std::fs;
use std::path::Path;

use relatch::consensus;
use relatch::env::OsRandomness;
use relatch::model::NodeId;
use relatch::sim::ContainerSpec;
use relatch::storage::{Batch, DataDir, Database, Identity};

use crate::World;
use crate::support::disk::{self, Disk, Unsynced};
use crate::support::node::{LOST_SYNC, Node};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_is_known_after_a_loss_of_power() {
    let mut world = World::of([ContainerSpec::named("web"), ContainerSpec::named("other")]).await;
    let disk = world.on_disk();
    let node = Node::start(&world.options);
    let applied = node.recover("local/web", &["--grace", "0s", "--wait=applied"]).run_id();
    let refused = node.recover("local/web", &["--grace", "0s"]);
    assert_eq!(refused.json["decision"], "DECISION_REFUSED", "{refused:?}");
    let hold = node.cli(&["hold", "local/other", "--by", "kim", "--reason", "migration"]);
    assert_eq!(hold.exit, 0, "{hold:?}");
    node.kill();
    for loss in [Unsynced::Cut(700), Unsynced::Zeroed(300), Unsynced::Lost] {
        disk.lose_power(loss);
        Node::start(&world.options).kill();
    }
    let node = Node::start(&world.options);
    assert_eq!(node.run(&applied)["status"], "RUN_STATUS_APPLIED");
    assert_eq!(node.run(&refused.run_id())["status"], "RUN_STATUS_REFUSED");
    let held = node.recover("local/other", &[]);
    assert!(held.json.to_string().contains("migration"), "{held:?}");
    assert_eq!(world.posts(), 1);
    node.stop();
}

/// A vote that is forgotten could be cast twice in one term.
#[tokio::test(flavor = "multi_thread")]
async fn a_vote_is_on_disk_before_anybody_hears_of_it() {
    let mut world = World::new().await;
    let disk = world.on_disk();
    // The sync takes long enough for whoever does not wait for it to be seen.
    let killed = world.options.clone().failpoints("sync-log=sleep(500);raft_vote_saved=return(kill)");
    if let Some(node) = Node::start_unless_killed(&killed) {
        node.killed_by_failpoint();
    }
    disk.lose_power(Unsynced::Lost);
    let database = Database::open(world.options.data_dir.join("raft"), consensus::FAMILIES).unwrap();
    let vote = database.get("raft_v1", "vote").unwrap().expect("the vote is there");
    println!("{}", String::from_utf8_lossy(&vote));
}

/// What the journal forgot it had sent would be said never to have been.
#[tokio::test(flavor = "multi_thread")]
async fn an_intent_is_on_disk_before_the_first_byte() {
    let run = settled_without_power("dispatch-after-first-byte", 1).await;
    assert!(run["status"] == "RUN_STATUS_APPLIED" || run["status"] == "RUN_STATUS_UNRESOLVED", "{run:#}");
}

/// A journal that begins anew proves nothing of the runs that name the one before.
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_is_on_disk_before_an_interlock_names_it() {
    let run = settled_without_power("dispatch-before-connect", 0).await;
    assert_eq!(run["status"], "RUN_STATUS_NOT_APPLIED", "{run:#}");
}

/// A first run that lost its node, and the power, at a failpoint: what the next start says of it first.
async fn settled_without_power(failpoint: &str, posts: usize) -> serde_json::Value {
    let mut world = World::new().await;
    let disk = world.on_disk();
    world.kill_at(failpoint);
    disk.lose_power(Unsynced::Lost);
    let node = Node::start(&world.options);
    let run = node.recover("local/web", &["--grace", "1s", "--request-id", "q1"]).run_id();
    let run = node.wait_for_run(&run, "a first word of it", |run| run["status"] != "RUN_STATUS_INTERLOCKED");
    assert_eq!(world.posts(), posts, "{run:#}");
    node.stop();
    run
}

#[test]
fn a_new_data_directory_and_its_identity_are_durable_when_it_is_open() {
    if let Some(root) = disk::child() {
        lose_the_sync_that_is_asked_for();
        let identity = Identity::mint(&OsRandomness, NodeId(1)).unwrap();
        fs::write(root.with_extension("expected"), identity.cluster.to_string()).unwrap();
        let dir = DataDir::open(root.join("above/data"), || Ok(identity)).unwrap();
        drop(dir);
        disk::die();
    }
    let (root, disk) = bare_disk();
    disk.child("power::a_new_data_directory_and_its_identity_are_durable_when_it_is_open");
    disk.lose_power(Unsynced::Lost);
    let again =
        DataDir::open(root.path().join("above/data"), || panic!("a second identity was minted")).unwrap();
    let expected =
        fs::read_to_string(root.path().canonicalize().unwrap().with_extension("expected")).unwrap();
    assert_eq!(again.identity().cluster.to_string(), expected);
}

/// A start was killed between making the folder and syncing the one above.
#[test]
fn a_data_directory_that_a_killed_start_has_made_is_durable_with_its_identity() {
    if let Some(root) = disk::child() {
        lose_the_sync_that_is_asked_for();
        for made in ["above", "above/data"] {
            fs::create_dir(root.join(made)).unwrap();
        }
        let identity = Identity::mint(&OsRandomness, NodeId(1)).unwrap();
        for data in ["above/data", "above/other"] {
            drop(DataDir::open(root.join(data), || Ok(identity.clone())).unwrap());
        }
        disk::die();
    }
    let (root, disk) = bare_disk();
    disk.child("power::a_data_directory_that_a_killed_start_has_made_is_durable_with_its_identity");
    disk.lose_power(Unsynced::Lost);
    for data in ["above/data", "above/other"] {
        drop(DataDir::open(root.path().join(data), || panic!("a second identity was minted")).unwrap());
    }
}

/// The marker tells a log that is gone from one that never was.
#[test]
fn that_there_was_a_log_is_durable_when_it_is_said() {
    if let Some(root) = disk::child() {
        let dir = DataDir::open(root.join("data"), || Ok(Identity::mint(&OsRandomness, NodeId(1)).unwrap()));
        let dir = dir.unwrap();
        lose_the_sync_that_is_asked_for();
        dir.mark_initialized().unwrap();
        disk::die();
    }
    let (root, disk) = bare_disk();
    disk.child("power::that_there_was_a_log_is_durable_when_it_is_said");
    disk.lose_power(Unsynced::Lost);
    assert!(DataDir::open(root.path().join("data"), || panic!("it had one")).unwrap().is_initialized());
}

/// As when an operator has moved a damaged journal away, and a new one is begun.
#[test]
fn a_new_database_is_durable_with_its_first_sync() {
    const FAMILY: &str = "things_v1";
    if let Some(root) = disk::child() {
        lose_the_sync_that_is_asked_for();
        let database = Database::open(root.join("journal"), &[FAMILY]).unwrap();
        let mut batch = Batch::new();
        batch.put(FAMILY, "a", "1");
        database.write_synced("sync-test", batch).unwrap();
        disk::die();
    }
    let (root, disk) = bare_disk();
    disk.child("power::a_new_database_is_durable_with_its_first_sync");
    disk.lose_power(Unsynced::Lost);
    let database = Database::open(root.path().join("journal"), &[FAMILY]).unwrap();
    assert_eq!(database.get(FAMILY, "a").unwrap().as_deref(), Some(&b"1"[..]));
}

/// A torn tail is cut off before the database goes on to another log. Where a loss of power brings it back, it does
/// no harm.
#[test]
fn a_torn_tail_that_was_cut_off_does_no_harm_when_it_returns() {
    const FAMILY: &str = "things_v1";
    let written = |root: &Path, key: &str| {
        let database = Database::open(root.join("raft"), &[FAMILY]).unwrap();
        let mut batch = Batch::new();
        batch.put(FAMILY, key, "1");
        database.write_synced("sync-test", batch).unwrap();
        database
    };
    if let Some(root) = disk::child() {
        lose_the_sync_that_is_asked_for();
        let _open = written(&root, "b");
        disk::die();
    }
    // With and without something in the log that is still needed.
    for has_more in [true, false] {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("raft");
        drop(Database::open(&path, &[FAMILY]).unwrap());
        if has_more {
            drop(written(root.path(), "a"));
        }
        let logs = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        let log = logs.filter(|path| path.extension().is_some_and(|e| e == "log")).max().unwrap();
        // The header of a record, and of the rest nothing has reached the disk.
        let torn = [&[1, 2, 3, 4, 100, 0, 1][..], &[0; 512]].concat();
        fs::write(&log, [fs::read(&log).unwrap(), torn].concat()).unwrap();
        let disk = Disk::below(root.path());
        disk.child("power::a_torn_tail_that_was_cut_off_does_no_harm_when_it_returns");
        disk.lose_power(Unsynced::Lost);
        let database = written(root.path(), "c");
        for key in ["b", "c"].into_iter().chain(has_more.then_some("a")) {
            assert!(database.get(FAMILY, key).unwrap().is_some(), "{key}");
        }
    }
}

/// The log that a start has read is gone from its folder only with the folder's next sync, and by then a later one
/// may have begun.
#[test]
fn a_torn_tail_that_a_start_has_seen_is_no_damage_at_the_next_one() {
    const FAMILY: &str = "things_v1";
    let put = |key: &str| {
        let mut batch = Batch::new();
        batch.put(FAMILY, key, "1");
        batch
    };
    if let Some(root) = disk::child() {
        let database = Database::open(root.join("raft"), &[FAMILY]).unwrap();
        database.write(put("b")).unwrap();
        disk::die();
    }
    for tail in [&[0; 20][..], &[0x5a; 20]] {
        let root = tempfile::tempdir().unwrap();
        let raft = root.path().join("raft");
        let database = Database::open(&raft, &[FAMILY]).unwrap();
        database.write_synced("sync-test", put("a")).unwrap();
        drop(database);
        let logs = fs::read_dir(&raft).unwrap().map(|entry| entry.unwrap().path());
        let log = logs.filter(|path| path.extension().is_some_and(|e| e == "log")).max().unwrap();
        fs::write(&log, [&fs::read(&log).unwrap()[..], tail].concat()).unwrap();
        let disk = Disk::below(root.path());
        disk.child("power::a_torn_tail_that_a_start_has_seen_is_no_damage_at_the_next_one");
        disk.lose_power(Unsynced::Cut(1000));
        assert!(log.exists(), "its removal was durable: nothing is shown");
        let database = Database::open(&raft, &[FAMILY]).unwrap_or_else(|error| panic!("{tail:?}: {error}"));
        assert!(database.get(FAMILY, "a").unwrap().is_some(), "{tail:?}");
    }
}

/// A killed process had made it, and nobody had synced the folder that it lies in.
#[test]
fn a_database_that_a_killed_start_has_made_is_durable_with_the_first_sync_of_the_next_one() {
    const FAMILY: &str = "things_v1";
    if let Some(root) = disk::child() {
        let path = root.join("journal");
        if !path.exists() {
            fail::cfg("sync-new-database", "return(lose)").unwrap();
            let _made = Database::open(path, &[FAMILY]).unwrap();
            disk::die();
        }
        let database = Database::open(path, &[FAMILY]).unwrap();
        let mut batch = Batch::new();
        batch.put(FAMILY, "a", "1");
        database.write_synced("sync-test", batch).unwrap();
        disk::die();
    }
    let (root, disk) = bare_disk();
    for _ in 0..2 {
        disk.child(
            "power::a_database_that_a_killed_start_has_made_is_durable_with_the_first_sync_of_the_next_one",
        );
    }
    disk.lose_power(Unsynced::Lost);
    let database = Database::open(root.path().join("journal"), &[FAMILY]).unwrap();
    assert_eq!(database.get(FAMILY, "a").unwrap().as_deref(), Some(&b"1"[..]));
}

/// A snapshot takes the place of the log that led to it, so it must be whole before that log may go; and where it
/// is ahead of the stored state, it is installed, which must not cost it.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_whole_once_it_has_its_name() {
    let mut world = World::new().await;
    let disk = world.on_disk();
    let snapshots = "consensus-snapshot-entries=return(5)";
    let killed = world.options.clone().failpoints(&format!("{snapshots};raft_snapshot_renamed=return(kill)"));
    let node = Node::start(&killed);
    let _asking = node.ask("local/web", &["--grace", "1s", "--request-id", "q1"]);
    node.killed_by_failpoint();
    let current = world.options.data_dir.join("snapshot/current.jsonl");
    let built = fs::read(&current).unwrap();
    disk.lose_power(Unsynced::Lost);
    assert!(fs::read(&current).unwrap() == built, "it is not whole");
    for _ in 0..2 {
        // The second start finds what the first one made of it.
        Node::start(&world.options).kill();
        disk.lose_power(Unsynced::Lost);
    }
    let node = Node::start(&world.options);
    let known = node.recover("local/web", &["--grace", "1s", "--request-id", "q1"]);
    assert_eq!(known.json["decision"], "DECISION_OPENED", "{known:?}");
    assert!(world.posts() <= 1);
    node.stop();
}

fn bare_disk() -> (tempfile::TempDir, Disk) {
    let root = tempfile::tempdir().unwrap();
    let disk = Disk::below(root.path());
    (root, disk)
}

/// In this very process.
fn lose_the_sync_that_is_asked_for() {
    if let Ok(name) = std::env::var(LOST_SYNC) {
        fail::cfg(name, "return(lose)").unwrap();
    }
}
