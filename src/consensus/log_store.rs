//! The Raft log and the vote, on disk.
//!
//! * An entry is readable when `append` returns, and on disk before its callback. Many appends share one
//!   sync ([`Flusher`]).
//! * A vote is on disk before `save_vote` returns, in line with the appends before it.
//! * There is never a hole: truncation and purge remove one run of indexes each, as one write, and a log
//!   with a hole is refused when it is opened and whenever it is read.

use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend, RaftLogReader};

use super::stored::{
    COMMITTED, END, LOG, PURGED, RAFT, StoredEntry, StoredLogId, StoredVote, VOTE, decode, encode, load,
    log_key, malformed,
};
use super::type_config::{Entry, LogId, TypeConfig, Vote};
use crate::env::failpoint;
use crate::model::LogIndex;
use crate::storage::{Batch, Database, Flusher, StorageError};

/// The log and the vote of one node.
#[derive(Debug, Clone)]
pub(super) struct LogStore {
    reader: LogReader,
    flusher: Arc<Flusher>,
    synced: Synced,
}

/// How far the log is on disk, as it is now. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Synced(Arc<Mutex<Reach>>);

#[derive(Debug, Default)]
struct Reach {
    index: u64,
    /// How often the log was truncated: a sync of what was appended before that says nothing of what came after.
    truncations: u64,
}

impl Synced {
    /// The index of the last entry up to which all of the log is on disk.
    pub(super) fn index(&self) -> LogIndex {
        LogIndex(self.reach().index)
    }

    fn reach(&self) -> MutexGuard<'_, Reach> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be called once an append that ends with entry `last` is synced.
    pub(super) fn after_append(&self, last: u64) -> impl FnOnce() + Send + 'static {
        let (synced, truncations) = (self.clone(), self.reach().truncations);
        move || {
            let mut reach = synced.reach();
            if reach.truncations == truncations {
                reach.index = last;
            }
        }
    }

    /// Nothing after entry `last` counts any more.
    pub(super) fn truncated(&self, last: u64) {
        let mut reach = self.reach();
        reach.truncations += 1;
        reach.index = reach.index.min(last);
    }
}

/// Reads the log and the vote.
#[derive(Debug, Clone)]
pub(super) struct LogReader {
    database: Database,
}

impl LogStore {
    /// The log in `database`.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if it cannot be read, or has a hole.
    pub(super) fn open(database: Database) -> Result<Self, StorageError> {
        check_for_holes(&database)?;
        let flusher = Arc::new(Flusher::start(database.clone())?);
        // Opening a database makes all that it finds durable.
        let last = database.last(LOG)?.and_then(|(key, _)| key.parse().ok()).unwrap_or_default();
        let synced = Synced(Arc::new(Mutex::new(Reach { index: last, truncations: 0 })));
        Ok(Self { reader: LogReader { database }, flusher, synced })
    }

    /// How far the log is on disk. It moves with the log's syncs.
    pub(super) fn synced(&self) -> Synced {
        self.synced.clone()
    }

    fn database(&self) -> &Database {
        &self.reader.database
    }
}

fn check_for_holes(database: &Database) -> Result<(), StorageError> {
    let purged: Option<StoredLogId> = load(database, PURGED)?;
    let mut next = purged.map(|id| id.index.saturating_add(1));
    let view = database.view();
    for entry in view.entries(LOG)? {
        let (key, _) = entry?;
        let index: u64 = key.parse().map_err(|error| malformed(database, &key, &error))?;
        if let Some(next) = next.filter(|next| *next != index) {
            let detail = format!("the log has a hole before it, at {next}: restore this node as a new one");
            return Err(malformed(database, &key, &detail));
        }
        next = Some(index.saturating_add(1));
    }
    Ok(())
}

/// The entry up to which the log was purged, and its last one, of which nothing may be left but that.
pub(super) fn ends(database: &Database) -> Result<(Option<StoredLogId>, Option<StoredLogId>), StorageError> {
    let purged: Option<StoredLogId> = load(database, PURGED)?;
    let last = match database.last(LOG)? {
        Some((key, value)) => Some(decode::<StoredEntry>(database, &key, &value)?.id),
        None => purged,
    };
    Ok((purged, last))
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = LogReader;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        let (purged, last) = ends(self.database())?;
        Ok(LogState { last_purged_log_id: purged.map(Into::into), last_log_id: last.map(Into::into) })
    }

    async fn get_log_reader(&mut self) -> LogReader {
        self.reader.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let mut batch = Batch::new();
        batch.put(RAFT, VOTE, encode(&StoredVote::from(vote)));
        self.flusher.append_and_wait("raft_vote_written", batch).await?;
        failpoint::reach("raft_vote_saved");
        Ok(())
    }

    /// Not synced: after a crash an older one is as good, it only means that more is applied again later.
    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        let mut batch = Batch::new();
        match committed {
            Some(id) => batch.put(RAFT, COMMITTED, encode(&StoredLogId::from(&id))),
            None => batch.delete(RAFT, COMMITTED),
        }
        Ok(self.database().write(batch)?)
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(load::<StoredLogId>(self.database(), COMMITTED)?.map(Into::into))
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut batch = Batch::new();
        let mut last = 0;
        for entry in entries {
            let stored = StoredEntry::from(entry);
            last = stored.id.index;
            batch.put(LOG, log_key(stored.id.index), encode(&stored));
        }
        let is_synced = self.synced.after_append(last);
        self.flusher.append("raft_append_written", batch, move |result| {
            if result.is_ok() {
                is_synced();
                failpoint::reach("raft_append_synced");
            }
            callback.io_completed(result.map_err(Into::into));
        })?;
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        let from = last.map_or(0, |id| id.index() + 1);
        let mut batch = Batch::new();
        batch.delete_range(LOG, log_key(from), END);
        self.synced.truncated(last.map_or(0, |id| id.index()));
        Ok(self.database().write(batch)?)
    }

    async fn purge(&mut self, last: LogId) -> Result<(), io::Error> {
        let mut batch = Batch::new();
        batch.delete_range(LOG, log_key(0), log_key(last.index() + 1));
        batch.put(RAFT, PURGED, encode(&StoredLogId::from(&last)));
        self.database().write(batch)?;
        failpoint::reach("raft_log_purged");
        Ok(())
    }
}

impl RaftLogReader<TypeConfig> for LogReader {
    async fn try_get_log_entries<RB>(&mut self, range: RB) -> Result<Vec<Entry>, io::Error>
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let from = match range.start_bound() {
            Bound::Unbounded => log_key(0),
            Bound::Included(index) => log_key(*index),
            Bound::Excluded(index) => log_key(index.saturating_add(1)),
        };
        let to = match range.end_bound() {
            Bound::Excluded(index) => log_key(*index),
            Bound::Included(index) if *index < u64::MAX => log_key(index + 1),
            Bound::Included(_) | Bound::Unbounded => END.to_owned(),
        };
        if from >= to {
            return Ok(Vec::new());
        }
        let mut entries: Vec<Entry> = Vec::new();
        for (key, value) in self.database.range(LOG, &from..&to)? {
            let stored: StoredEntry = decode(&self.database, &key, &value)?;
            let index = stored.id.index;
            let expected = entries.last().map_or(index, |last| last.log_id.index() + 1);
            if index != expected || key != log_key(index) {
                return Err(malformed(&self.database, &key, &"the log has a hole before it").into());
            }
            let entry = stored.into_entry().map_err(|error| malformed(&self.database, &key, &error))?;
            entries.push(entry);
        }
        Ok(entries)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(load::<StoredVote>(&self.database, VOTE)?.map(Into::into))
    }
}
