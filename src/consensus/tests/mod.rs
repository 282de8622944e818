//! What consensus must hold to, shown on real databases.

mod cluster;
mod golden;
mod node;
mod snapshots;
mod stores;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Consensus, ConsensusError, FAMILIES, Settings, Tuning};
use crate::env::Clock;
use crate::ledger::{
    BindHost, Command, DispatcherRef, EntryPosition, Guard, Outcome, RULES_LEVEL, Record, Stamped,
};
use crate::model::{
    ClusterId, ClusterTime, EngineId, Holes, HostName, JournalId, JournalPosition, NodeId, ProcessNonce,
    Term, WallTime,
};
use crate::rpc::{Caller, Peers};
use crate::storage::Database;

/// Long enough that only a hang meets it.
const LONG_MS: u64 = 60_000;

/// A clock that moves when it is told to.
#[derive(Debug)]
struct HandClock(AtomicU64);

impl HandClock {
    fn at(monotonic_ms: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(monotonic_ms)))
    }

    fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for HandClock {
    fn monotonic_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
    fn wall_ms(&self) -> u64 {
        1_800_000_000_000
    }
    fn boottime_ms(&self) -> u64 {
        self.monotonic_ms()
    }
}

fn cluster() -> ClusterId {
    ClusterId::new("c".repeat(32)).unwrap()
}

pub(super) fn tick_of(node: NodeId, clock_ms: u64) -> Stamped {
    stamped(node, clock_ms, Command::Tick)
}

fn stamped(node: NodeId, clock_ms: u64, command: Command) -> Stamped {
    Stamped { level: RULES_LEVEL, clock: ClusterTime(clock_ms), wall: WallTime(0), node, command }
}

fn bind(host: &str) -> Command {
    Command::BindHost(BindHost {
        host: HostName::new(host).unwrap(),
        engine_id: EngineId::new(format!("engine-of-{host}")).unwrap(),
        dispatcher: DispatcherRef {
            guard: Guard::Agent,
            journal: JournalPosition { journal: JournalId::new("a".repeat(32)).unwrap(), sequence: 0 },
        },
    })
}

fn open(dir: &Path) -> Database {
    Database::open(dir.join("raft"), FAMILIES).unwrap()
}

fn peers(node: u64) -> Peers {
    let process = ProcessNonce::new(format!("{node:032x}")).unwrap();
    Peers::new(Caller { cluster: cluster(), node: NodeId(node), process })
}

fn settings(dir: &Path, clock: Arc<HandClock>) -> Settings {
    Settings {
        peers: peers(1),
        holes: Holes::none(),
        clock,
        dir: dir.to_owned(),
        tuning: Tuning {
            heartbeat_ms: 30,
            election_least_ms: 100,
            election_most_ms: 200,
            ..Tuning::default()
        },
    }
}

/// A node that runs, and its database.
struct Node {
    consensus: Consensus,
    database: Database,
}

impl Node {
    async fn start(dir: &Path, clock: &Arc<HandClock>) -> Self {
        Self::start_with(settings(dir, Arc::clone(clock))).await.unwrap()
    }

    async fn start_with(settings: Settings) -> Result<Self, ConsensusError> {
        let database = open(&settings.dir);
        let consensus = Consensus::start(settings, database.clone()).await?;
        Ok(Self { consensus, database })
    }

    /// Starts it as the one member, and waits until it leads.
    async fn leading(dir: &Path, clock: &Arc<HandClock>) -> (Self, Term) {
        let node = Self::start(dir, clock).await;
        node.consensus.initialize_single().await.unwrap();
        let term = node.leads().await;
        (node, term)
    }

    async fn leads(&self) -> Term {
        let mut leadership = self.consensus.leadership();
        let term = *leadership.wait_for(Option::is_some).await.unwrap();
        term.expect("it was waited for")
    }

    async fn propose(&self, term: Term, command: Command) -> (EntryPosition, Outcome) {
        self.consensus.propose(term, command, LONG_MS).await.unwrap()
    }

    fn records(&self) -> Vec<Record> {
        self.consensus.read(|ledger| ledger.records().collect())
    }

    /// Ends it in order, and waits until its files are free.
    async fn stop(self) {
        let gone = self.database.gone();
        self.consensus.shutdown().await;
        drop(self.database);
        gone.wait().await;
    }
}
