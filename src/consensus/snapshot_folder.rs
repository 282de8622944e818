//! Where a node keeps its one current snapshot.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Seek as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::snapshot::{Header, Snapshot, SnapshotFile, Writer};
use super::stored::{APPLIED, LEDGER, MEMBERSHIP, RAFT, StoredConfiguration, StoredLogId};
use super::type_config::StoredMembership;
use crate::env::failpoint;
use crate::ledger::Record;
use crate::model::ClusterId;
use crate::storage::{Database, StorageError, View, make_folder, rename, sync_file};

const CURRENT: &str = "current.jsonl";

/// Where the current snapshot of a folder lies, if there is one.
pub(super) fn current_of(folder: &Path) -> PathBuf {
    folder.join(CURRENT)
}

/// The folder of the current snapshot. A new one takes the old one's place by a rename, whole and synced.
#[derive(Debug)]
pub(super) struct SnapshotFolder {
    path: PathBuf,
    cluster: ClusterId,
    temporaries: AtomicU64,
    /// Held while the current one is replaced: a snapshot that was slow to build must not replace a newer
    /// one that was installed meanwhile.
    replacing: Mutex<()>,
}

/// A file that is being received. It goes away with this; whoever took it over made a copy of it.
#[derive(Debug)]
pub(super) struct Arriving {
    path: PathBuf,
}

impl Drop for Arriving {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a received file could not be removed; the next start does");
        }
    }
}

impl SnapshotFolder {
    /// Opens the folder, makes it if needed, and clears away what a crash left half written. The current snapshot
    /// is read once: one that is damaged would be found when it is needed.
    pub(super) fn open(path: PathBuf, cluster: ClusterId) -> Result<Self, StorageError> {
        let failed = |error: io::Error| StorageError::failed("opening", &path, error);
        make_folder(&path)?;
        for entry in fs::read_dir(&path).map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            if file.extension().is_some_and(|extension| extension == "tmp") {
                fs::remove_file(&file).map_err(|error| StorageError::failed("removing", &file, error))?;
            }
        }
        let current = current_of(&path);
        if current.exists() {
            SnapshotFile::open(&current)?.check(&cluster)?;
        }
        Ok(Self { path, cluster, temporaries: AtomicU64::new(0), replacing: Mutex::new(()) })
    }

    pub(super) fn cluster(&self) -> &ClusterId {
        &self.cluster
    }

    /// The current snapshot, if there is one.
    pub(super) fn current(&self) -> Result<Option<Snapshot>, StorageError> {
        let path = current_of(&self.path);
        if !path.exists() {
            return Ok(None);
        }
        let mut file = SnapshotFile::open(&path)?;
        let header = file.header()?;
        self.snapshot(&header, file).map(Some)
    }

    /// Writes the state that `view` shows, and makes it the current snapshot unless a newer one is.
    pub(super) fn build(&self, database: &Database, view: &View<'_>) -> Result<Snapshot, StorageError> {
        let last: Option<StoredLogId> = load(database, view, APPLIED)?;
        let membership: Option<StoredConfiguration> = load(database, view, MEMBERSHIP)?;
        let membership = membership.unwrap_or_else(|| (&StoredMembership::default()).into());
        let header = Header::new(self.cluster.clone(), last, membership);

        let (path, file) = self.temporary()?;
        let failed = |error: io::Error| StorageError::failed("writing", &path, error);
        let mut writer = Writer::begin(BufWriter::new(file), header.clone()).map_err(failed)?;
        for entry in view.entries(LEDGER)? {
            let (key, value) = entry?;
            let record: Record = super::stored::decode(database, &key, &value)?;
            writer.record(key, record).map_err(failed)?;
        }
        let file = writer.end().map_err(failed)?;
        sync_file("sync-snapshot", file.get_ref()).map_err(failed)?;
        failpoint::reach("raft_snapshot_built");
        self.replace(path, &header)
    }

    /// A new file for a snapshot that a peer sends, to be written to.
    pub(super) fn arriving(&self) -> Result<(Arriving, File), StorageError> {
        let (path, file) = self.temporary()?;
        Ok((Arriving { path }, file))
    }

    /// What came, if it is a whole snapshot of this cluster.
    pub(super) fn arrived(&self, arriving: &Arriving) -> Result<Snapshot, StorageError> {
        let mut file = SnapshotFile::open(&arriving.path)?;
        let header = file.check(&self.cluster)?;
        self.snapshot(&header, file)
    }

    /// Takes over a snapshot that was checked, from wherever it lies, as the current one.
    pub(super) fn adopt(&self, from: &mut SnapshotFile, header: &Header) -> Result<Snapshot, StorageError> {
        let (path, mut file) = self.temporary()?;
        let mut copy = || {
            from.file.rewind()?;
            io::copy(&mut from.file, &mut file)?;
            sync_file("sync-adopted-snapshot", &file)
        };
        copy().map_err(|error| StorageError::failed("writing", &path, error))?;
        self.replace(path, header)
    }

    fn replace(&self, temporary: PathBuf, header: &Header) -> Result<Snapshot, StorageError> {
        let _one = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = self.current()? {
            let newer = current.meta.last_log_id.as_ref().map(StoredLogId::from) > header.last;
            if newer {
                let _ = fs::remove_file(&temporary);
                return Ok(current);
            }
        }
        let path = current_of(&self.path);
        rename(&temporary, &path)?;
        failpoint::reach("raft_snapshot_renamed");
        self.snapshot(header, SnapshotFile::open(&path)?)
    }

    fn snapshot(&self, header: &Header, file: SnapshotFile) -> Result<Snapshot, StorageError> {
        let meta =
            header.meta().map_err(|detail| StorageError::Malformed { path: file.path.clone(), detail })?;
        Ok(Snapshot { meta, snapshot: file })
    }

    fn temporary(&self) -> Result<(PathBuf, File), StorageError> {
        let number = self.temporaries.fetch_add(1, Ordering::Relaxed);
        let path = self.path.join(format!("{number}.tmp"));
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| StorageError::failed("making", &path, error))?;
        Ok((path, file))
    }
}

fn load<T: serde::de::DeserializeOwned>(
    database: &Database,
    view: &View<'_>,
    key: &str,
) -> Result<Option<T>, StorageError> {
    view.get(RAFT, key)?.map(|value| super::stored::decode(database, key, &value)).transpose()
}
