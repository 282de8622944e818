//! The latch: what failed once is not tried again.

use std::path::{Path, PathBuf};

use tokio::sync::watch;

use super::error::StorageError;

/// Remembers the first failure of a database for as long as the process lives.
#[derive(Debug)]
pub(super) struct Latch {
    path: PathBuf,
    first: watch::Sender<Option<String>>,
}

impl Latch {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), first: watch::Sender::new(None) }
    }

    /// Refuses if something failed before.
    pub(super) fn check(&self, verb: &'static str) -> Result<(), StorageError> {
        match &*self.first.borrow() {
            None => Ok(()),
            Some(cause) => Err(StorageError::Latched { verb, path: self.path.clone(), cause: cause.clone() }),
        }
    }

    /// Takes note of a failure, and gives it back as an error. The first one stays.
    pub(super) fn fail(&self, verb: &'static str, cause: impl std::fmt::Display) -> StorageError {
        let error = StorageError::failed(verb, &self.path, cause);
        self.first.send_if_modified(|first| {
            let is_first = first.is_none();
            if is_first {
                *first = Some(error.to_string());
            }
            is_first
        });
        error
    }

    pub(super) fn watch(&self) -> watch::Receiver<Option<String>> {
        self.first.subscribe()
    }
}
