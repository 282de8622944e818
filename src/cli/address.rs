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

#[cfg(test)]
mod tests {
    use super::*;

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
