//! A disk that refuses or hangs while the node runs: it ends, or waits, and nothing is sent that is not on disk.
//!
//! What is answered is never lost, and the node goes on once the disk is sound. Real file systems that are full are
//! in `tests/startup`; here each part of the data fails by itself, at a known step.

use std::time::{Duration, Instant};

use relatch::sim::{ContainerSpec, Endpoint, Hold, Rule};
use rustix::io::Errno;
use serde_json::Value;
use tonic_health::pb::health_check_response::ServingStatus;

use crate::World;
use crate::attacks::Health;
use crate::support::disk::{Disk, Unsynced};
use crate::support::node::{Node, wait_for};

const LOG: &str = "/raft/";
const JOURNAL: &str = "/journal/";

/// Waits for the node to end by itself, while clients go on asking.
fn ends(mut node: Node) -> String {
    wait_for("the node to end", || {
        let answer =
            node.recover("local/web", &["--grace", "0s", "--request-id", "q1", "--retry-for", "1ms"]);
        if node.runs_still() { Err(format!("{answer:?}")) } else { Ok(()) }
    });
    node.fails()
}

/// The disk is sound again, with what had been synced.
fn goes_on(world: &World, disk: &Disk) -> (Node, Value) {
    disk.mend();
    disk.lose_power(Unsynced::Lost);
    let node = Node::start(&world.options);
    let run = node.recover("local/web", &["--grace", "0s", "--request-id", "q1"]).run_id();
    let run = node.wait_for_run(&run, "its end", |run| {
        ["RUN_STATUS_APPLIED", "RUN_STATUS_NOT_APPLIED"].iter().any(|status| run["status"] == *status)
    });
    (node, run)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_written_or_synced_ends_the_node_before_anything_is_sent() {
    for (fails, says) in [("write", "there is no room left: make some"), ("sync", "Input/output error")] {
        let mut world = World::of([ContainerSpec::named("web")]).await;
        let disk = world.on_disk();
        let node = Node::start(&world.options);
        Health::of(&node).await.wait_for(ServingStatus::Serving).await;
        if fails == "write" {
            disk.fail_writes(LOG, Errno::NOSPC);
        } else {
            disk.fail_syncs(LOG, Errno::IO);
        }
        let said = ends(node);
        assert!(said.contains(says) && said.contains("start it again"), "{fails}: {said}");
        assert_eq!(world.posts(), 0, "{fails}");
        let (node, run) = goes_on(&world, &disk);
        assert_eq!(run["status"], "RUN_STATUS_APPLIED", "{fails}: it had never been decided: {run:#}");
        assert_eq!(world.posts(), 1, "{fails}");
        node.stop();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_cannot_be_written_or_synced_ends_the_node_and_nothing_is_sent() {
    for fails in ["write", "sync"] {
        let mut world = World::of([ContainerSpec::named("web")]).await;
        let disk = world.on_disk();
        let node = Node::start(&world.options);
        Health::of(&node).await.wait_for(ServingStatus::Serving).await;
        if fails == "write" {
            disk.fail_writes(JOURNAL, Errno::NOSPC);
        } else {
            disk.fail_syncs(JOURNAL, Errno::IO);
        }
        let said = ends(node);
        assert!(said.contains("start it again"), "{fails}: {said}");
        assert_eq!(world.posts(), 0, "{fails}");
        let (node, run) = goes_on(&world, &disk);
        assert_eq!(run["status"], "RUN_STATUS_NOT_APPLIED", "{fails}: there is no intent: {run:#}");
        assert_eq!(world.posts(), 0, "{fails}");
        node.stop();
    }
}

/// Invariant 8: the engine has answered, and the answer finds no room in the log, or none in the journal.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_before_the_settlement_leaves_the_interlock_and_it_is_settled_later() {
    for part in [LOG, JOURNAL] {
        let hold = Rule { hold_reply: Some(Hold::Until("answer".to_owned())), ..Rule::on(Endpoint::Restart) };
        let mut world = World::of([ContainerSpec::named("web").rule(hold)]).await;
        let disk = world.on_disk();
        let node = Node::start(&world.options);
        let asked = node.recover("local/web", &["--grace", "0s", "--request-id", "q1"]).run_id();
        world.engine.log().wait_until(|history| !history.posts(&world.id()).is_empty()).await;
        disk.fail_writes(part, Errno::NOSPC);
        world.engine.release("answer");
        let said = ends(node);
        assert!(said.contains("there is no room left: make some"), "{part}: {said}");
        let (node, run) = goes_on(&world, &disk);
        assert_eq!(run["runId"], asked.as_str());
        assert_eq!(run["status"], "RUN_STATUS_APPLIED", "{part}: {run:#}");
        assert_eq!(world.posts(), 1, "{part}");
        node.stop();
    }
}

/// Nothing is sent once the time to send has passed, however late the disk is done.
#[tokio::test(flavor = "multi_thread")]
async fn an_intent_whose_sync_hangs_is_not_sent_late() {
    let mut world = World::of([ContainerSpec::named("web")]).await;
    let disk = world.on_disk();
    let node = Node::start(&world.options);
    Health::of(&node).await.wait_for(ServingStatus::Serving).await;
    disk.hang(JOURNAL);
    let run = node.recover("local/web", &["--grace", "0s"]).run_id();
    disk.has_shown("hang");
    // dispatch-by and the connect limit: 5 s and 3 s.
    let begun = Instant::now();
    wait_for("the time to send to pass", || {
        let passed = begun.elapsed();
        if passed > Duration::from_secs(9) { Ok(()) } else { Err(format!("{passed:?}")) }
    });
    disk.mend();
    let run = node.wait_for_status(&run, "NOT_APPLIED");
    assert_eq!(world.posts(), 0, "{run:#}");
    node.stop();
}

/// The log's own sync hangs: no answer, no restart, and it says that it does not serve.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_sync_hangs_sends_nothing_and_goes_on_by_itself() {
    let mut world = World::of([ContainerSpec::named("web")]).await;
    let disk = world.on_disk();
    let node = Node::start(&world.options);
    let mut health = Health::of(&node).await;
    health.wait_for(ServingStatus::Serving).await;
    disk.hang(LOG);
    let asking = node.ask("local/web", &["--request-id", "q1"]);
    disk.has_shown("hang");
    health.wait_for(ServingStatus::NotServing).await;
    assert_eq!(world.posts(), 0);
    disk.mend();
    health.wait_for(ServingStatus::Serving).await;
    drop(asking);
    // It was given up on before it was committed, and so it was never handed on.
    let run = node.recover("local/web", &["--request-id", "q1"]).run_id();
    node.wait_for_status(&run, "NOT_APPLIED");
    assert_eq!(world.posts(), 0);
    node.stop();
}
