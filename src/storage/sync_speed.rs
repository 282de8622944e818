//! How long a disk takes to make a write durable.

use std::fs::{File, OpenOptions, remove_file};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::data_dir::TEMPORARY;
use super::error::StorageError;
use crate::env::{OsRandomness, hex_id};

/// About what one append to the log has, header and all.
const APPEND_BYTES: usize = 1024;

/// Enough for a median that means something.
const ROUNDS: usize = 31;

/// A disk so slow that this is not enough for all rounds has shown what it is.
const AT_MOST: Duration = Duration::from_secs(5);

/// How long appends took until they were durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncSpeed {
    /// Half of them took at most this.
    pub median: Duration,
    /// The slowest.
    pub worst: Duration,
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
    pub fn measure(folder: &Path) -> Result<Self, StorageError> {
        let mut file = Temporary::make(folder)?;
        let begun = Instant::now();
        let mut times = Vec::new();
        while times.is_empty() || (times.len() < ROUNDS && begun.elapsed() < AT_MOST) {
            let round = Instant::now();
            file.append()?;
            times.push(round.elapsed());
        }
        Ok(Self::of(times))
    }

    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self {
            median: times.get(times.len() / 2).copied().unwrap_or_default(),
            worst: times.last().copied().unwrap_or_default(),
            rounds: times.len(),
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

    #[test]
    fn the_median_is_not_moved_by_one_slow_sync() {
        let ms = |times: &[u64]| SyncSpeed::of(times.iter().map(|ms| Duration::from_millis(*ms)).collect());
        let speed = ms(&[900, 1, 3, 2, 4]);
        assert_eq!((speed.median.as_millis(), speed.worst.as_millis(), speed.rounds), (3, 900, 5));
    }

    #[test]
    fn nothing_is_left_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let speed = SyncSpeed::measure(folder.path()).unwrap();
        assert!(speed.rounds >= 1 && speed.median <= speed.worst, "{speed:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
