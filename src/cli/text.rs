//! Texts of foreign origin (reasons, container names, what an engine said) made fit for a terminal.

use std::error::Error;

use crate::docker::harmless;

/// The text on one line, without characters that steer a terminal or turn the direction of writing.
pub(super) fn plain(text: &str) -> String {
    harmless(text, usize::MAX)
}

/// An error and its causes on one line. A cause that the text before it has told already is left out.
pub(super) fn with_causes<'a>(causes: impl Iterator<Item = &'a (dyn Error + 'static)>) -> String {
    let mut text = String::new();
    for cause in causes.map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    plain(&text)
}

/// The word of an enum value, without the prefix that all values of its type have.
pub(super) fn word<'a>(name: &'a str, prefix: &str) -> &'a str {
    name.strip_prefix(prefix).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let cause = || std::io::Error::other("refused");
        let told = anyhow::Error::from(cause()).context("connecting: refused; try again");
        assert_eq!(with_causes(told.chain()), "connecting: refused; try again");
        let untold = anyhow::Error::from(cause()).context("connecting");
        assert_eq!(with_causes(untold.chain()), "connecting: refused");
    }

    #[test]
    fn what_steers_a_terminal_is_taken_out() {
        assert_eq!(plain("a\x1b[2Jb\nc\u{202e}d"), "a\u{fffd}[2Jb c\u{fffd}d");
        assert_eq!(plain("a\u{61c}b\u{e0041}c"), "a\u{fffd}b\u{fffd}c");
    }
}
