//! What can go wrong with a data directory.

use std::path::PathBuf;

/// What can go wrong with a data directory. Each says what was done to what, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// Something was done to a file or a database, and failed.
    #[error("{verb} {}: {detail}", path.display())]
    Failed {
        /// What was done, as in `writing`.
        verb: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        detail: String,
    },
    /// An earlier write or sync failed, so nothing is believed of this database any more.
    #[error(
        "{verb} {}: refused, since an earlier step failed ({cause}): restart this node once its disk is sound",
        path.display()
    )]
    Latched {
        /// What was to be done.
        verb: &'static str,
        /// To what.
        path: PathBuf,
        /// The first failure.
        cause: String,
    },
    /// Another process has the directory.
    #[error("locking {}: it is in use by another process: stop that one, or choose another directory", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The lock would not bind every process that can reach the directory.
    #[error(
        "using {}: it lies on {kind}, where a lock does not bind every process: choose a directory on a local disk",
        path.display()
    )]
    NotLocal {
        /// The directory.
        path: PathBuf,
        /// The kind of its file system.
        kind: String,
    },
    /// There is data, but nothing says whose.
    #[error(
        "reading {}: it is missing beside existing data ({data}): restore it, or start with an empty directory as a new node",
        path.display()
    )]
    IdentityLost {
        /// Where the identity belongs.
        path: PathBuf,
        /// What is there without it.
        data: String,
    },
    /// Something that was stored cannot be read as what it is to be.
    #[error("reading {}: {detail}", path.display())]
    Malformed {
        /// What was read.
        path: PathBuf,
        /// Why it is not.
        detail: String,
    },
}

impl StorageError {
    pub(crate) fn failed(
        verb: &'static str,
        path: impl Into<PathBuf>,
        cause: impl std::fmt::Display,
    ) -> Self {
        Self::Failed { verb, path: path.into(), detail: cause.to_string() }
    }
}

impl From<StorageError> for std::io::Error {
    fn from(error: StorageError) -> Self {
        Self::other(error)
    }
}
