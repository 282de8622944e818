//! A log that has lost its end, which looks like one that a crash has torn: refused by what else is on the disk.

use std::fs;
use std::path::{Path, PathBuf};

use relatch::sim::ContainerSpec;
use serde_json::Value;

use crate::World;
use crate::support::node::{Node, NodeOptions, wait_for};

/// The longest write-ahead log of the Raft database.
fn log_of(data: &Path) -> PathBuf {
    let files = fs::read_dir(data.join("raft")).unwrap().map(|entry| entry.unwrap().path());
    let logs = files.filter(|file| file.extension().is_some_and(|extension| extension == "log"));
    logs.max_by_key(|log| log.metadata().unwrap().len()).expect("there is a write-ahead log")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() { copy(&from, &to) } else { fs::copy(&from, &to).map(drop).unwrap() }
    }
}

/// A copy of the node's data whose log is so much shorter.
fn cut(world: &World, name: &str, permille: u64) -> NodeOptions {
    let data_dir = world.dir.path().join(name);
    copy(&world.options.data_dir, &data_dir);
    let log = log_of(&data_dir);
    let length = log.metadata().unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(&log).unwrap();
    file.set_len(length - length * permille / 1_000).unwrap();
    let log = world.dir.path().join(format!("{name}.log"));
    NodeOptions { data_dir, log, failpoints: None, ..world.options.clone() }
}

/// Restarts a container, and holds another; gives the run.
fn decide(node: &Node) -> String {
    let hold = node.cli(&["hold", "local/other", "--by", "kim", "--reason", "migration"]);
    assert_eq!(hold.exit, 0, "{hold:?}");
    node.recover("local/web", &["--grace", "0s", "--wait=applied"]).run_id()
}

fn has_all(node: Node, run: &str) {
    assert_eq!(node.run(run)["status"], "RUN_STATUS_APPLIED");
    let held = node.recover("local/other", &[]);
    assert!(held.json.to_string().contains("migration"), "{held:?}");
    node.stop();
}

async fn world() -> World {
    World::of([ContainerSpec::named("web"), ContainerSpec::named("other")]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_has_lost_anything_of_what_was_applied_before_an_orderly_end_is_refused() {
    let world = world().await;
    let node = Node::start(&world.options);
    let run = decide(&node);
    node.stop();
    let mut refused = Vec::new();
    for permille in [1, 50, 200, 300, 500, 700, 900, 990] {
        match Node::start_unless_refused(&cut(&world, &format!("cut-{permille}"), permille)) {
            // Only the last records are gone, which said again what was applied: it is applied again from the log.
            Ok(node) => has_all(node, &run),
            Err(said) => {
                let behind = said.contains("the log ends at index ")
                    && (said.contains("reached.json shows that") || said.contains("/journal shows that"));
                assert!(behind || said.contains("this node's log is gone"), "{permille}: {said}");
                assert!(said.contains("restore") && said.contains("as a new node"), "{permille}: {said}");
                refused.push(permille);
            }
        }
    }
    assert!(refused.contains(&990), "{refused:?}");
    has_all(Node::start(&cut(&world, "whole", 0)), &run);
    assert_eq!(world.posts(), 1);
}

/// Killed, it had no time to say how far it had got: what it said before counts, and what its journal acted for.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_has_lost_what_was_applied_before_a_kill_is_refused() {
    let world = world().await;
    let node = Node::start(&world.options.clone().failpoints("consensus-reached-ms=return(10)"));
    let run = decide(&node);
    let file = world.options.data_dir.join("reached.json");
    let noted = || -> Option<u64> {
        let noted: Value = serde_json::from_slice(&fs::read(&file).ok()?).unwrap();
        noted["index"].as_u64()
    };
    let before = noted();
    let hold = node.cli(&["hold", "local/web", "--by", "kim", "--reason", "later"]);
    assert_eq!(hold.exit, 0, "{hold:?}");
    wait_for(
        "the last hold to be noted",
        || if noted() > before { Ok(()) } else { Err(format!("{before:?}")) },
    );
    node.kill();
    has_all(Node::start(&cut(&world, "whole", 0)), &run);

    let options = cut(&world, "cut", 100);
    let said = Node::refuses_to_start(&options);
    assert!(said.contains("the log ends at index ") && said.contains("reached.json"), "{said}");

    let options = cut(&world, "cut-more", 900);
    fs::remove_file(options.data_dir.join("reached.json")).unwrap();
    let said = Node::refuses_to_start(&options);
    assert!(said.contains("the log ends at index ") && said.contains("/journal shows that"), "{said}");
    assert_eq!(world.posts(), 1);
}
