//! Why a node does not start, or ended.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::beside::EngineTaken;
use crate::consensus::ConsensusError;
use crate::dispatch::JournalError;
use crate::docker::InvalidEndpoint;
use crate::env::RandomnessError;
use crate::ledger::InvalidLimits;
use crate::model::{InvalidId, UnknownHole};
use crate::storage::StorageError;

/// Why a node does not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The data directory.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Consensus.
    #[error(transparent)]
    Consensus(#[from] ConsensusError),
    /// The dispatcher's journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No randomness.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
    /// The engine's endpoint.
    #[error(transparent)]
    Endpoint(#[from] InvalidEndpoint),
    /// A hole that does not exist.
    #[error(transparent)]
    Hole(#[from] UnknownHole),
    /// An identity.
    #[error(transparent)]
    Id(#[from] InvalidId),
    /// A limit on the command line.
    #[error(transparent)]
    Limits(#[from] InvalidLimits),
    /// The log is gone, and with it what was open: to begin anew under the old name could send a second POST.
    #[error(
        "starting on {}: this node's log is gone, though it had one: restore it, or start with an empty directory \
         as a new node",
        data_dir.display()
    )]
    LogLost {
        /// The data directory.
        data_dir: PathBuf,
    },
    /// The journal is gone, and with it what was proven of open runs, and which orders it would refuse.
    #[error(
        "starting on {}: this node's journal is gone, though it had one: put it back, or restore the data directory \
         from a backup; if it is gone for good, leave an empty folder there, and a new one is begun, which proves \
         nothing of the restarts that were decided before",
        journal.display()
    )]
    JournalLost {
        /// Where it was.
        journal: PathBuf,
    },
    /// A part of the data directory belongs elsewhere: to go on would be to act under a wrong name.
    #[error(
        "starting on {}: its {part} is of {found}, and its identity.json of {identity}: put back what belongs \
         together, or choose another directory; nothing in it was changed",
        data_dir.display()
    )]
    OtherCluster {
        /// The data directory.
        data_dir: PathBuf,
        /// `journal` or `log`.
        part: &'static str,
        /// Whose that part is.
        found: String,
        /// Whose the directory is.
        identity: String,
    },
    /// What is decided would go away with the container, and with it what is open.
    #[error(
        "using {}: it lies in this container's own writable layer ({kind}), and goes away with the container, as \
         would every open restart: mount a volume there (docker run -v relatch:{} …), or accept that by \
         --ephemeral-data", data_dir.display(), data_dir.display()
    )]
    WritableLayer {
        /// The data directory.
        data_dir: PathBuf,
        /// The kind of the file system.
        kind: String,
    },
    /// Another node on this machine serves the engine.
    #[error(transparent)]
    EngineTaken(#[from] EngineTaken),
    /// The port.
    #[error("listening on {listen}: {source}; is another relatch running? choose another with --listen")]
    Listen {
        /// Where.
        listen: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// Serving clients ended.
    #[error("serving clients on {listen}: {detail}")]
    Serve {
        /// Where.
        listen: SocketAddr,
        /// Why.
        detail: String,
    },
    /// The node cannot go on.
    #[error("{detail}: the process ends; start it again, and what is open is replayed")]
    Fatal {
        /// Why.
        detail: String,
    },
}
