//! The address of a node.

use std::fmt;
use std::str::FromStr;

use http::Uri;

/// `http://HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address(String);

impl Address {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Address {
    type Err = String;

    /// Reads `HOST:PORT`, with or without `http://`.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let shape = || format!("{text:?} is no address of a node: write it as http://127.0.0.1:7370");
        let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = whole.parse().map_err(|_| shape())?;
        match uri.scheme_str() {
            Some("http") if uri.port_u16().is_some() && matches!(uri.path(), "" | "/") => {
                Ok(Self(whole.trim_end_matches('/').to_owned()))
            }
            Some("http") => Err(shape()),
            _ => Err(format!("{text:?}: only http:// is supported yet, such as http://127.0.0.1:7370")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a node is unless anything else is said.
const DEFAULT: &str = "http://127.0.0.1:7370";

/// The environment variable that stands in for `--addr`.
const VARIABLE: &str = "RELATCH_ADDR";

// `--addr`. (A doc comment here would take the place of a command's own.)
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Addresses {
    /// Nodes to ask, in this order; several are separated by commas [env: RELATCH_ADDR] [default:
    /// http://127.0.0.1:7370]
    #[arg(long, global = true, value_name = "ADDR", value_delimiter = ',')]
    addr: Vec<Address>,
}

impl Addresses {
    /// Those named after the command, else those before it, else those in the environment, else the default.
    pub(super) fn or(self, before: &[Address]) -> Result<Vec<Address>, String> {
        let from_environment = std::env::var(VARIABLE).unwrap_or_default();
        self.or_from(before, &from_environment)
    }

    fn or_from(self, before: &[Address], from_environment: &str) -> Result<Vec<Address>, String> {
        let named = [self.addr.as_slice(), before].into_iter().find(|named| !named.is_empty());
        if let Some(named) = named {
            return Ok(named.to_vec());
        }
        let text = if from_environment.is_empty() { DEFAULT } else { from_environment };
        let parsed = text.split(',').map(str::parse).collect::<Result<_, _>>();
        parsed.map_err(|error| format!("{VARIABLE}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_closest_to_the_command_counts() {
        let address = |text: &str| text.parse::<Address>().unwrap();
        let after = || Addresses { addr: vec![address("a:1")] };
        let asked = |addresses: Addresses, before: &[Address], environment: &str| {
            let found = addresses.or_from(before, environment)?;
            Ok::<_, String>(found.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let before = [address("b:2")];
        assert_eq!(asked(after(), &before, "c:3").unwrap(), ["http://a:1"]);
        assert_eq!(asked(Addresses::default(), &before, "c:3").unwrap(), ["http://b:2"]);
        assert_eq!(asked(Addresses::default(), &[], "c:3,d:4").unwrap(), ["http://c:3", "http://d:4"]);
        assert_eq!(asked(Addresses::default(), &[], "").unwrap(), [DEFAULT]);
        let error = asked(Addresses::default(), &[], "nonsense").unwrap_err();
        assert!(error.contains(VARIABLE) && error.contains("nonsense"), "{error}");
    }

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for (text, address) in [
            ("127.0.0.1:7370", "http://127.0.0.1:7370"),
            ("http://[::1]:7370/", "http://[::1]:7370"),
            (" relatch.example:1 ", "http://relatch.example:1"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().as_str(), address);
        }
        for text in ["", "localhost", "https://a:1", "unix:///run/x", "a:b", "http://a:1/path"] {
            assert!(text.parse::<Address>().is_err(), "{text:?} was taken");
        }
    }
}
