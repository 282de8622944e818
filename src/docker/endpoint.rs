//! Where an engine listens.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::model::Wire;

/// The address of one Docker Engine: today a unix socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    socket: PathBuf,
}

/// A text that is no address of an engine, or of a kind that cannot be reached yet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEndpoint {
    /// Neither `unix://` nor an absolute path.
    #[error(
        "engine endpoint {0:?} is not valid: write it as unix:///var/run/docker.sock, or as an absolute path"
    )]
    Shape(String),
    /// An address of a kind that other Docker clients know.
    #[error(
        "engine endpoint {endpoint:?}: {scheme} is not supported yet (nor is TLS); only a unix socket is, \
         such as unix:///var/run/docker.sock"
    )]
    Unsupported {
        /// The whole text.
        endpoint: String,
        /// The part before `://`.
        scheme: String,
    },
    /// Longer than the kernel takes.
    #[error("engine endpoint {0:?} is not valid: the path of a unix socket has at most 107 bytes")]
    TooLong(String),
}

/// `sun_path` has 108 bytes, the closing zero included (`unix(7)`).
const LONGEST_SOCKET_PATH_BYTES: usize = 107;

impl Endpoint {
    /// Reads `unix:///path/to/socket`, or a bare absolute path.
    ///
    /// # Errors
    ///
    /// [`InvalidEndpoint`] names what is supported.
    pub fn parse(text: &str) -> Result<Self, InvalidEndpoint> {
        let path = match text.split_once("://") {
            Some(("unix", path)) => path,
            Some((scheme, _)) if !scheme.is_empty() => {
                return Err(InvalidEndpoint::Unsupported {
                    endpoint: text.to_owned(),
                    scheme: scheme.to_owned(),
                });
            }
            Some(_) => return Err(InvalidEndpoint::Shape(text.to_owned())),
            None => text,
        };
        if !path.starts_with('/') || path.ends_with('/') || path.contains('\0') {
            return Err(InvalidEndpoint::Shape(text.to_owned()));
        }
        if path.len() > LONGEST_SOCKET_PATH_BYTES {
            return Err(InvalidEndpoint::TooLong(text.to_owned()));
        }
        Ok(Self { socket: PathBuf::from(path) })
    }

    /// The kind of connection that leads there.
    #[must_use]
    pub fn wire(&self) -> Wire {
        Wire::Unix
    }

    /// The path of the socket.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix://{}", self.socket.display())
    }
}

impl std::str::FromStr for Endpoint {
    type Err = InvalidEndpoint;
    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unix_socket_may_be_written_with_or_without_its_scheme() {
        let with = Endpoint::parse("unix:///var/run/docker.sock").unwrap();
        assert_eq!(with, Endpoint::parse("/var/run/docker.sock").unwrap());
        assert_eq!(with.to_string(), "unix:///var/run/docker.sock");
        assert_eq!(with.wire(), Wire::Unix);
    }

    #[test]
    fn tcp_is_refused_by_name_with_what_is_supported() {
        for address in
            ["tcp://10.0.0.1:2376", "https://engine:2376", "ssh://root@engine", "npipe:////./pipe/x"]
        {
            let error = Endpoint::parse(address).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, InvalidEndpoint::Unsupported { .. }), "{text}");
            assert!(text.contains("not supported yet") && text.contains("unix:///"), "{text}");
        }
    }

    #[test]
    fn what_is_no_socket_path_is_refused() {
        for bad in ["", "docker.sock", "unix://docker.sock", "unix://", "/run/", "://x", "localhost:2375"] {
            assert!(matches!(Endpoint::parse(bad), Err(InvalidEndpoint::Shape(_))), "{bad:?} was accepted");
        }
        let long = format!("/{}", "a".repeat(200));
        assert!(matches!(Endpoint::parse(&long), Err(InvalidEndpoint::TooLong(_))));
    }
}
