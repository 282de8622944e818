//! The dispatcher's durable record.
//!
//! One database of its own. Every change is one batch, synced before it counts: the head (identity, sequence,
//! term), the floor of a container, and what is known of a run. One change at a time; what the gate must see
//! at once (a revocation, a higher term) is put into the guard *before* it is on disk, what it may rely on
//! (an intent) only *after*.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};
use tokio::task::spawn_blocking;

use super::guard::{Guard, GuardState};
use super::order::Order;
use super::record::{Head, RunRecord};
use crate::env::{Randomness, RandomnessError, failpoint, hex_id};
use crate::model::{
    ClusterId, ContainerId, Exchange, Fence, Holes, JournalId, JournalPosition, JournalWord, LogIndex,
    NotWritten, NotWrittenCause, RunId, Term,
};
use crate::storage::{Batch, Database, StorageError};

/// The one column family, with the version of its format.
pub(super) const FAMILY: &str = "journal_v1";
const HEAD: &str = "head";

/// Why the journal cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// The disk.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// No randomness for its identity.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
    /// What is stored is no journal.
    #[error(
        "reading the journal, {key}: {detail}: it is damaged: restore the data directory from a backup, or move \
         the journal away and leave an empty folder in its place, and a new one is begun, which proves nothing of the \
         restarts that were decided before"
    )]
    Damaged {
        /// Which record.
        key: String,
        /// What is wrong with it.
        detail: String,
    },
    /// What it knew of a run is folded away.
    #[error(
        "the journal knows nothing more of run {run}: a later restart of its container was acted for since"
    )]
    Folded {
        /// The run.
        run: RunId,
    },
    /// It is bound to another cluster.
    #[error("the journal is bound to cluster {bound}, this is cluster {asked}")]
    OtherCluster {
        /// Its own.
        bound: ClusterId,
        /// The one that asked.
        asked: ClusterId,
    },
    /// The thread that writes is gone.
    #[error("writing the journal: the writing thread ended: {detail}")]
    Ended {
        /// How.
        detail: String,
    },
}

/// The journal of one dispatcher.
pub struct Journal {
    database: Database,
    guard: Arc<Guard>,
    /// Held over each change, so that changes reach the disk one at a time and in order.
    writer: Arc<Mutex<()>>,
}

