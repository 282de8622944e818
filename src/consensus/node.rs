//! One node's consensus: start, initialize, watch, shut down.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use openraft::Raft;
use openraft::errors::{InitializeError, RaftError};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::error::ConsensusError;
use super::log_store::LogStore;
use super::network::{Installer, Network, PeerService};
use super::reached::{self, Keeper, Kept};
use super::settings::Settings;
use super::snapshot_folder::SnapshotFolder;
use super::state::State;
use super::state_machine::{StateMachine, load_ledger};
use super::stored::{OWNER, RAFT, StoredOwner, encode, load};
use super::type_config::{Member, TypeConfig};
use super::watcher::{Leader, Signals, Watcher};
use crate::env::Clock;
use crate::ledger::Ledger;
#[cfg(feature = "failpoints")]
use crate::ledger::{Command, EntryPosition, Stamped};
#[cfg(feature = "failpoints")]
use crate::model::WallTime;
use crate::model::{ClusterId, ClusterTime, LogIndex, NodeId, Term};
use crate::storage::{Batch, Database};

/// The agreed ledger, on this node. Clones share it.
#[derive(Clone)]
pub struct Consensus {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) raft: Raft<TypeConfig, StateMachine>,
    pub(super) node: NodeId,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) state: Arc<State>,
    signals: Signals,
    installer: Installer,
    stopping: Arc<AtomicBool>,
    keeper: Keeper,
}

impl std::fmt::Debug for Consensus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Consensus({:?})", self.inner.state)
    }
}

impl Consensus {
    /// Loads the ledger, applies again what the log has beyond it, and begins to take part.
    ///
    /// `database` is opened with [`super::FAMILIES`].
    ///
    /// # Errors
    ///
    /// [`ConsensusError`] if the data is damaged, has lost its end or is another node's, or the settings contradict
    /// each other.
    pub async fn start(settings: Settings, database: Database) -> Result<Self, ConsensusError> {
        let config = Arc::new(settings.config()?);
        require_owner(&database, settings.cluster(), settings.node())?;
        reached::require(&database, &settings.dir)?;
        own(&settings, &database)?;
        let (folder, cluster) = (settings.dir.join("snapshot"), settings.cluster().clone());
        // The whole snapshot is read, which need not wait for the ledger.
        let snapshots = spawn_blocking(move || SnapshotFolder::open(folder, cluster));
        let (ledger, applied) = load_ledger(&database, settings.cluster(), settings.holes)?;
        let state = Arc::new(State::new(settings.node(), Arc::clone(&settings.clock), ledger, applied));
        let snapshots = snapshots.await.unwrap_or_else(|panic| resume_unwind(panic.into_panic()))?;
        let snapshots = Arc::new(snapshots);
        let log = LogStore::open(database.clone())?;
        let kept = Kept { applied: state.applied(), synced: log.synced() };
        let machine =
            StateMachine::open(database.clone(), Arc::clone(&state), Arc::clone(&snapshots), settings.holes)?;
        let (node, network) = (settings.node(), Network::new(settings.peers));
        let raft = Raft::new(node.0, config, network, log, machine)
            .await
            .map_err(|error| ConsensusError::Raft { verb: "starting", detail: error.to_string() })?;
        let stopping = Arc::new(AtomicBool::new(false));
        let signals = Watcher::start(raft.metrics(), node, database.failed(), Arc::clone(&stopping));
        let keeper = Keeper::start(&settings.dir, kept);
        let (installer, clock) = (Installer::new(snapshots), settings.clock);
        Ok(Self { inner: Arc::new(Inner { raft, node, clock, state, signals, installer, stopping, keeper }) })
    }

    /// What this node answers its peers. Whoever serves it checks who calls.
    #[must_use]
    pub fn peer_service(&self) -> PeerService {
        PeerService::new(self.inner.raft.clone(), self.inner.installer.clone())
    }

    /// Makes this node the first member of a new cluster, which others may join. If the cluster exists already,
    /// nothing happens. `member` is how the others know it: empty for a node that has none.
    ///
    /// # Errors
    ///
    /// [`ConsensusError`] if consensus has ended on this node.
    pub async fn initialize(&self, member: Member) -> Result<(), ConsensusError> {
        let members = BTreeMap::from([(self.inner.node.0, member)]);
        match self.inner.raft.initialize(members).await {
            Ok(()) | Err(RaftError::APIError(InitializeError::NotAllowed(_))) => Ok(()),
            Err(error) => Err(ConsensusError::Raft { verb: "initializing", detail: error.to_string() }),
        }
    }

