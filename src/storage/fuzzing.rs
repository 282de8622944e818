//! A way into this module for `tests/fuzz` alone.

use std::path::Path;

use super::{Identity, StorageError};

/// Reads the identity that is stored at `path`; `None` if nothing is.
///
/// # Errors
///
/// [`StorageError`] as a start is refused with it.
pub fn read_identity(path: &Path) -> Result<Option<Identity>, StorageError> {
    Identity::read(path)
}

/// Stores an identity at `path`.
///
/// # Errors
///
/// [`StorageError`] if it cannot be written.
pub fn store_identity(identity: &Identity, path: &Path) -> Result<(), StorageError> {
    identity.store(path)
}
