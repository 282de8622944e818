//! One RocksDB.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rocksdb::{
    ColumnFamily, ColumnFamilyDescriptor, DB, DBIteratorWithThreadMode, Direction, IteratorMode, Options,
    ReadOptions, WriteBatch,
};
use tokio::sync::watch;
use tracing::debug_span;

use super::batch::{Batch, Change};
use super::error::StorageError;
use super::latch::Latch;
use super::options::database_options;
use super::sync::sync_name;
use super::wal::{Cut, mend_tail};
use crate::env::failpoint;

/// A RocksDB that is open. Clones share it; it is closed when the last one is gone.
///
/// Keys are readable text and order as text does. A column family's name ends in the version of the format
/// that it holds (`log_v1`).
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    // Dropped in this order: whoever waits on `gone` finds the database closed.
    rocks: DB,
    path: PathBuf,
    latch: Latch,
    syncs: AtomicU64,
    sync_fails: AtomicBool,
    gone: watch::Sender<()>,
}

/// A key and its value, as RocksDB gives them.
type RawEntry = (Box<[u8]>, Box<[u8]>);

/// Resolves once a database is closed.
#[derive(Debug, Clone)]
pub struct Gone(watch::Receiver<()>);

impl Gone {
    /// Waits until the last handle of the database is dropped and RocksDB has let go of its files.
    pub async fn wait(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Database").field(&self.inner.path).finish()
    }
}

