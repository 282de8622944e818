//! Raft's state machine: the ledger in memory, and its records on disk.
//!
//! What an entry changed, the entry's position and its membership are one write. It has no sync of its own:
//! after a crash both are older together, and the log, which was synced first, is applied again from there.

use std::io;
use std::sync::Arc;

use futures::{Stream, StreamExt as _};
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend, RaftSnapshotBuilder};
use tokio::task::{JoinHandle, spawn_blocking};

use super::snapshot::{Snapshot, SnapshotFile};
use super::snapshot_folder::SnapshotFolder;
use super::state::State;
use super::stored::{
    APPLIED, END, LEDGER, MEMBERSHIP, RAFT, StoredConfiguration, StoredLogId, decode, encode, load, malformed,
};
use super::type_config::{Answer, Entry, LogId, Proposal, SnapshotMeta, StoredMembership, TypeConfig};
use crate::env::failpoint;
use crate::ledger::{EntryPosition, Ledger, LoadError, Loading, Record};
use crate::model::{ClusterId, Holes, LogIndex, Term};
use crate::storage::{Batch, Database, StorageError};

/// The state machine of one node.
#[derive(Debug)]
pub(super) struct StateMachine {
    database: Database,
    state: Arc<State>,
    snapshots: Arc<SnapshotFolder>,
    holes: Holes,
    last: Option<LogId>,
    membership: StoredMembership,
}

/// The ledger as it is stored, and the last entry that it contains.
pub(super) fn load_ledger(
    database: &Database,
    cluster: &ClusterId,
    holes: Holes,
) -> Result<(Ledger, LogIndex), LoadLedgerError> {
    let view = database.view();
    let mut loading = Loading::begin(cluster.clone(), holes);
    view.decoded(
        LEDGER,
        |key, value| {
            let record: Record = decode(database, &key, &value)?;
            Ok::<_, LoadLedgerError>((key, record))
        },
        |(key, record)| Ok(loading.put(key, record)?),
    )?;
    let applied: Option<StoredLogId> = load(database, APPLIED)?;
    let ledger = loading.end()?;
    Ok((ledger, LogIndex(applied.map_or(0, |id| id.index))))
}

/// Stored state that cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadLedgerError {
    /// It cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// It is no ledger of this cluster.
    #[error("loading the ledger: {0}")]
    Load(#[from] LoadError),
}

impl StateMachine {
    pub(super) fn open(
        database: Database,
        state: Arc<State>,
        snapshots: Arc<SnapshotFolder>,
        holes: Holes,
    ) -> Result<Self, StorageError> {
        let last = load::<StoredLogId>(&database, APPLIED)?.map(Into::into);
        let membership = match load::<StoredConfiguration>(&database, MEMBERSHIP)? {
            Some(stored) => {
                StoredMembership::try_from(stored).map_err(|e| malformed(&database, MEMBERSHIP, &e))?
            }
            None => StoredMembership::default(),
        };
        Ok(Self { database, state, snapshots, holes, last, membership })
    }

    /// Applies one entry: in memory, then on disk, then for everyone who waits.
    fn apply_one(&mut self, entry: Entry) -> Result<Answer, io::Error> {
        let id = entry.log_id;
        let mut batch = Batch::new();
        let answer = match entry.payload {
            EntryPayload::Blank => None,
            EntryPayload::Membership(membership) => {
                self.membership = StoredMembership::new(Some(id), membership);
                batch.put(RAFT, MEMBERSHIP, encode(&StoredConfiguration::from(&self.membership)));
                None
            }
            EntryPayload::Normal(Proposal(stamped)) => {
                let applied = self.state.apply(position(&id), stamped).map_err(io::Error::other)?;
                for change in applied.changes {
                    match change.record {
                        Some(record) => batch.put(LEDGER, change.key.to_string(), encode(&record)),
                        None => batch.delete(LEDGER, change.key.to_string()),
                    }
                }
                Some(applied.outcome)
            }
        };
        batch.put(RAFT, APPLIED, encode(&StoredLogId::from(&id)));
        self.database.write(batch)?;
        failpoint::reach("raft_applied");
        self.last = Some(id);
        self.state.moved(LogIndex(id.index()));
        Ok(Answer(answer))
    }
}

