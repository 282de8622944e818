//! `docs/reference.md` says of commands, limits, reasons, checks, events and statuses what the code does.

use std::collections::BTreeSet;
use std::path::Path;

use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use relatch::ledger::{Limits, LimitsChange, ReasonCode};
use relatch::rpc::DESCRIPTORS;
use relatch::sim::ContainerSpec;
use serde_json::{Value, json};

use crate::help::commands;
use crate::world::World;

/// The rows of the table below this heading, cell by cell, without the head.
fn table(heading: &str) -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference.md");
    let text = std::fs::read_to_string(page).expect("docs/reference.md");
    let section = text.split("\n## ").find(|section| section.starts_with(&format!("{heading}\n")));
    let section = section.unwrap_or_else(|| panic!("docs/reference.md has no section {heading}"));
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells = |row: &str| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    rows.map(cells).collect()
}

/// The names in the first cells.
fn names(heading: &str) -> Vec<String> {
    table(heading).iter().map(|row| row[0].trim_matches('`').to_owned()).collect()
}

fn file(name: &str) -> FileDescriptorProto {
    let set = FileDescriptorSet::decode(DESCRIPTORS).expect("descriptors");
    set.file.into_iter().find(|file| file.name() == name).expect("a file of the interface")
}

/// The values of an enumeration, without their prefix; the one that is never sent is left out.
fn values(enumeration: &str, prefix: &str) -> Vec<String> {
    let file = file("relatch/v1/recovery.proto");
    let found = file.enum_type.iter().find(|known| known.name() == enumeration).expect("an enumeration");
    let words = found.value.iter().skip(1);
    words.map(|value| value.name().strip_prefix(prefix).expect("its prefix").to_owned()).collect()
}

/// The numbers of exit codes in a text, such as `0 placed, 1 error`.
fn exit_codes(text: &str) -> BTreeSet<u8> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn every_command_is_there_with_the_exit_codes_of_its_help() {
    let commands = commands();
    let has_a_row = |name: &&str| !name.is_empty() && *name != "runs";
    let mut wanted: Vec<&str> =
        commands.iter().map(|command| command.name.as_str()).filter(has_a_row).collect();
    let mut there = names("Commands");
    wanted.sort_unstable();
    there.sort_unstable();
    assert_eq!(there, wanted.iter().map(|name| format!("relatch {name}")).collect::<Vec<_>>());
    for row in table("Commands") {
        let name = row[0].trim_matches('`').strip_prefix("relatch ").expect("a command");
        let help = &commands.iter().find(|command| command.name == name).expect("it is there").help;
        // Where the help does not say, they are the usual ones: 0, 1 and 2.
        let told = help
            .split("Exit codes:")
            .nth(1)
            .map_or("0 1 2", |told| told.split("\n\n").next().unwrap_or(told));
        assert_eq!(exit_codes(&row[2]), exit_codes(told), "{name}: {told}");
    }
}

fn limits_with(name: &str, value: &Value) -> Result<(), String> {
    let change: LimitsChange =
        serde_json::from_value(json!({ name: value })).map_err(|error| error.to_string())?;
    Limits::default().with(&change).check().map_err(|error| error.to_string())
}

#[test]
fn every_limit_is_there_with_its_default_and_its_bounds() {
    let file = file("relatch/v1/limits.proto");
    let set = file.message_type.iter().position(|message| message.name() == "LimitSet").expect("LimitSet");
    let fields = &file.message_type[set].field;
    let in_order: Vec<&str> = fields.iter().map(|field| field.name()).collect();
    assert_eq!(names("Limits"), in_order);
    let comments = file.source_code_info.as_ref().expect("comments");
    for (at, row) in table("Limits").iter().enumerate() {
        let [name, default, least, most, _] = row.as_slice() else { panic!("five cells: {row:?}") };
        let name = name.trim_matches('`');
        let path = [4, i32::try_from(set).unwrap(), 2, i32::try_from(at).unwrap()];
        let comment = comments.location.iter().find(|location| location.path == path).expect("a comment");
        let comment = comment.leading_comments().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(comment.contains(&format!("At first {default}")), "{name}: {default} is not in {comment:?}");
        let number = |text: &str| match text {
            "`grace_max_s`" => Limits::default().grace_max_s.into(),
            "`grace_default_s`" => Limits::default().grace_default_s.into(),
            "`attempts_window_ms`" => Limits::default().attempts_window_ms,
            "`backoff_longest_ms`" => Limits::default().backoff_longest_ms,
            text => text.replace(',', "").parse::<u64>().expect("a number"),
        };
        let accepts = |value: u64| limits_with(name, &json!(value));
        accepts(number(default)).unwrap_or_else(|error| panic!("{name}, default: {error}"));
        accepts(number(least)).unwrap_or_else(|error| panic!("{name}, least: {error}"));
        if number(least) > 0 {
            accepts(number(least) - 1).expect_err("less than the least");
        }
        match most.as_str() {
            "none" => {
                let longest = if name.ends_with("_ms") { u64::MAX } else { u32::MAX.into() };
                accepts(longest).unwrap_or_else(|error| panic!("{name}, without a bound: {error}"));
            }
            most => {
                accepts(number(most)).unwrap_or_else(|error| panic!("{name}, most: {error}"));
                accepts(number(most) + 1).expect_err("more than the most");
            }
        }
    }
}

#[test]
fn every_reason_is_there_with_what_would_end_it() {
    let wanted: Vec<[String; 2]> =
        ReasonCode::ALL.iter().map(|code| [format!("`{code}`"), code.ends_when().to_owned()]).collect();
    let there: Vec<[String; 2]> =
        table("Reasons").iter().map(|row| [row[0].clone(), row[2].clone()]).collect();
    assert_eq!(there, wanted);
}

#[test]
fn every_status_and_verification_is_there() {
    assert_eq!(names("Statuses"), values("RunStatus", "RUN_STATUS_"));
    assert_eq!(names("Verification"), values("Verification", "VERIFICATION_"));
}

/// The words of events are a match over all kinds, which the compiler keeps whole.
#[test]
fn every_event_is_there() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ledger/run.rs");
    let source = std::fs::read_to_string(source).expect("src/ledger/run.rs");
    let body = source
        .split("pub fn word(self)")
        .nth(1)
        .expect("the words of events")
        .split("\n    }")
        .next()
        .unwrap();
    let words: Vec<&str> = body.split('"').skip(1).step_by(2).collect();
    assert!(words.len() > 15, "the words were not read: {words:?}");
    assert_eq!(names("Events"), words);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_check_is_there_in_order() {
    let (_world, _node, mut clients) = World::up([ContainerSpec::named("web")]).await;
    let made = clients.explained("local/web").await.checks;
    assert_eq!(names("Checks"), made.iter().map(|check| check.name.clone()).collect::<Vec<_>>());
}