impl Database {
    /// Opens the database at `path`, and makes it if it is not there.
    ///
    /// # Errors
    ///
    /// [`StorageError::OtherFormat`] if another format's families are in it; [`StorageError::Damaged`] or
    /// [`StorageError::Failed`] if it cannot be opened: it is in use, or damaged anywhere but in a tail that
    /// nobody was told of. Nothing is repaired in silence.
    pub fn open(path: impl AsRef<Path>, families: &[&'static str]) -> Result<Self, StorageError> {
        let path = path.as_ref();
        let options = database_options(path)?;
        let descriptors =
            families.iter().map(|name| ColumnFamilyDescriptor::new(*name, options.clone())).chain(
                // RocksDB insists on having it.
                [ColumnFamilyDescriptor::new(UNUSED, options.clone())],
            );
        // Before RocksDB reads anything: it may go round for ever in a damaged file, and delete what it misses the
        // names of.
        let cuts = if path.exists() { mend_tail(path)? } else { Vec::new() };
        let opened = require_known_families(&options, path, families).and_then(|()| {
            DB::open_cf_descriptors(&options, path, descriptors)
                .map_err(|error| StorageError::failed("opening", path, error))
        });
        let rocks = match opened {
            Ok(rocks) => rocks,
            Err(error) => {
                cuts.iter().try_for_each(Cut::undo)?;
                return Err(error);
            }
        };
        // RocksDB makes what is in its folder durable, not the folder itself; and whoever made that may have been
        // killed before this.
        sync_name("sync-new-database", path)?;
        Ok(Self {
            inner: Arc::new(Inner {
                rocks,
                path: path.to_owned(),
                latch: Latch::new(path),
                syncs: AtomicU64::new(0),
                sync_fails: AtomicBool::new(false),
                gone: watch::Sender::new(()),
            }),
        })
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Makes the changes, readable at once and durable with the next sync.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; the failure is latched.
    pub fn write(&self, batch: Batch) -> Result<(), StorageError> {
        const VERB: &str = "writing";
        self.inner.latch.check(VERB)?;
        let mut writes = WriteBatch::default();
        for change in batch.changes {
            match change {
                Change::Put { family, key, value } => writes.put_cf(self.family(family)?, key, value),
                Change::Delete { family, key } => writes.delete_cf(self.family(family)?, key),
                Change::DeleteRange { family, from, to } => {
                    writes.delete_range_cf(self.family(family)?, from, to);
                }
            }
        }
        self.inner.rocks.write(writes).map_err(|error| self.inner.latch.fail(VERB, error))
    }

    /// Makes every write that returned before this call durable. `name` is that of the call, `sync-…`.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; the failure is latched, and what had been written since the last sync may be lost.
    pub fn sync(&self, name: &'static str) -> Result<(), StorageError> {
        const VERB: &str = "syncing";
        self.inner.latch.check(VERB)?;
        if failpoint::loses(name) {
            return Ok(());
        }
        if self.inner.sync_fails.load(Ordering::SeqCst) {
            return Err(self.inner.latch.fail(VERB, "input/output error (injected)"));
        }
        let _step = debug_span!(target: "relatch::step", "sync").entered();
        self.inner.rocks.flush_wal(true).map_err(|error| self.inner.latch.fail(VERB, error))?;
        self.inner.syncs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// Makes the changes, and makes them durable before it returns. Blocks on the disk.
    ///
    /// # Errors
    ///
    /// As of [`Database::write`] and [`Database::sync`].
    pub fn write_synced(&self, name: &'static str, batch: Batch) -> Result<(), StorageError> {
        self.write(batch)?;
        self.sync(name)
    }

    /// The value under `key`.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if it cannot be read, or something failed before.
    pub fn get(&self, family: &'static str, key: &str) -> Result<Option<Vec<u8>>, StorageError> {
        const VERB: &str = "reading";
        self.inner.latch.check(VERB)?;
        let value = self.inner.rocks.get_cf(self.family(family)?, key);
        value.map_err(|error| StorageError::failed(VERB, &self.inner.path, error))
    }

    /// The entries from `range.start` on and before `range.end`, in the order of their keys, as of one moment.
    ///
    /// # Errors
    ///
    /// [`StorageError`] as of [`Database::get`].
    pub fn range(
        &self,
        family: &'static str,
        range: Range<&str>,
    ) -> Result<Vec<(String, Vec<u8>)>, StorageError> {
        self.inner.latch.check("reading")?;
        let mut options = ReadOptions::default();
        options.set_iterate_upper_bound(range.end.as_bytes());
        let from = IteratorMode::From(range.start.as_bytes(), Direction::Forward);
        self.collect(self.inner.rocks.iterator_cf_opt(self.family(family)?, options, from))
    }

    /// The entry with the smallest key.
    ///
    /// # Errors
    ///
    /// [`StorageError`] as of [`Database::get`].
    pub fn first(&self, family: &'static str) -> Result<Option<(String, Vec<u8>)>, StorageError> {
        self.edge(family, IteratorMode::Start)
    }

    /// The entry with the greatest key.
    ///
    /// # Errors
    ///
    /// [`StorageError`] as of [`Database::get`].
    pub fn last(&self, family: &'static str) -> Result<Option<(String, Vec<u8>)>, StorageError> {
        self.edge(family, IteratorMode::End)
    }

    /// All of it as it is now: later writes do not show in the view.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View { database: self, snapshot: self.inner.rocks.snapshot() }
    }

    /// The first failure, as soon as there is one. A process that sees it ends with an error.
    #[must_use]
    pub fn failed(&self) -> watch::Receiver<Option<String>> {
        self.inner.latch.watch()
    }

    /// Resolves once the database is closed. It does not keep it open.
    #[must_use]
    pub fn gone(&self) -> Gone {
        Gone(self.inner.gone.subscribe())
    }

    /// How many syncs succeeded since it was opened.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.inner.syncs.load(Ordering::SeqCst)
    }

    /// From now on every sync fails as if the disk had refused it.
    #[cfg(any(test, feature = "failpoints"))]
    pub fn let_syncs_fail(&self) {
        self.inner.sync_fails.store(true, Ordering::SeqCst);
    }

    fn edge(
        &self,
        family: &'static str,
        mode: IteratorMode<'_>,
    ) -> Result<Option<(String, Vec<u8>)>, StorageError> {
        self.inner.latch.check("reading")?;
        let mut entries = self.inner.rocks.iterator_cf(self.family(family)?, mode);
        entries.next().map(|entry| self.entry(entry)).transpose()
    }

    fn collect(
        &self,
        entries: DBIteratorWithThreadMode<'_, DB>,
    ) -> Result<Vec<(String, Vec<u8>)>, StorageError> {
        entries.map(|entry| self.entry(entry)).collect()
    }

    fn entry(&self, entry: Result<RawEntry, rocksdb::Error>) -> Result<(String, Vec<u8>), StorageError> {
        let (key, value) = entry.map_err(|error| StorageError::failed("reading", &self.inner.path, error))?;
        let key = String::from_utf8(key.into_vec()).map_err(|error| StorageError::Malformed {
            path: self.inner.path.clone(),
            detail: format!("a key is not text: {error}"),
        })?;
        Ok((key, value.into_vec()))
    }

    fn family(&self, name: &'static str) -> Result<&ColumnFamily, StorageError> {
        self.inner.rocks.cf_handle(name).ok_or_else(|| StorageError::Malformed {
            path: self.inner.path.clone(),
            detail: format!("it was opened without the family {name}"),
        })
    }
}

/// How much is read at a time from a whole family.
const READAHEAD_BYTES: usize = 1 << 20;

/// RocksDB's own, in which nothing is kept.
const UNUSED: &str = "default";

/// A family's name ends in its format: one that is not known is another version's data.
fn require_known_families(
    options: &Options,
    path: &Path,
    families: &[&'static str],
) -> Result<(), StorageError> {
    // What cannot be listed is either new or damaged, and opening it says which.
    let Ok(found) = DB::list_cf(options, path) else { return Ok(()) };
    let strange = |name: &String| name != UNUSED && !families.contains(&name.as_str());
    match found.into_iter().find(strange) {
        None => Ok(()),
        Some(family) => Err(StorageError::OtherFormat {
            path: path.to_owned(),
            found: family,
            known: families.join(", "),
        }),
    }
}

/// A database as it was at one moment.
pub struct View<'a> {
    database: &'a Database,
    snapshot: rocksdb::Snapshot<'a>,
}

impl View<'_> {
    pub(super) fn path(&self) -> &Path {
        &self.database.inner.path
    }

    /// The value under `key` at that moment.
    ///
    /// # Errors
    ///
    /// [`StorageError`] as of [`Database::get`].
    pub fn get(&self, family: &'static str, key: &str) -> Result<Option<Vec<u8>>, StorageError> {
        self.database.inner.latch.check("reading")?;
        let value = self.snapshot.get_cf(self.database.family(family)?, key);
        value.map_err(|error| StorageError::failed("reading", &self.database.inner.path, error))
    }

    /// Every entry of a family at that moment, in the order of the keys, one after the other.
    ///
    /// # Errors
    ///
    /// [`StorageError`] as of [`Database::get`], for the whole or for one entry.
    pub fn entries(
        &self,
        family: &'static str,
    ) -> Result<impl Iterator<Item = Result<(String, Vec<u8>), StorageError>>, StorageError> {
        self.database.inner.latch.check("reading")?;
        // Read once, from one end to the other: the cache is for what is read again.
        let mut options = ReadOptions::default();
        options.fill_cache(false);
        options.set_readahead_size(READAHEAD_BYTES);
        let family = self.database.family(family)?;
        let entries = self.snapshot.iterator_cf_opt(family, options, IteratorMode::Start);
        Ok(entries.map(|entry| self.database.entry(entry)))
    }
}
