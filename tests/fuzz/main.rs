//! Bytes that another process or an old disk wrote, changed at random: each is refused, or means what it says.
//!
//! The checks are in `checks`, one file per subject; their seeds lie in `corpus/<subject>`. Here they run for a
//! short while, differently each time; what fails is shrunk, and kept in `proptest-regressions` until it is
//! mended. `make fuzz` runs the same checks for longer, led by coverage, and adds to the seeds.

mod checks;
mod memory;
mod mutate;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

use checks::{SUBJECTS, Subject, subject};

/// How long each subject is hunted, unless `SECONDS_EACH` says otherwise. The harness runs several at once.
const USUAL_SECONDS_EACH: u64 = 3;

/// How many cases are tried before the time is looked at.
const CASES_AT_ONCE: u32 = 64;

fn corpus(subject: &Subject) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(subject.name)
}

/// The seeds of a subject, in the order of their names.
fn seeds(subject: &Subject) -> Vec<(String, Vec<u8>)> {
    let folder = corpus(subject);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut seeds: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let path = entry.expect("an entry of the folder").path();
            let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            (name, fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        })
        .collect();
    seeds.sort();
    assert!(!seeds.is_empty(), "{} has no seeds", folder.display());
    seeds
}

/// Checks seeds that were changed, and bytes of any kind, for a while.
fn hunt(name: &str, regressions: &'static str) {
    let subject = subject(name);
    let seeds: Vec<Vec<u8>> = seeds(&subject).into_iter().map(|(_, bytes)| bytes).collect();
    let config = Config {
        cases: CASES_AT_ONCE,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(regressions))),
        source_file: Some(file!()),
        ..Config::default()
    };
    let tried = AtomicU64::new(0);
    let each = std::env::var("SECONDS_EACH").ok().map_or(USUAL_SECONDS_EACH, |text| {
        text.parse().unwrap_or_else(|error| panic!("SECONDS_EACH={text}: {error}"))
    });
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(each) {
        // A runner stops for good after its cases.
        let mut runner = TestRunner::new(config.clone());
        let ended = runner.run(&mutate::changed(&seeds), |change| {
            tried.fetch_add(1, Ordering::Relaxed);
            (subject.check)(&change.apply(&seeds));
            Ok(())
        });
        if let Err(failure) = ended {
            panic!("{name}: {failure}");
        }
    }
    let tried = tried.into_inner();
    assert!(tried >= u64::from(CASES_AT_ONCE), "{name}: {tried} cases are no hunt");
    println!("{name}: {tried} cases, {} seeds", seeds.len());
}

macro_rules! hunts {
    ($($test:ident: $subject:literal;)*) => {
        $(#[test]
        fn $test() {
            hunt($subject, concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/fuzz-", $subject, ".txt"));
        })*

        #[test]
        fn every_subject_is_hunted() {
            let hunted = [$($subject),*];
            let all: Vec<&str> = SUBJECTS.iter().map(|subject| subject.name).collect();
            assert_eq!(hunted.as_slice(), all);
        }
    };
}

hunts! {
    what_raft_keeps_reads_back_or_is_refused: "raft";
    what_the_ledger_stores_reads_back_or_is_refused: "records";
    a_ledger_of_changed_records_is_refused_or_keeps_its_rules: "ledger";
    a_snapshot_that_was_damaged_anywhere_is_refused: "snapshots";
    what_a_journal_stores_reads_back_or_is_refused: "journal";
    an_identity_reads_back_or_is_refused: "identity";
    whatever_comes_back_for_a_post_proves_no_more_than_it_shows: "posts";
    whatever_an_engine_shows_is_told_as_it_was_shown_or_unreadable: "looks";
    events_are_heard_the_same_however_they_are_cut: "events";
    an_instant_is_read_as_it_was_written_or_not_at_all: "times";
    a_length_of_time_is_read_as_it_was_written_or_not_at_all: "lengths";
    a_target_that_is_read_is_stored_and_read_back: "targets";
    a_request_that_is_well_formed_fits_into_the_log_and_the_ledger: "requests";
    whatever_a_server_answers_has_a_json_form_or_an_error: "messages";
    an_endpoint_is_shown_as_it_is_read_and_stays_on_this_machine: "endpoints";
}

/// What once failed, and what leads deep, is among the seeds: each is checked as it is, every time.
#[test]
fn every_seed_passes_its_check() {
    let mut failed = Vec::new();
    let mut passed = 0;
    for subject in SUBJECTS {
        for (name, bytes) in seeds(subject) {
            match catch_unwind(AssertUnwindSafe(|| (subject.check)(&bytes))) {
                Ok(()) => passed += 1,
                Err(_) => failed.push(format!("{}/{name}", subject.name)),
            }
        }
    }
    assert!(failed.is_empty(), "seeds that fail: {failed:?}");
    println!("{passed} seeds of {} subjects", SUBJECTS.len());
}
