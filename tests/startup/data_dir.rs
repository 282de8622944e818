//! Data directories that `relatch dev` refuses, each without a change to what is there.

use std::path::Path;

use relatch::dispatch::Journal;
use relatch::storage::Database;
use serde_json::{Value, json};

use crate::mount::Mount;
use crate::support::node::{Node, NodeOptions};
use crate::{World, content};

/// A node that has decided something, and has ended.
async fn used() -> (World, String) {
    let world = World::new().await;
    let node = Node::start(&world.options);
    let run = node.recover("local/web", &["--grace", "0s", "--wait=applied"]).run_id();
    node.stop();
    (world, run)
}

/// Changes the identity of a data directory; gives the old one.
fn change_identity(data_dir: &Path, field: &str, value: Value) -> Vec<u8> {
    let file = data_dir.join("identity.json");
    let old = std::fs::read(&file).unwrap();
    let mut identity: Value = serde_json::from_slice(&old).unwrap();
    identity[field] = value;
    std::fs::write(&file, identity.to_string()).unwrap();
    old
}

/// Starts a node on what was refused before and mended since, and expects the run to be there.
fn goes_on(options: &NodeOptions, run: &str) {
    let node = Node::start(options);
    assert_eq!(node.run(run)["status"], "RUN_STATUS_APPLIED");
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_versions_format_is_refused_by_its_number() {
    let (world, run) = used().await;
    let data = &world.options.data_dir;
    let old = change_identity(data, "format", json!(2));
    let before = content(data);
    let said = Node::refuses_to_start(&world.options);
    assert!(said.contains("format 2") && said.contains("use the version of relatch that wrote it"), "{said}");
    assert_eq!(content(data), before);
    std::fs::write(data.join("identity.json"), old).unwrap();
    goes_on(&world.options, &run);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_versions_records_are_refused_by_the_name_of_their_format() {
    let (world, _) = used().await;
    let journal = world.options.data_dir.join("journal");
    drop(Database::open(&journal, &["journal_v1", "journal_v2"]).unwrap());
    let before = content(&journal);
    let said = Node::refuses_to_start(&world.options);
    assert!(
        said.contains("journal_v2") && said.contains("use the version of relatch that wrote it"),
        "{said}"
    );
    assert_eq!(content(&journal), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_or_a_log_of_another_cluster_is_refused_and_kept() {
    let ((mine, run), (other, _)) = (used().await, used().await);
    let (mine_dir, other_dir) = (&mine.options.data_dir, &other.options.data_dir);
    for part in ["journal", "raft"] {
        let (here, there, aside) = (mine_dir.join(part), other_dir.join(part), mine.dir.path().join(part));
        std::fs::rename(&here, &aside).unwrap();
        std::fs::rename(&there, &here).unwrap();
        let said = Node::refuses_to_start(&mine.options);
        let of = |dir: &Path| {
            let identity = std::fs::read(dir.join("identity.json")).unwrap();
            let identity: Value = serde_json::from_slice(&identity).unwrap();
            identity["cluster"].as_str().unwrap().to_owned()
        };
        assert!(said.contains(&of(mine_dir)) && said.contains(&of(other_dir)), "{part}: {said}");
        assert!(said.contains("put back what belongs together"), "{part}: {said}");
        std::fs::rename(&here, &there).unwrap();
        std::fs::rename(&aside, &here).unwrap();
    }
    goes_on(&mine.options, &run);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_is_gone_is_missed_and_begun_anew_only_where_an_empty_folder_says_so() {
    let (world, run) = used().await;
    let (data, aside) = (&world.options.data_dir, world.dir.path().join("aside"));
    let journal = data.join("journal");
    std::fs::rename(&journal, &aside).unwrap();
    let before = content(data);
    let said = Node::refuses_to_start(&world.options);
    assert!(said.contains("this node's journal is gone") && said.contains("leave an empty folder"), "{said}");
    assert_eq!(content(data), before);
    assert!(!journal.exists());

    // A database in which nothing is left is no consent.
    drop(Database::open(&journal, Journal::FAMILIES).unwrap());
    let said = Node::refuses_to_start(&world.options);
    assert!(said.contains("this node's journal is gone"), "{said}");

    std::fs::remove_dir_all(&journal).unwrap();
    std::fs::create_dir(&journal).unwrap();
    goes_on(&world.options, &run);
    let log = std::fs::read_to_string(&world.options.log).unwrap();
    assert!(log.contains("beginning a new journal in an empty folder"), "{log}");
    goes_on(&world.options, &run);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_gone_is_missed_by_whatever_else_is_left() {
    let (world, run) = used().await;
    let (data, raft) = (&world.options.data_dir, world.options.data_dir.join("raft"));
    let aside = world.dir.path().join("aside");
    std::fs::rename(&raft, &aside).unwrap();
    let said = Node::refuses_to_start(&world.options);
    assert!(said.contains("this node's log is gone"), "{said}");
    assert!(!raft.exists(), "nothing is put in its place");

    // Nor is it begun anew where the marker is gone as well.
    std::fs::remove_file(data.join("initialized")).unwrap();
    let said = Node::refuses_to_start(&world.options);
    assert!(said.contains("the log ends at index 0") && said.contains("/journal shows that"), "{said}");
    std::fs::remove_dir_all(&raft).unwrap();
    std::fs::rename(&aside, &raft).unwrap();
    goes_on(&world.options, &run);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_not_ours_is_refused_by_what_is_in_it() {
    let world = World::new().await;
    let data = &world.options.data_dir;
    std::fs::create_dir(data).unwrap();
    std::fs::write(data.join("thesis.txt"), "all of it").unwrap();
    let said = Node::refuses_to_start(&world.options);
    assert!(said.contains("thesis.txt") && said.contains("choose an empty or a new directory"), "{said}");
    let left = content(data);
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[&data.join("thesis.txt")], b"all of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_root_of_a_fresh_disk_is_as_good_as_an_empty_directory() {
    let world = World::new().await;
    std::fs::create_dir_all(world.options.data_dir.join("lost+found")).unwrap();
    Node::start(&world.options).stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn data_whose_identity_is_gone_is_not_begun_anew() {
    let (world, run) = used().await;
    let identity = world.options.data_dir.join("identity.json");
    let old = std::fs::read(&identity).unwrap();
    std::fs::remove_file(&identity).unwrap();
    let said = Node::refuses_to_start(&world.options);
    assert!(said.contains("identity.json") && said.contains("restore that file"), "{said}");
    assert!(!identity.exists());
    std::fs::write(&identity, old).unwrap();
    goes_on(&world.options, &run);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_another_process_has_is_refused_and_that_process_goes_on() {
    let world = World::new().await;
    let node = Node::start(&world.options);
    let said = Node::refuses_to_start(&world.options);
    assert!(said.contains("in use by another process") && said.contains("choose another"), "{said}");
    let answer = node.recover("local/web", &["--grace", "0s", "--wait=applied"]);
    assert_eq!(answer.exit, 0, "{answer:?}");
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_the_place_of_the_directory_is_refused_and_kept() {
    let world = World::new().await;
    let data = world.options.data_dir.clone();
    std::fs::write(&data, "mine").unwrap();
    for dir in [data.clone(), data.join("below/it")] {
        let options = NodeOptions { data_dir: dir, ..world.options.clone() };
        let said = Node::refuses_to_start(&options);
        assert!(said.contains(&format!("{}: it is not a directory", data.display())), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&data).unwrap(), "mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_file_system_is_refused_with_and_without_data_on_it() {
    let world = World::new().await;
    let mount = Mount::of_kib(64 << 10);
    let options = NodeOptions { data_dir: mount.path().join("data"), ..world.options.clone() };
    mount.make_read_only();
    let empty = Node::refuses_to_start(&options);
    drop(mount);

    let mount = Mount::of_kib(64 << 10);
    let options = NodeOptions { data_dir: mount.path().join("data"), ..world.options.clone() };
    Node::start(&options).stop();
    mount.make_read_only();
    let used = Node::refuses_to_start(&options);
    for said in [empty, used] {
        assert!(
            said.contains("the file system is read-only") && said.contains("mount it writable"),
            "{said}"
        );
    }
}