impl Journal {
    /// The column families that its database is opened with.
    pub const FAMILIES: &'static [&'static str] = &[FAMILY];

    /// True if no journal was begun in that database, or what it had is gone.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if it cannot be read.
    pub fn is_new(database: &Database) -> Result<bool, StorageError> {
        Ok(database.get(FAMILY, HEAD)?.is_none())
    }

    /// Reads the journal, or begins one with a new identity if there is none.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if it cannot be read as a whole, or is another cluster's.
    pub fn open(
        database: Database,
        cluster: &ClusterId,
        randomness: &dyn Randomness,
        holes: Holes,
    ) -> Result<Self, JournalError> {
        let (head, begun) = match database.get(FAMILY, HEAD)? {
            Some(bytes) => (decode::<Head>(HEAD, &bytes)?, false),
            None => {
                let journal = JournalId::new(hex_id(randomness)?).map_err(|error| JournalError::Damaged {
                    key: HEAD.to_owned(),
                    detail: error.to_string(),
                })?;
                (Head { journal, cluster: cluster.clone(), sequence: 0, term: Term(0) }, true)
            }
        };
        if head.cluster != *cluster {
            return Err(JournalError::OtherCluster { bound: head.cluster, asked: cluster.clone() });
        }
        let (floors, runs) = read_records(&database)?;
        if begun {
            database.write_synced("sync-new-journal", batch_of(&head, &[])?)?;
        }
        let guard = Arc::new(Guard::new(GuardState { head, floors, runs }, holes));
        Ok(Self { database, guard, writer: Arc::default() })
    }

    pub(super) fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }

    /// The first failure of its disk, as soon as there is one. The process then ends with an error.
    #[must_use]
    pub fn failed(&self) -> watch::Receiver<Option<String>> {
        self.database.failed()
    }

    /// Which journal this is, and how far it has got.
    #[must_use]
    pub fn position(&self) -> JournalPosition {
        self.guard.position()
    }

    /// The highest interlock that it acted for or revoked, which was committed then, by whoever asked; 0 if none.
    #[must_use]
    pub fn highest_interlock(&self) -> LogIndex {
        self.guard.highest_floor()
    }

    /// What is known of a run for which something was done already: an intent, or an end.
    pub(super) fn acted_for(&self, run: &RunId) -> Option<(JournalWord, Option<Exchange>)> {
        self.guard.acted_for(run).map(|record| (record.word(), record.end))
    }

    /// Refuses a run of which nothing can be known any more.
    pub(super) fn require_unfolded(
        &self,
        run: &RunId,
        fence: &Fence,
        container_id: &ContainerId,
    ) -> Result<(), JournalError> {
        if self.guard.is_folded(run, fence, container_id) {
            return Err(JournalError::Folded { run: run.clone() });
        }
        Ok(())
    }

    /// Accepts a term, durably. Whatever holds a lower one is not sent any more from now on.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if it could not be made durable.
    pub async fn raise_term(&self, term: Term) -> Result<JournalPosition, JournalError> {
        let writer = Arc::clone(&self.writer).lock_owned().await;
        if self.guard.raise_term(term) {
            self.write(writer, Vec::new(), term, |_| {}).await?;
        }
        Ok(self.guard.position())
    }

    /// Revokes a run, durably, and says what the journal knows of it (invariant 4(b)).
    ///
    /// # Errors
    ///
    /// [`JournalError`] if it could not be made durable, or nothing is known of the run any more: then it proves
    /// nothing.
    pub async fn revoke(
        &self,
        run: &RunId,
        fence: &Fence,
        container_id: &ContainerId,
    ) -> Result<(JournalWord, Option<Exchange>), JournalError> {
        let writer = Arc::clone(&self.writer).lock_owned().await;
        let Some(record) = self.guard.revoke(run, fence, container_id) else {
            return Err(JournalError::Folded { run: run.clone() });
        };
        let floor = Changed::floor(container_id, self.guard.floor(container_id))?;
        self.write(writer, vec![Changed::run(run, &record)?, floor], Term(0), |_| {}).await?;
        Ok((record.word(), record.end))
    }

    /// Writes "I am about to send", durably, or says why it must not be sent. What was known of earlier restarts of
    /// the container is folded into its floor, so that the journal does not grow with their number.
    ///
    /// # Errors
    ///
    /// The refusal. Nothing was written to the engine, and nothing will be under this order.
    pub(super) async fn intend(&self, order: &Order) -> Result<(), NotWritten> {
        let Order { run, fence, incarnation, .. } = order;
        let container_id = &incarnation.container_id;
        let writer = Arc::clone(&self.writer).lock_owned().await;
        let record = self.guard.may_intend(run, fence, container_id)?;
        let written = async {
            let folded = self.guard.before(order);
            let mut changes = vec![Changed::run(run, &record)?, Changed::floor(container_id, fence.index)?];
            changes.extend(folded.iter().map(Changed::folded));
            let run = run.clone();
            self.write(writer, changes, fence.term, move |guard| guard.intended(&run, record, &folded)).await
        };
        written
            .await
            .map_err(|error| NotWritten { cause: NotWrittenCause::JournalFailed, detail: error.to_string() })
    }

    /// Writes how a run's exchange ended, durably, and closes its interlock for good.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if it could not be made durable.
    pub(super) async fn end(
        &self,
        run: &RunId,
        fence: &Fence,
        container_id: &ContainerId,
        exchange: &Exchange,
    ) -> Result<JournalPosition, JournalError> {
        let writer = Arc::clone(&self.writer).lock_owned().await;
        let record = self.guard.ended(run, fence, container_id, exchange);
        let floor = Changed::floor(container_id, self.guard.floor(container_id))?;
        self.write(writer, vec![Changed::run(run, &record)?, floor], Term(0), |_| {}).await?;
        Ok(self.guard.position())
    }

    /// Syncs the changes with the next head; `term` raises the head's, if it is higher. Once they are on disk,
    /// `then` tells the guard.
    ///
    /// All of it goes on though the caller gives up meanwhile, and no other change begins before it has ended.
    async fn write(
        &self,
        writer: OwnedMutexGuard<()>,
        changes: Vec<Changed>,
        term: Term,
        then: impl FnOnce(&Guard) + Send + 'static,
    ) -> Result<(), JournalError> {
        let mut head = self.guard.head();
        head.sequence += 1;
        head.term = head.term.max(term);
        let batch = batch_of(&head, &changes)?;
        let (database, guard) = (self.database.clone(), Arc::clone(&self.guard));
        let written = spawn_blocking(move || {
            failpoint::reach("journal-before-write");
            database.write_synced("sync-journal", batch)?;
            guard.advance(head);
            then(&guard);
            drop(writer);
            Ok::<(), StorageError>(())
        });
        written.await.map_err(|error| JournalError::Ended { detail: error.to_string() })??;
        Ok(())
    }
}

