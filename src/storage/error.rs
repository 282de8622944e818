//! What can go wrong with a data directory.

use std::path::PathBuf;

/// What can go wrong with a data directory. Each says what was done to what, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// Something was done to a file or a database, and failed.
    #[error("{verb} {}: {detail}{}", path.display(), hint(detail))]
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
    #[error(
        "locking {}: it is in use by another process, likely a relatch that serves already: give your commands to that \
         one, or stop it; for another engine choose another directory",
        path.display()
    )]
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
    /// Something else is where the directory should be.
    #[error("using {}: it is not a directory: name one, or a place where one can be made", path.display())]
    NotADirectory {
        /// What is in the way.
        path: PathBuf,
    },
    /// There is something in the directory, but nothing says that it is ours, or whose.
    #[error(
        "using {}: it is not empty ({found} is there), but has no identity.json: if it is a node's, restore that \
         file, else choose an empty or a new directory; nothing in it was touched",
        path.display()
    )]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// The name of something that is there.
        found: String,
    },
    /// Another version of relatch wrote it.
    #[error(
        "reading {}: it has {found}, this build knows {known}: use the version of relatch that wrote it, or another \
         directory; nothing in it was touched",
        path.display()
    )]
    OtherFormat {
        /// What was read.
        path: PathBuf,
        /// Its format.
        found: String,
        /// What would be understood.
        known: String,
    },
    /// A byte of a file is not what was written. What comes after it may be lost, and is not guessed at.
    #[error(
        "reading {}: it is damaged at byte {offset}: {detail}: restore this directory from a backup, or begin anew \
         with an empty one as a new node; nothing in it was changed",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it, in bytes from its beginning.
        offset: u64,
        /// What is wrong there.
        detail: String,
    },
    /// Something that was stored cannot be read as what it is to be.
    #[error(
        "reading {}: {detail}: restore this directory from a backup, or begin anew with an empty one as a new node",
        path.display()
    )]
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

/// What to do about it, where the system's words tell. RocksDB has nothing but words.
fn hint(detail: &str) -> &'static str {
    let says = |words: &str| detail.contains(words);
    if says("No space left on device") || says("Disk quota exceeded") {
        "; there is no room left: make some; nothing that was answered is lost"
    } else if says("Read-only file system") {
        "; the file system is read-only, and each decision must be on disk first: mount it writable, or choose \
         another directory"
    } else if says("Permission denied") || says("Operation not permitted") {
        "; this user may not: run as the directory's owner, or choose another directory"
    } else if says("Corruption") {
        "; something in it is damaged or missing: restore this directory from a backup, or begin anew with an empty \
         one as a new node"
    } else {
        ""
    }
}

impl From<StorageError> for std::io::Error {
    fn from(error: StorageError) -> Self {
        Self::other(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_followed_by_what_to_do() {
        for (kind, next) in [
            (std::io::Error::from(rustix::io::Errno::NOSPC), "make some"),
            (std::io::Error::from(rustix::io::Errno::DQUOT), "make some"),
            (std::io::Error::from(rustix::io::Errno::ROFS), "mount it writable"),
            (std::io::Error::from(rustix::io::Errno::ACCESS), "run as the directory's owner"),
        ] {
            let error = StorageError::failed("writing", "/d", kind);
            assert!(error.to_string().contains(next), "{error}");
        }
        let damaged = StorageError::failed("opening", "/d", "Corruption: block checksum mismatch");
        assert!(damaged.to_string().contains("restore this directory from a backup"), "{damaged}");
        let other = StorageError::failed("writing", "/d", std::io::Error::from(rustix::io::Errno::IO));
        assert!(other.to_string().ends_with("(os error 5)"), "{other}");
    }
}
