//! Whole files that are replaced in one step.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::error::StorageError;
use super::sync::{sync_file, sync_name};

/// The file's content; `None` if there is no such file.
///
/// # Errors
///
/// [`StorageError::Failed`] if it is there and cannot be read.
pub fn read_file(path: &Path) -> Result<Option<Vec<u8>>, StorageError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StorageError::failed("reading", path, error)),
    }
}

/// Replaces the file by `content`, durably: after any crash it is either the old file or the new one, whole.
///
/// # Errors
///
/// [`StorageError::Failed`]; the old file still stands, unless only the last sync of its folder failed.
pub fn replace_file(path: &Path, content: &[u8]) -> Result<(), StorageError> {
    let temporary = path.with_extension("tmp");
    let write = || -> std::io::Result<()> {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(content)?;
        sync_file("sync-replaced-file", &file)
    };
    write().map_err(|error| StorageError::failed("writing", &temporary, error))?;
    rename(&temporary, path)
}

/// Moves a file that is already synced to its place, durably.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), StorageError> {
    fs::rename(from, to).map_err(|error| StorageError::failed("renaming", from, error))?;
    sync_name("sync-renamed", to)
}
