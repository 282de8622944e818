//! The benchmark works, and its page is whole. Nothing here asserts a speed.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::node::{Answer, answered, relatch};

fn bench(dir: &Path, args: &[&str]) -> Answer {
    let dir = dir.to_str().expect("a path in UTF-8");
    answered(relatch().args(["-o", "json", "bench", "--dir", dir]).args(args))
}

/// What criterion leaves of a benchmark.
fn criterion(folder: &Path, ended_runs: u64) {
    let made = folder.join(format!("apply/{ended_runs}/new"));
    std::fs::create_dir_all(&made).expect("a folder");
    let interval = json!({ "lower_bound": 2_000.0, "upper_bound": 6_000.0 });
    let estimates = json!({ "median": { "point_estimate": 3_000.0, "confidence_interval": interval } });
    std::fs::write(made.join("estimates.json"), estimates.to_string()).expect("a file");
}

/// The rows of the table below this heading, without the head.
fn rows<'a>(page: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let section = page.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("no section {heading} in\n{page}"));
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

fn numbers(rows: &[Value], name: &str) -> Vec<u64> {
    rows.iter().map(|row| row[name].as_u64().unwrap_or_else(|| panic!("no {name} in {row}"))).collect()
}

#[test]
fn a_quick_benchmark_measures_everything_and_writes_a_whole_page() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder on a disk");
    let found = dir.path().join("criterion");
    criterion(&found, 0);
    criterion(&found, 100_000);
    let page = dir.path().join("page.md");
    let [found, page_path] = [&found, &page].map(|path| path.to_str().expect("a path in UTF-8"));
    let args = ["--quick", "--page", page_path, "--criterion", found, "--commit", "abc123"];
    let answer = bench(dir.path(), &args);
    assert_eq!(answer.exit, 0, "{answer:?}");

    let report = &answer.json;
    let list =
        |name: &str| report[name].as_array().unwrap_or_else(|| panic!("no {name} in {report:#}")).clone();
    assert_eq!(numbers(&list("commits"), "requesters"), [1, 8]);
    assert_eq!(numbers(&list("recoveries"), "requesters"), [1, 8]);
    for row in list("recoveries") {
        let ends = row["ends"].as_object().expect("how they ended");
        assert_eq!(ends.keys().collect::<Vec<_>>(), ["APPLIED"], "every restart counted once: {row}");
    }
    let memory = &report["memory"];
    assert_eq!((memory["openRuns"].as_u64(), memory["endedRuns"].as_u64()), (Some(5), Some(50)));
    assert_eq!(report["firstByte"]["total"]["count"], 5);
    // The disk is measured before everything and after each part.
    assert_eq!(list("probes").len(), 1 + 2 + 1 + 2 + 1);

    let page = std::fs::read_to_string(page).expect("the page");
    println!("{page}");
    assert!(page.contains("abc123") && page.contains("`--quick`"), "it says what it is:\n{page}");
    assert_eq!(rows(&page, "Aims").len(), 4);
    for row in rows(&page, "Aims") {
        assert!(["reached", "**not reached**", "**not decided**"].contains(&row[2]), "no verdict in {row:?}");
    }
    assert_eq!(rows(&page, "The disk alone").len(), 7);
    assert_eq!(rows(&page, "Interlocks").len(), 2);
    let steps: Vec<&str> = rows(&page, "From the request").iter().map(|row| row[0]).collect();
    let wanted = [
        "look", "propose", "– sync", "recheck", "connect", "intent", "– sync", "compare", "the rest",
        "**all**",
    ];
    assert_eq!(steps, wanted);
    assert_eq!(rows(&page, "Whole recoveries").len(), 2);
    assert_eq!(rows(&page, "Memory").len(), 2);
    let ledger = rows(&page, "The ledger alone");
    assert_eq!(ledger[1], ["100000", "1000000", "500000", "1500000"], "what criterion had found");
    let missing = |cell: &str| ["NaN", "inf", "-inf"].contains(&cell.trim());
    assert!(!page.split([' ', '|']).any(missing), "a figure is missing:\n{page}");

    let left: Vec<_> =
        std::fs::read_dir(dir.path()).expect("the folder").map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "only the page and criterion's folder are left: {left:?}");
}

#[test]
fn a_benchmark_that_can_measure_nothing_says_what_to_do() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder on a disk");
    let nothing = dir.path().join("nothing");
    let answer = bench(dir.path(), &["--criterion", nothing.to_str().expect("a path in UTF-8")]);
    assert_eq!((answer.exit, answer.stdout.as_str()), (1, ""), "{answer:?}");
    assert!(answer.stderr.contains("cargo bench --bench ledger"), "{answer:?}");
    let answer = bench(&nothing, &["--quick"]);
    assert_eq!((answer.exit, answer.stdout.as_str()), (1, ""), "{answer:?}");
    assert!(answer.stderr.contains("nothing"), "{answer:?}");
}
