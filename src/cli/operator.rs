//! Who gives a command, for the record.

use super::exit::WrongUsage;
use super::text::plain;

/// Where the name of whoever is at the terminal stands, first to last.
const VARIABLES: [&str; 3] = ["SUDO_USER", "USER", "LOGNAME"];

/// `--by`.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Operator {
    /// Who does this, for the record [default: $SUDO_USER, else $USER, else $LOGNAME]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

impl Operator {
    /// The name: as it was typed, else as the environment has it.
    ///
    /// # Errors
    ///
    /// [`WrongUsage`] if neither has one.
    pub(super) fn name(&self) -> Result<String, WrongUsage> {
        self.name_in(|variable| std::env::var(variable).ok())
    }

    /// The same for what may be done without a name. What the environment has is left out if no node would take it.
    pub(super) fn name_if_known(&self) -> Option<String> {
        self.known_in(|variable| std::env::var(variable).ok().filter(|name| is_taken(name)))
    }

    fn known_in(&self, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
        let named = || VARIABLES.into_iter().filter_map(variable).find(|name| !name.trim().is_empty());
        self.by.clone().or_else(named)
    }

    fn name_in(&self, variable: impl Fn(&str) -> Option<String>) -> Result<String, WrongUsage> {
        self.known_in(variable).ok_or_else(|| {
            WrongUsage(format!(
                "it is not known who does this, since none of {} is set: type the same command with --by NAME, as in \
                 --by \"$(id -un)\"",
                VARIABLES.join(", ")
            ))
        })
    }
}

/// True if a name is one line, and not too long for the record.
fn is_taken(name: &str) -> bool {
    name.chars().count() <= 128 && name == plain(name)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::exit::Exit;
    use super::*;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        operator: Operator,
    }

    fn name(arguments: &[&str], environment: &[(&str, &str)]) -> Result<String, WrongUsage> {
        let all = ["x"].iter().chain(arguments);
        let operator = Alone::try_parse_from(all).unwrap().operator;
        operator.name_in(|variable| {
            environment.iter().find(|(name, _)| *name == variable).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn who_does_this_is_whoever_is_named_else_whoever_is_at_the_terminal() {
        let all = [("SUDO_USER", "kim"), ("USER", "root"), ("LOGNAME", "login")];
        assert_eq!(name(&["--by", "lee"], &all).unwrap(), "lee");
        assert_eq!(name(&[], &all).unwrap(), "kim");
        assert_eq!(name(&[], &all[1..]).unwrap(), "root");
        assert_eq!(name(&[], &[("SUDO_USER", " "), ("USER", ""), all[2]]).unwrap(), "login");
    }

    #[test]
    fn a_name_of_the_environment_that_no_node_would_take_is_known() {
        assert!(is_taken("kim") && is_taken("Kim Ünal"));
        for name in ["two\nlines", "\x1b[2J", &"x".repeat(129)] {
            assert!(!is_taken(name), "{name:?}");
        }
    }

    #[test]
    fn a_nameless_terminal_has_to_say_who_does_this() {
        let error = anyhow::Error::from(name(&[], &[]).unwrap_err());
        assert!(error.to_string().contains("type the same command with --by NAME"), "{error}");
        assert_eq!(Exit::of_error(&error), Exit::Usage);
    }
}
