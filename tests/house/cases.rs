//! The table of cases (`docs/cases.md`) names tests that exist, and names all of `tests/sim`.

use std::collections::BTreeSet;
use std::path::Path;

use crate::source::read_sources;

/// A row's first cell, and what its last one names: `group::name`.
struct Row {
    case: String,
    tests: Vec<String>,
}

#[test]
fn every_case_names_tests_that_exist_and_every_case_that_is_tested_is_named() {
    let table = std::fs::read_to_string(root().join("docs/cases.md")).unwrap();
    assert!(rows(&table).len() > 40, "the table was not read: {} rows", rows(&table).len());
    let wrong = wrong(&table, &tests_there());
    assert!(wrong.is_empty(), "docs/cases.md:\n{}", wrong.join("\n"));
}

#[test]
fn a_row_without_a_test_or_with_one_that_is_gone_is_caught() {
    let there = BTreeSet::from(["sim::this".to_owned(), "unit::that".to_owned()]);
    let wrong_in = |table: &str| wrong(&format!("| case | shown by |\n| --- | --- |\n{table}"), &there);
    assert_eq!(wrong_in("| C1 | `sim::this`, `unit::that` |"), Vec::<String>::new());
    assert_eq!(wrong_in("| C1 | `sim::this` |\n| C2 | this |"), ["C2 names no test"]);
    assert_eq!(wrong_in("| C1 | `sim::this`, `sim::gone` |"), ["C1 names sim::gone, which is not there"]);
    assert_eq!(wrong_in("| C1 | `unit::that` |"), ["sim::this is not named"]);
}

#[test]
fn a_function_that_is_no_test_does_not_count() {
    let text =
        "#[test]\nfn one() {}\n/// Two.\n#[tokio::test(flavor = \"x\")]\nasync fn two() {}\nfn three() {}\n";
    assert_eq!(tests_in(text).collect::<Vec<_>>(), ["one", "two"]);
}

fn wrong(text: &str, there: &BTreeSet<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for Row { case, tests } in rows(text) {
        if tests.is_empty() {
            wrong.push(format!("{case} names no test"));
        }
        let gone = tests.iter().filter(|test| !there.contains(*test));
        wrong.extend(gone.map(|test| format!("{case} names {test}, which is not there")));
    }
    let unnamed = |test: &&String| test.starts_with("sim::") && !text.contains(&format!("`{test}`"));
    wrong.extend(there.iter().filter(unnamed).map(|test| format!("{test} is not named")));
    wrong
}

/// The rows of all tables, without their heads.
fn rows(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut in_table = false;
    for line in text.lines() {
        let Some(cells) = line.trim().strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
            in_table = false;
            continue;
        };
        let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
        let is_rule = cells.iter().all(|cell| cell.chars().all(|c| c == '-'));
        if in_table && !is_rule {
            let shown_by = cells.last().copied().unwrap_or_default();
            let quoted = shown_by.split('`').skip(1).step_by(2);
            rows.push(Row { case: cells[0].to_owned(), tests: quoted.map(ToOwned::to_owned).collect() });
        }
        in_table = true;
    }
    rows
}

/// Every test of the tree, as `group::name`.
fn tests_there() -> BTreeSet<String> {
    let mut there = BTreeSet::new();
    let mut take = |group: &str, folder: &Path| {
        for file in read_sources(folder) {
            there.extend(tests_in(&file.text).map(|name| format!("{group}::{name}")));
        }
    };
    take("unit", &root().join("src"));
    for group in std::fs::read_dir(root().join("tests")).unwrap() {
        let folder = group.unwrap().path();
        if folder.join("main.rs").exists() {
            take(&folder.file_name().unwrap().to_string_lossy(), &folder);
        }
    }
    there
}

fn tests_in(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        }
        let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?.split('(').next()?;
        std::mem::take(&mut is_test).then_some(name)
    })
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
