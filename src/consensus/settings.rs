//! What a node's consensus is started with.

use std::path::PathBuf;
use std::sync::Arc;

use openraft::{Config, SnapshotPolicy};

use super::error::ConsensusError;
use crate::env::{Clock, failpoint};
use crate::model::{ClusterId, Holes, NodeId};
use crate::rpc::Peers;

/// What a node's consensus is started with.
#[derive(Clone)]
pub struct Settings {
    /// This node, its cluster, and its ways to the other nodes.
    pub peers: Peers,
    /// The guards that a test took out.
    pub holes: Holes,
    /// The machine's clocks.
    pub clock: Arc<dyn Clock>,
    /// The data directory; the current snapshot is kept in its folder `snapshot`.
    pub dir: PathBuf,
    /// How long things take.
    pub tuning: Tuning,
}

/// How long things take, and how much is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuning {
    /// The pause between two heartbeats.
    pub heartbeat_ms: u64,
    /// The least time without a leader before an election.
    pub election_least_ms: u64,
    /// The most time without a leader before an election.
    pub election_most_ms: u64,
    /// A snapshot is made after so many entries.
    pub snapshot_entries: u64,
    /// So many entries are kept behind a snapshot. Far more than can be queued for apply: the library's core
    /// ends if purge overtakes apply (openraft #2116).
    pub kept_entries: u64,
}

impl Default for Tuning {
    /// Slow enough that a disk whose sync takes tens of milliseconds now and then causes no election, fast
    /// enough that a lost leader is replaced within about two seconds.
    fn default() -> Self {
        Self {
            heartbeat_ms: 100,
            election_least_ms: 500,
            election_most_ms: 1_000,
            snapshot_entries: failpoint::number("consensus-snapshot-entries").unwrap_or(10_000),
            kept_entries: failpoint::number("consensus-kept-entries").unwrap_or(50_000),
        }
    }
}

/// The longest that one snapshot may take on its way to a peer. The library's 200 ms is too little for a
/// busy machine.
const SNAPSHOT_MS: u64 = 60_000;

/// The most calls that wait in line for the core. Well below [`Tuning::kept_entries`].
const QUEUED: u64 = 4_096;

/// The most entries in one message to a peer. An entry has at most as much as a client's request may have, and some
/// kilobytes that an engine said.
const PER_MESSAGE: u64 = 64;

impl Settings {
    pub(super) fn node(&self) -> NodeId {
        self.peers.caller().node
    }

    pub(super) fn cluster(&self) -> &ClusterId {
        &self.peers.caller().cluster
    }

    pub(super) fn config(&self) -> Result<Config, ConsensusError> {
        let tuning = &self.tuning;
        let config = Config {
            cluster_name: self.cluster().to_string(),
            heartbeat_interval: tuning.heartbeat_ms,
            election_timeout_min: tuning.election_least_ms,
            election_timeout_max: tuning.election_most_ms,
            // A leader that restarts must not take up its old term again: its fences are of that term.
            enable_leader_restore: Some(false),
            // A node that was cut off must not depose a leader that works.
            enable_pre_vote: Some(true),
            // A log that goes backwards is a node that lost its data; it is refused, not tolerated.
            allow_log_reversion: Some(false),
            install_snapshot_timeout: SNAPSHOT_MS,
            snapshot_policy: SnapshotPolicy::LogsSinceLast(tuning.snapshot_entries),
            max_in_snapshot_log_to_keep: tuning.kept_entries,
            purge_batch_size: 256,
            max_payload_entries: PER_MESSAGE,
            api_channel_size: Some(QUEUED),
            ..Config::default()
        };
        config.validate().map_err(|error| ConsensusError::Settings { detail: error.to_string() })
    }
}
