//! Every command and every flag that the help names is used by a test.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::node::{answered, relatch};

/// A command as its help shows it.
pub struct Command {
    /// As in `runs list`; empty for `relatch` itself.
    pub name: String,
    pub help: String,
}

impl Command {
    /// Its flags, as in `--addr`.
    fn flags(&self) -> impl Iterator<Item = &str> {
        let options = self.help.lines().map(str::trim).filter(|line| line.starts_with('-'));
        let words = options.flat_map(|line| line.split([' ', ',', '=', '[']));
        words.filter(|word| word.starts_with("--") && word.len() > 2)
    }

    /// The commands below it.
    fn below(&self) -> Vec<String> {
        let listed = self.help.lines().skip_while(|line| line.trim() != "Commands:").skip(1);
        let listed = listed.take_while(|line| line.starts_with("  "));
        let names = listed.filter_map(|line| line.split_whitespace().next());
        let whole = |name: &str| format!("{} {name}", self.name).trim().to_owned();
        names.filter(|name| *name != "help").map(whole).collect()
    }
}

/// Every command that the help leads to.
pub fn commands() -> Vec<Command> {
    let mut names = vec![String::new()];
    let mut commands = Vec::new();
    while let Some(name) = names.pop() {
        let answer = answered(relatch().args(name.split_whitespace()).arg("--help"));
        assert_eq!(answer.exit, 0, "{answer:?}");
        let command = Command { name, help: answer.stdout };
        names.extend(command.below());
        commands.push(command);
    }
    commands
}

/// The text of every test: all of `tests/`, and what follows after `#[cfg(test)]` in `src/cli`.
fn tests(folder: &Path, all: bool, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            tests(&path, all, text);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let source = std::fs::read_to_string(&path).expect("a source");
            let from = if all { Some(0) } else { source.find("#[cfg(test)]\nmod tests") };
            text.push_str(from.map_or("", |from| &source[from..]));
        }
    }
}

#[test]
fn every_flag_of_every_command_is_named_by_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    tests(&root.join("tests"), true, &mut text);
    tests(&root.join("src/cli"), false, &mut text);
    let commands = commands();
    assert!(commands.len() > 12, "the help was not read: {} commands", commands.len());
    let flags: BTreeSet<&str> = commands.iter().flat_map(Command::flags).collect();
    assert!(flags.len() > 20, "the help was not read: {flags:?}");
    let named = |flag: &str| text.contains(&format!("\"{flag}\"")) || text.contains(&format!("\"{flag}="));
    let unnamed: Vec<&&str> = flags.iter().filter(|flag| !named(flag)).collect();
    assert!(unnamed.is_empty(), "no test names {unnamed:?}");
}

#[test]
fn the_help_of_a_command_is_read_as_it_is_printed() {
    let help = "Usage: x\n\nCommands:\n  set   Change it\n  help  Print\n\nOptions:\n      --wait[=<UNTIL>]\n          Not a --flag\n  -o, --output <OUTPUT>\n";
    let command = Command { name: "limits".into(), help: help.into() };
    assert_eq!(command.flags().collect::<Vec<_>>(), ["--wait", "--output"]);
    assert_eq!(command.below(), ["limits set"]);
}