    /// Makes this node the one member of a cluster that nobody joins.
    ///
    /// # Errors
    ///
    /// As of [`Consensus::initialize`].
    pub async fn initialize_single(&self) -> Result<(), ConsensusError> {
        self.initialize(Member::default()).await
    }

    /// Reads the applied state of this node. Short: apply waits meanwhile.
    ///
    /// It is as new as [`Consensus::applied`] says, which on a follower, or on a leader that was deposed
    /// without knowing it, may be old; [`Consensus::confirm_authority`] first makes it linearizable.
    pub fn read<T>(&self, f: impl FnOnce(&Ledger) -> T) -> T {
        self.inner.state.read(f)
    }

    /// The index of the last entry that [`Consensus::read`] shows. It moves after each apply.
    #[must_use]
    pub fn applied(&self) -> watch::Receiver<LogIndex> {
        self.inner.state.applied()
    }

    /// The term that this node leads; only once it has also applied an entry of that term, so that
    /// everything which was committed before it is in its state (invariant 7's first half).
    ///
    /// It is a hint with a delay, not authority: that is [`Consensus::confirm_authority`].
    #[must_use]
    pub fn leadership(&self) -> watch::Receiver<Option<Term>> {
        self.inner.signals.leadership.clone()
    }

    /// Who leads, as far as this node knows; `None` while it knows of nobody. A hint, as [`Consensus::leadership`].
    #[must_use]
    pub fn leader(&self) -> watch::Receiver<Option<Leader>> {
        self.inner.signals.leader.clone()
    }

    /// Why consensus on this node cannot go on, as soon as it cannot: the core ended, or a write or sync
    /// failed. The process then exits with an error. An ordered shutdown is no such reason.
    #[must_use]
    pub fn fatal(&self) -> watch::Receiver<Option<String>> {
        self.inner.signals.fatal.clone()
    }

    /// The cluster clock now, as this node reckons it.
    #[must_use]
    pub fn cluster_time(&self) -> ClusterTime {
        self.inner.state.cluster_time()
    }

    /// The hole of invariant 8: what was proposed and not committed counts on this node all the same.
    #[cfg(feature = "failpoints")]
    pub fn apply_uncommitted(&self, term: Term, command: Command) {
        let stamped = Stamped {
            level: self.read(Ledger::rules_level),
            clock: self.cluster_time(),
            wall: WallTime(self.inner.clock.wall_ms()),
            node: self.inner.node,
            command,
        };
        let index = LogIndex(self.applied().borrow().0 + 1);
        let applied = self.inner.state.apply(EntryPosition { term, index }, stamped);
        tracing::warn!(?applied, "applied through a hole, though it was not committed");
    }

    /// Ends taking part. Waits for the core; the database closes when the last clone of this is gone too
    /// ([`Database::gone`]).
    pub async fn shutdown(self) {
        self.inner.stopping.store(true, Ordering::SeqCst);
        if let Err(error) = self.inner.raft.shutdown().await {
            tracing::warn!(%error, "consensus did not end in order");
        }
        self.inner.keeper.close().await;
    }
}

/// True if nothing was ever stored in it: no node has begun there, or what it had is gone.
///
/// # Errors
///
/// [`ConsensusError`] if it cannot be read.
pub fn is_empty(database: &Database) -> Result<bool, ConsensusError> {
    Ok(load::<StoredOwner>(database, OWNER)?.is_none())
}

/// Refuses another node's data: a vote must never be cast under a wrong name. Nothing is changed.
///
/// # Errors
///
/// [`ConsensusError::OtherOwner`], or [`ConsensusError::Storage`] if it cannot be read.
pub fn require_owner(database: &Database, cluster: &ClusterId, node: NodeId) -> Result<(), ConsensusError> {
    match load::<StoredOwner>(database, OWNER)? {
        Some(found) if found.cluster != *cluster || found.node != node => Err(ConsensusError::OtherOwner {
            node,
            cluster: cluster.clone(),
            found_node: found.node,
            found_cluster: found.cluster,
        }),
        _ => Ok(()),
    }
}

/// Says for good whose data it is, in an empty database.
fn own(settings: &Settings, database: &Database) -> Result<(), ConsensusError> {
    if !is_empty(database)? {
        return Ok(());
    }
    let owner = StoredOwner { cluster: settings.cluster().clone(), node: settings.node() };
    let mut batch = Batch::new();
    batch.put(RAFT, OWNER, encode(&owner));
    // Durable with the vote, the first thing that is synced: both go the same way, in this order.
    Ok(database.write(batch)?)
}
