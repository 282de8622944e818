//! Files and folders are made durable here, and a database in [`super::Database::sync`]; nowhere else.
//!
//! Each call has a name, `sync-…`. With the feature `failpoints` a test has the sync of one name left out
//! (`return(lose)`), and shows what is gone when the machine then loses its power (`tests/holes.txt`).

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use super::error::StorageError;
use crate::env::failpoint;

/// Makes a file's content durable, not its name.
///
/// # Errors
///
/// [`std::io::Error`] as the system gives it.
pub(crate) fn sync_file(name: &'static str, file: &File) -> std::io::Result<()> {
    if failpoint::loses(name) { Ok(()) } else { file.sync_all() }
}

/// Makes the name of `path` durable in the folder that holds it.
pub(super) fn sync_name(name: &'static str, path: &Path) -> Result<(), StorageError> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let sync = || sync_file(name, &File::open(folder)?);
    sync().map_err(|error| StorageError::failed("syncing", folder, error))
}

/// Makes a folder, for its owner alone, durable in the one above. One that is there is left as it is.
///
/// # Errors
///
/// [`StorageError::Failed`].
pub(crate) fn make_folder(path: &Path) -> Result<(), StorageError> {
    if path.is_dir() {
        return Ok(());
    }
    let made = DirBuilder::new().mode(0o700).create(path);
    made.map_err(|error| StorageError::failed("making", path, error))?;
    sync_name("sync-made-folder", path)
}
