//! How long a disk takes to make a write durable.

use std::fs::{File, OpenOptions, remove_file};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::data_dir::TEMPORARY;
use super::error::StorageError;
use crate::env::{Clock, OsRandomness, hex_id};

/// About what one append to the log has, header and all.
const APPEND_BYTES: usize = 1024;

/// Enough for a median that means something.
const ROUNDS: usize = 31;

/// A disk so slow that this is not enough for all rounds has shown what it is.
const AT_MOST_MS: u64 = 5_000;

/// How long appends took until they were durable, in whole milliseconds: what is faster than that needs no
/// telling apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncSpeed {
    /// Half of them took at most this.
    pub median_ms: u64,
    /// The slowest.
    pub worst_ms: u64,
    /// How many there were: at least one.
    pub rounds: usize,
}

impl SyncSpeed {
    /// Appends to a file of its own in `folder`, and syncs, again and again, for 5 s at most. The file is
    /// removed. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// [`StorageError::Failed`] if the folder cannot be written to.
    pub fn measure(folder: &Path, clock: &dyn Clock) -> Result<Self, StorageError> {
        let mut file = Temporary::make(folder)?;
        let begun_ms = clock.monotonic_ms();
        let mut now_ms = begun_ms;
        let mut times_ms = Vec::new();
        while times_ms.is_empty() || (times_ms.len() < ROUNDS && now_ms - begun_ms < AT_MOST_MS) {
            let round_ms = now_ms;
            file.append()?;
            now_ms = clock.monotonic_ms();
            times_ms.push(now_ms - round_ms);
        }
        Ok(Self::of(times_ms))
    }

    fn of(mut times_ms: Vec<u64>) -> Self {
        times_ms.sort_unstable();
        Self {
            median_ms: times_ms.get(times_ms.len() / 2).copied().unwrap_or_default(),
            worst_ms: times_ms.last().copied().unwrap_or_default(),
            rounds: times_ms.len(),
        }
    }
}

/// A file that is gone when this is.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Temporary {
    fn make(folder: &Path) -> Result<Self, StorageError> {
        let name =
            hex_id(&OsRandomness).map_err(|error| StorageError::failed("writing in", folder, error))?;
        let path = folder.join(format!("{TEMPORARY}{name}"));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(|error| StorageError::failed("writing", &path, error))?;
        Ok(Self { path, file })
    }

    /// As a database appends to its log: the file grows, so that its new length must be durable as well.
    fn append(&mut self) -> Result<(), StorageError> {
        let written = self.file.write_all(&[0x5a; APPEND_BYTES]).and_then(|()| self.file.sync_data());
        written.map_err(|error| StorageError::failed("writing", &self.path, error))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // It is small, and its name is one that a data directory may have.
        let _ = remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::SystemClock;

    #[test]
    fn the_median_is_not_moved_by_one_slow_sync() {
        let speed = SyncSpeed::of(vec![900, 1, 3, 2, 4]);
        assert_eq!(speed, SyncSpeed { median_ms: 3, worst_ms: 900, rounds: 5 });
    }

    #[test]
    fn nothing_is_left_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let speed = SyncSpeed::measure(folder.path(), &SystemClock).unwrap();
        assert!(speed.rounds >= 1 && speed.median_ms <= speed.worst_ms, "{speed:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
