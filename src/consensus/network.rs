//! The way to the peers: there is none yet.
//!
//! Log, vote and state machine are made for several voters, but traffic between nodes does not exist in
//! this build. Every call to a peer is answered with `Unreachable`, so that a membership of more than this
//! node cannot elect a leader or commit anything. A pre-vote in particular is not granted on a peer's
//! behalf, which is what the library would do by default.

use std::future::Future;

use openraft::OptionalSend;
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse,
};

use super::snapshot::{Snapshot, SnapshotFile};
use super::type_config::{Member, TypeConfig, Vote};

/// Makes [`NoPeer`]s.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoPeers;

/// A peer that cannot be reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoPeer {
    node: u64,
}

impl RaftNetworkFactory<TypeConfig> for NoPeers {
    type Network = NoPeer;

    async fn new_client(&mut self, target: u64, _node: &Member) -> NoPeer {
        NoPeer { node: target }
    }
}

impl NoPeer {
    fn unreachable(self) -> Unreachable<TypeConfig> {
        Unreachable::from_string(format!(
            "reaching node {}: no peers yet, this build has no traffic between nodes",
            self.node
        ))
    }
}

impl RaftNetworkV2<TypeConfig> for NoPeer {
    type SnapshotData = SnapshotFile;

    async fn append_entries(
        &mut self,
        _request: AppendEntriesRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, RPCError<TypeConfig>> {
        Err(self.unreachable().into())
    }

    async fn vote(
        &mut self,
        _request: VoteRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        Err(self.unreachable().into())
    }

    async fn pre_vote(
        &mut self,
        _request: VoteRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        Err(self.unreachable().into())
    }

    async fn full_snapshot(
        &mut self,
        _vote: Vote,
        _snapshot: Snapshot,
        _cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        Err(self.unreachable().into())
    }
}
