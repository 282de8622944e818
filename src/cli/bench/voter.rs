//! One voter in this process: a Raft log on a real disk, and nobody who drives what is opened.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};

use crate::consensus::{self, Consensus, Tuning};
use crate::env::{OsRandomness, SystemClock, hex_id};
use crate::ledger::{Command, EntryPosition, Outcome};
use crate::model::{ClusterId, Holes, NodeId, ProcessNonce, Term};
use crate::rpc::{Caller, Peers};
use crate::storage::Database;

/// How long a proposal is waited for.
const PROPOSE_MS: u64 = 60_000;

/// One voter in this process. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Voter {
    pub(super) consensus: Consensus,
    pub(super) database: Database,
    pub(super) term: Term,
}

impl Voter {
    /// Starts on the data in `dir`, which is begun if there is none, and waits until it leads.
    pub(super) async fn start(dir: &Path, cluster: ClusterId, tuning: Tuning) -> anyhow::Result<Self> {
        let database = Database::open(dir.join("raft"), consensus::FAMILIES)?;
        let process = ProcessNonce::new(hex_id(&OsRandomness)?)?;
        let settings = consensus::Settings {
            peers: Peers::new(Caller { cluster, node: NodeId(1), process }),
            holes: Holes::none(),
            clock: Arc::new(SystemClock),
            dir: dir.to_owned(),
            tuning,
        };
        let consensus = Consensus::start(settings, database.clone()).await?;
        consensus.initialize_single().await?;
        let mut leadership = consensus.leadership();
        let led = *leadership.wait_for(Option::is_some).await.context("waiting for leadership")?;
        let term = led.context("waiting for leadership")?;
        Ok(Self { consensus, database, term })
    }

    /// Proposes, and gives the position once the command is committed and applied.
    pub(super) async fn commit(&self, command: Command) -> anyhow::Result<EntryPosition> {
        let (position, outcome) = self.consensus.propose(self.term, command, PROPOSE_MS).await?;
        match outcome {
            Outcome::Done | Outcome::Decided(_) | Outcome::Recorded { changed: true } => Ok(position),
            other => bail!("an entry of the benchmark came to nothing: {other:?}"),
        }
    }

    /// Ends, and waits until the files are free.
    pub(super) async fn end(self) {
        let Self { consensus, database, .. } = self;
        let gone = database.gone();
        drop(database);
        consensus.shutdown().await;
        gone.wait().await;
    }
}
