//! One thing that was looked at, and how it is shown.

use serde::Serialize;

use super::super::text::plain;

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    /// As it should be.
    Ok,
    /// relatch works, but not as well or as safely as it could.
    Warn,
    /// relatch does not work.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    /// It is stable: programs look for it.
    pub(super) name: &'static str,
    pub(super) status: Status,
    /// What was seen.
    pub(super) seen: String,
    /// What to do. Empty if it is as it should be.
    pub(super) advice: String,
}

impl Check {
    pub(super) fn ok(name: &'static str, seen: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, seen: seen.into(), advice: String::new() }
    }

    pub(super) fn warn(name: &'static str, seen: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, status: Status::Warn, seen: seen.into(), advice: advice.into() }
    }

    pub(super) fn fail(name: &'static str, seen: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, status: Status::Fail, seen: seen.into(), advice: advice.into() }
    }
}

/// The checks for people: a line for each, and what to do under it.
pub(super) fn table(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let status = match check.status {
            Status::Ok => "ok",
            Status::Warn => "warn",
            Status::Fail => "FAIL",
        };
        text += &format!("{status:<4}  {:<width$}  {}\n", check.name, plain(&check.seen));
        if !check.advice.is_empty() {
            text += &format!("{:<4}  {:<width$}  → {}\n", "", "", plain(&check.advice));
        }
    }
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let (warnings, failures) = (count(Status::Warn), count(Status::Fail));
    text += &match (warnings, failures) {
        (0, 0) => "\nNothing would get in the way of `relatch dev`.\n".to_owned(),
        (_, 0) => format!("\n`relatch dev` can run; {warnings} to look at.\n"),
        (0, _) => format!("\n`relatch dev` would not work: {failures} to mend first.\n"),
        _ => {
            format!("\n`relatch dev` would not work: {failures} to mend first, and {warnings} to look at.\n")
        }
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_stands_under_what_was_seen() {
        let text = table(&[
            Check::ok("listen", "127.0.0.1:7370 is free"),
            Check::fail("docker-socket", "it is\x1b[31m red", "start it"),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "ok    listen         127.0.0.1:7370 is free");
        assert_eq!(lines[1], "FAIL  docker-socket  it is\u{fffd}[31m red");
        assert_eq!(lines[2], "                     → start it");
        assert!(text.ends_with("1 to mend first.\n"), "{text}");
    }
}
