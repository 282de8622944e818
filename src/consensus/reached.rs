//! How far the log has got, as a file beside it says.
//!
//! A log whose end is gone looks like one that a crash has torn. So what it holds for certain is written down where
//! damage to it does not reach, and a log that ends before that is refused at the start ([`require`]). No honest
//! crash makes it end there: only an entry counts that is applied here, which no leader truncates, *and* on disk here.
//!
//! The file costs a restart nothing: it is written a while after the log has moved, and when the node ends in order.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::error::ConsensusError;
use super::log_store::{Synced, ends};
use super::snapshot::SnapshotFile;
use super::snapshot_folder::current_of;
use super::stored::{APPLIED, StoredLogId, load};
use crate::env::failpoint;
use crate::model::LogIndex;
use crate::storage::{Database, StorageError, read_file, replace_file};

const FILE: &str = "reached.json";

/// The newest form that this build knows.
const FORMAT: u32 = 1;

/// How long after the log has moved that is written down: what is lost of these last seconds is not missed.
const PAUSE_MS: u64 = 5_000;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    format: u32,
    index: u64,
    /// Of the index as text: a flipped digit must not make a sound log look short.
    crc32c: u32,
}

impl Stored {
    fn of(index: LogIndex) -> Self {
        Self { format: FORMAT, index: index.0, crc32c: crc32c::crc32c(index.to_string().as_bytes()) }
    }
}

/// What is certain to be there after any crash.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) applied: watch::Receiver<LogIndex>,
    /// How far the log is on disk.
    pub(super) synced: Synced,
}

impl Kept {
    fn index(&self) -> LogIndex {
        (*self.applied.borrow()).min(self.synced.index())
    }
}

/// Writes down how far the log has got, until it is closed or dropped.
#[derive(Debug)]
pub(super) struct Keeper {
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Keeper {
    pub(super) fn start(dir: &Path, kept: Kept) -> Self {
        let stop = watch::Sender::new(false);
        let task = tokio::spawn(keep(dir.join(FILE), kept, stop.subscribe()));
        Self { stop, task: Mutex::new(Some(task)) }
    }

    /// Writes it for the last time. Nothing is applied any more.
    pub(super) async fn close(&self) {
        self.stop.send_replace(true);
        if let Some(Err(error)) = async { Some(self.task.lock().await.take()?.await) }.await {
            tracing::warn!(%error, "how far the log has got was not written down at the end");
        }
    }
}

async fn keep(path: PathBuf, mut kept: Kept, mut stop: watch::Receiver<bool>) {
    let pause = Duration::from_millis(failpoint::number("consensus-reached-ms").unwrap_or(PAUSE_MS));
    let mut written = LogIndex(0);
    let mut is_told = false;
    loop {
        tokio::select! {
            moved = kept.applied.changed() => if moved.is_err() { return },
            _ = stop.wait_for(|stop| *stop) => {}
        }
        let stops = match timeout(pause, stop.wait_for(|stop| *stop)).await {
            Ok(Ok(_)) => true,
            // Dropped, and not closed.
            Ok(Err(_)) => return,
            Err(_) => false,
        };
        let index = kept.index();
        if index > written {
            let path = path.clone();
            let done = spawn_blocking(move || write(&path, index)).await;
            match done.map_err(|error| error.to_string()).and_then(|done| done.map_err(|e| e.to_string())) {
                Ok(()) => written = index,
                // What is there stays true, and says less.
                Err(detail) if !is_told => {
                    tracing::warn!(%detail, "how far the log has got cannot be written down; it is tried again");
                    is_told = true;
                }
                Err(_) => {}
            }
        }
        if stops {
            return;
        }
    }
}

fn write(path: &Path, index: LogIndex) -> Result<(), StorageError> {
    let text = serde_json::to_vec(&Stored::of(index));
    replace_file(path, &text.map_err(|error| StorageError::failed("writing", path, error))?)
}

/// What the file says; `None` if there is none.
fn read(path: &Path) -> Result<Option<LogIndex>, StorageError> {
    let Some(text) = read_file(path)? else { return Ok(None) };
    let malformed = |detail: String| StorageError::Malformed { path: path.to_owned(), detail };
    let stored: Stored = serde_json::from_slice(&text).map_err(|error| malformed(error.to_string()))?;
    if stored.format != FORMAT {
        let (found, known) = (format!("format {}", stored.format), format!("format {FORMAT}"));
        return Err(StorageError::OtherFormat { path: path.to_owned(), found, known });
    }
    if stored.crc32c != Stored::of(LogIndex(stored.index)).crc32c {
        return Err(malformed("its checksum does not match: it was damaged".to_owned()));
    }
    Ok(Some(LogIndex(stored.index)))
}

/// Refuses a log that ends before what the file beside it says, or before what the state contains.
pub(super) fn require(database: &Database, dir: &Path) -> Result<(), ConsensusError> {
    let file = dir.join(FILE);
    if let Some(reached) = read(&file)? {
        require_reached(database, dir, reached, &file)?;
    }
    match load::<StoredLogId>(database, APPLIED)? {
        Some(applied) => require_reached(database, dir, LogIndex(applied.index), database.path()),
        None => Ok(()),
    }
}

/// Refuses a log that ends before `reached`, which `witness` shows to have been in it once: applied here, and on disk.
///
/// `dir` is the data directory, as in [`super::Settings`]. Nothing is changed.
///
/// # Errors
///
/// [`ConsensusError::LogBehind`], or [`ConsensusError::Storage`] if it cannot be read.
pub fn require_reached(
    database: &Database,
    dir: &Path,
    reached: LogIndex,
    witness: &Path,
) -> Result<(), ConsensusError> {
    let end = end(database, dir)?;
    if end >= reached {
        return Ok(());
    }
    Err(ConsensusError::LogBehind {
        log: database.path().to_owned(),
        end,
        reached,
        witness: witness.to_owned(),
    })
}

/// The last entry that the log has, or that it was purged of, or that the snapshot contains.
fn end(database: &Database, dir: &Path) -> Result<LogIndex, StorageError> {
    let (purged, last) = ends(database)?;
    let current = current_of(&dir.join("snapshot"));
    let contained = if current.exists() { SnapshotFile::open(&current)?.header()?.last } else { None };
    let index = [purged, last, contained].into_iter().flatten().map(|id| id.index).max();
    Ok(LogIndex(index.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_reads_back_and_a_flipped_bit_is_never_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        assert_eq!(read(&path).unwrap(), None);
        write(&path, LogIndex(4_711)).unwrap();
        let text = std::fs::read(&path).unwrap();
        assert_eq!(String::from_utf8_lossy(&text), r#"{"format":1,"index":4711,"crc32c":2037808435}"#);
        assert_eq!(read(&path).unwrap(), Some(LogIndex(4_711)));
        for bit in 0..text.len() * 8 {
            let mut flipped = text.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, flipped).unwrap();
            let said = read(&path).expect_err("a flipped bit was believed").to_string();
            assert!(said.contains(FILE), "bit {bit}: {said}");
        }
    }
}
