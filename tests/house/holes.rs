//! Every hole has a test that is expected to catch it, and stands in the docs.

use std::collections::BTreeSet;
use std::path::Path;

use relatch::model::Hole;

use crate::source::read_sources;

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// Hole and test of each row.
fn rows() -> Vec<(String, String)> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words[0].to_owned(), words[2].rsplit("::").next().unwrap().to_owned())
    };
    let table = read("tests/holes.txt");
    table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(row).collect()
}

#[test]
fn every_hole_is_in_the_table_and_in_the_docs() {
    let listed: BTreeSet<String> = rows().into_iter().map(|(hole, _)| hole).collect();
    let guards = Hole::all().map(|hole| hole.to_string());
    assert_eq!(listed, guards.chain(syncs()).collect());
    let docs = read("docs/testing.md");
    for (hole, test) in rows() {
        for name in [hole, test] {
            assert!(docs.contains(&format!("`{name}`")), "docs/testing.md does not name {name}");
        }
    }
}

/// The names of all calls that make something durable, as they stand in the code.
fn syncs() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in read_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let is_test = file.path.contains("/tests/") || file.path.ends_with("tests.rs");
        if !is_test {
            let names = file.text.split('"').filter(|text| text.strip_prefix("sync-").is_some_and(is_name));
            found.extend(names.map(str::to_owned));
        }
    }
    found
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

/// What makes something durable without a name could be left out unseen.
#[test]
fn nothing_is_made_durable_but_where_it_has_a_name() {
    for file in read_sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let (code, _) = crate::source::code(&file.text);
        // What measures a disk keeps nothing.
        let may = ["storage/sync.rs", "storage/database.rs", "storage/sync_speed.rs", "cli/bench/disk.rs"]
            .contains(&file.path.as_str());
        for token in code {
            let syncs =
                ["sync_all", "sync_data", "flush_wal", "fsync", "fdatasync"].contains(&token.text.as_str());
            assert!(!syncs || may, "{}, line {}: {}", file.path, token.line, token.text);
        }
    }
}
