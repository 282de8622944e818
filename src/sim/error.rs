//! What can go wrong when the engine is set up, and what it tells its clients.

use std::{io, path::PathBuf};

/// Setting up, scripting or ending the scripted engine failed.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The address could not be bound.
    #[error("listening on {address}: {source}")]
    Listen {
        /// The socket path or TCP address.
        address: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// No container has this id, name or id prefix.
    #[error("no container answers to {name:?}; GET /state of the control listener lists them")]
    NoSuchContainer {
        /// The id or name that was asked for.
        name: String,
    },
    /// Another container already has this id or name.
    #[error("the id or name {name:?} is taken by another container")]
    Taken {
        /// The id or name that was asked for.
        name: String,
    },
    /// A script asks for what cannot be done on the wire.
    #[error("script: {problem}")]
    Script {
        /// What is wrong, and what to write instead.
        problem: String,
    },
    /// A file could not be read or written.
    #[error("{action} {path}: {source}", path = path.display())]
    File {
        /// What was being done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A file does not hold a valid script or log.
    #[error("reading {path}: {source}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Where and why parsing stopped.
        source: serde_json::Error,
    },
    /// An entry of the wire log could not be written to its file, so the file proves nothing.
    #[error("writing the wire log: {problem}")]
    LogIncomplete {
        /// The first failure.
        problem: String,
    },
    /// The operating system gave no random bytes for an id.
    #[error("reading random bytes for an id: {0}")]
    Random(getrandom::Error),
}

/// A refusal as the engine puts it to an API client: `{"message": …}` under a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    pub(crate) message: String,
}

impl ApiError {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn no_such_container(name: &str) -> Self {
        Self::new(404, format!("No such container: {name}"))
    }
}
