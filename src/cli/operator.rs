//! Who gives a command, for the record.

use super::exit::WrongUsage;

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

    fn name_in(&self, variable: impl Fn(&str) -> Option<String>) -> Result<String, WrongUsage> {
        let named = self
            .by
            .clone()
            .or_else(|| VARIABLES.into_iter().filter_map(variable).find(|name| !name.trim().is_empty()));
        named.ok_or_else(|| {
            WrongUsage(format!(
                "it is not known who does this, since none of {} is set: type the same command with --by NAME, as in \
                 --by \"$(id -un)\"",
                VARIABLES.join(", ")
            ))
        })
    }
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
    fn a_nameless_terminal_has_to_say_who_does_this() {
        let error = anyhow::Error::from(name(&[], &[]).unwrap_err());
        assert!(error.to_string().contains("type the same command with --by NAME"), "{error}");
        assert_eq!(Exit::of_error(&error), Exit::Usage);
    }
}
