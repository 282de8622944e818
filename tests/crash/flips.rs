//! Bytes that change on the disk: refused with their place, or of no consequence; never believed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use relatch::consensus;
use relatch::dispatch::Journal;
use relatch::sim::ContainerSpec;
use relatch::storage::{Database, StorageError};

use crate::World;
use crate::random::Random;
use crate::support::node::{Node, NodeOptions};

/// A node that has a snapshot, tables, a log and a journal, and has ended. Its folder `raft` has both what is in the
/// log alone and what is in tables.
async fn used() -> World {
    let names: Vec<String> = (0..6).map(|n| format!("c{n}")).collect();
    let world = World::of(names.iter().map(ContainerSpec::named)).await;
    let options = world.options.clone().failpoints("consensus-snapshot-entries=return(10)");
    for half in names.chunks(3) {
        // What the log had at a start is in tables afterwards.
        let node = Node::start(&options);
        for name in half {
            let answer = node.recover(&format!("local/{name}"), &["--grace", "0s", "--wait=applied"]);
            assert_eq!(answer.exit, 0, "{answer:?}");
        }
        node.stop();
    }
    world
}

type Content = BTreeMap<(&'static str, String), Vec<u8>>;

/// Everything that a database holds.
fn content(path: &Path, families: &[&'static str]) -> Result<Content, StorageError> {
    let database = Database::open(path, families)?;
    let mut content = Content::new();
    for family in families {
        for entry in database.view().entries(family)? {
            let (key, value) = entry?;
            content.insert((family, key), value);
        }
    }
    Ok(content)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn copy(from: &Path, to: &Path) {
    let _earlier = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for file in files(from) {
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bit_that_is_flipped_anywhere_in_a_database_is_refused_or_changes_nothing() {
    let world = used().await;
    let mut random = Random(u64::from(std::process::id()));
    println!("seed {}", std::process::id());
    let mut outcomes: BTreeMap<(String, bool), usize> = BTreeMap::new();
    for (part, families) in [("raft", consensus::FAMILIES), ("journal", Journal::FAMILIES)] {
        let sound = world.options.data_dir.join(part);
        let flipped = world.dir.path().join("flipped");
        copy(&sound, &flipped);
        let expected = content(&flipped, families).unwrap();
        assert!(!expected.is_empty());
        for file in files(&sound) {
            let length = fs::metadata(&file).unwrap().len();
            for _ in 0..if length == 0 { 0 } else { 40 } {
                copy(&sound, &flipped);
                let bit = random.below(length * 8);
                let name = file.file_name().unwrap().to_str().unwrap();
                let mut bytes = fs::read(&file).unwrap();
                bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
                fs::write(flipped.join(name), bytes).unwrap();
                let refused = match content(&flipped, families) {
                    Err(error) => {
                        assert!(error.to_string().contains("flipped"), "its place is not named: {error}");
                        true
                    }
                    Ok(found) => {
                        assert!(
                            found == expected,
                            "{part}/{name}, bit {bit}: read as if nothing had happened"
                        );
                        false
                    }
                };
                let kind = name.trim_matches(|c: char| c.is_ascii_digit()).to_owned();
                *outcomes.entry((format!("{part}/{kind}"), refused)).or_default() += 1;
            }
        }
    }
    println!("{outcomes:#?}");
    let of = |kind: &str, refused: bool| outcomes.get(&(kind.to_owned(), refused)).copied().unwrap_or(0);
    for kind in ["raft/.log", "journal/.log"] {
        assert!(of(kind, true) > 0 && of(kind, false) == 0, "{kind}: {outcomes:#?}");
    }
    assert!(of("raft/.sst", true) > 0, "{outcomes:#?}");
}

/// Through the node itself, once for each thing that it keeps.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_refuses_a_flipped_byte_by_file_and_place() {
    let world = used().await;
    let data = &world.options.data_dir;
    let newest = |folder: &str, extension: &str| {
        let of_kind = |file: &PathBuf| {
            file.extension().is_some_and(|e| e == extension) && file.metadata().unwrap().len() > 0
        };
        files(&data.join(folder)).into_iter().rfind(of_kind).expect("there is one")
    };
    // In the order in which they are read: what is sound is opened, and goes from the log to tables by that.
    for (folder, extension, place) in [
        ("journal", "log", "it is damaged at byte "),
        ("raft", "log", "it is damaged at byte "),
        ("raft", "sst", " offset "),
        ("snapshot", "jsonl", "snapshot, line "),
    ] {
        let file = newest(folder, extension);
        let sound = fs::read(&file).unwrap();
        let mut bytes = sound.clone();
        bytes[sound.len() / 3] ^= 0x01;
        fs::write(&file, bytes).unwrap();
        let said = Node::refuses_to_start(&NodeOptions { failpoints: None, ..world.options.clone() });
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(said.contains(name) && said.contains(place), "{name}: {said}");
        fs::write(&file, sound).unwrap();
    }
    let node = Node::start(&world.options);
    assert_eq!(node.runs().len(), 6, "it was the damage that was refused");
    node.stop();
}