/// A record that changed, in its stored form.
struct Changed {
    key: String,
    /// None if it is gone.
    value: Option<Vec<u8>>,
}

impl Changed {
    fn run(run: &RunId, record: &RunRecord) -> Result<Self, JournalError> {
        let key = format!("run/{run}");
        Ok(Self { value: Some(encode(&key, record)?), key })
    }

    fn folded(run: &RunId) -> Self {
        Self { key: format!("run/{run}"), value: None }
    }

    fn floor(container_id: &ContainerId, index: LogIndex) -> Result<Self, JournalError> {
        let key = format!("floor/{container_id}");
        Ok(Self { value: Some(encode(&key, &index)?), key })
    }
}

fn batch_of(head: &Head, changes: &[Changed]) -> Result<Batch, JournalError> {
    let mut batch = Batch::new();
    batch.put(FAMILY, HEAD, encode(HEAD, head)?);
    for change in changes {
        match &change.value {
            Some(value) => batch.put(FAMILY, change.key.clone(), value.clone()),
            None => batch.delete(FAMILY, change.key.clone()),
        }
    }
    Ok(batch)
}

type Records = (BTreeMap<ContainerId, LogIndex>, BTreeMap<RunId, RunRecord>);

fn read_records(database: &Database) -> Result<Records, JournalError> {
    let (mut floors, mut runs) = (BTreeMap::new(), BTreeMap::new());
    for entry in database.view().entries(FAMILY)? {
        let (key, value) = entry?;
        match read_record(&key, &value)? {
            // It was read on its own.
            Stored::Head(head) => drop(head),
            Stored::Floor(id, index) => drop(floors.insert(id, index)),
            Stored::Run(id, record) => drop(runs.insert(id, record)),
        }
    }
    Ok((floors, runs))
}

/// A record, by its key.
enum Stored {
    Head(Head),
    Floor(ContainerId, LogIndex),
    Run(RunId, RunRecord),
}

fn read_record(key: &str, value: &[u8]) -> Result<Stored, JournalError> {
    let damaged = |detail: String| JournalError::Damaged { key: key.to_owned(), detail };
    if key == HEAD {
        return Ok(Stored::Head(decode(key, value)?));
    }
    if let Some(id) = key.strip_prefix("floor/") {
        let id = ContainerId::new(id).map_err(|error| damaged(error.to_string()))?;
        return Ok(Stored::Floor(id, decode(key, value)?));
    }
    if let Some(id) = key.strip_prefix("run/") {
        let id = RunId::new(id).map_err(|error| damaged(error.to_string()))?;
        return Ok(Stored::Run(id, decode(key, value)?));
    }
    Err(damaged("this version knows no such record".to_owned()))
}

/// Reads a record and writes it again, under its key.
#[cfg(feature = "failpoints")]
pub(super) fn rewrite_record(key: &str, value: &[u8]) -> Result<(String, Vec<u8>), JournalError> {
    let changed = match read_record(key, value)? {
        Stored::Head(head) => return Ok((HEAD.to_owned(), encode(HEAD, &head)?)),
        Stored::Floor(id, index) => Changed::floor(&id, index)?,
        Stored::Run(id, record) => Changed::run(&id, &record)?,
    };
    Ok((changed.key, changed.value.unwrap_or_default()))
}

fn encode(key: &str, value: &impl Serialize) -> Result<Vec<u8>, JournalError> {
    serde_json::to_vec(value)
        .map_err(|error| JournalError::Damaged { key: key.to_owned(), detail: error.to_string() })
}

fn decode<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<T, JournalError> {
    serde_json::from_slice(bytes)
        .map_err(|error| JournalError::Damaged { key: key.to_owned(), detail: error.to_string() })
}