/// Where an entry stands, in the ledger's words.
pub(super) fn position(id: &LogId) -> EntryPosition {
    EntryPosition { term: Term(id.committed_leader_id().term), index: LogIndex(id.index()) }
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        Ok((self.last, self.membership.clone()))
    }

    async fn apply<Strm>(&mut self, mut entries: Strm) -> Result<(), io::Error>
    where
        Strm: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(item) = entries.next().await {
            let (entry, responder) = item?;
            let answer = self.apply_one(entry)?;
            if let Some(responder) = responder {
                responder.send(answer);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        // The view is taken before this returns, so that the snapshot is of this very moment; the writing
        // then goes on beside apply.
        let (taken, is_taken) = tokio::sync::oneshot::channel();
        let (database, snapshots) = (self.database.clone(), Arc::clone(&self.snapshots));
        let work = spawn_blocking(move || {
            let view = database.view();
            let _ = taken.send(());
            snapshots.build(&database, &view)
        });
        let _ = is_taken.await;
        SnapshotBuilder { work: Some(work) }
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        mut snapshot: SnapshotFile,
    ) -> Result<(), io::Error> {
        let (database, snapshots) = (self.database.clone(), Arc::clone(&self.snapshots));
        let (holes, expected) = (self.holes, meta.clone());
        let work = move || install(&database, &snapshots, holes, &expected, &mut snapshot);
        let ledger = spawn_blocking(work).await.map_err(io::Error::other)??;
        self.last = meta.last_log_id;
        self.membership = meta.last_membership.clone();
        self.state.replace(ledger);
        self.state.moved(LogIndex(meta.last_log_id.map_or(0, |id| id.index())));
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        Ok(self.snapshots.current()?)
    }
}

/// Checks a snapshot, keeps it as the current one, and makes it the stored state. The file comes first, and is
/// synced: should the state be lost, the start finds a snapshot that is ahead of it, and installs that.
fn install(
    database: &Database,
    snapshots: &SnapshotFolder,
    holes: Holes,
    expected: &SnapshotMeta,
    snapshot: &mut SnapshotFile,
) -> Result<Ledger, io::Error> {
    let (header, records) = snapshot.read(snapshots.cluster())?;
    let malformed = |detail: String| StorageError::Malformed { path: snapshot.path.clone(), detail };
    let meta = header.meta().map_err(malformed)?;
    if meta != *expected {
        let detail = format!("it is the snapshot {meta}, not {expected}");
        return Err(StorageError::Malformed { path: snapshot.path.clone(), detail }.into());
    }
    let mut batch = Batch::new();
    batch.delete_range(LEDGER, "", END);
    for (key, record) in &records {
        batch.put(LEDGER, key.as_str(), encode(record));
    }
    match header.last {
        Some(last) => batch.put(RAFT, APPLIED, encode(&last)),
        None => batch.delete(RAFT, APPLIED),
    }
    batch.put(RAFT, MEMBERSHIP, encode(&header.membership));
    let ledger = Ledger::load(snapshots.cluster().clone(), holes, records).map_err(io::Error::other)?;
    // What was truncated for it must not come back: a start refuses a log that goes beyond the state with entries of
    // an older term.
    database.sync("sync-truncated-log")?;
    snapshots.adopt(snapshot, &header)?;
    database.write(batch)?;
    Ok(ledger)
}

/// Waits for a snapshot that is being written.
#[derive(Debug)]
pub(super) struct SnapshotBuilder {
    work: Option<JoinHandle<Result<Snapshot, StorageError>>>,
}

impl RaftSnapshotBuilder<TypeConfig> for SnapshotBuilder {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        let work = self.work.take().ok_or_else(|| io::Error::other("this snapshot was built already"))?;
        Ok(work.await.map_err(io::Error::other)??)
    }
}
