//! What this node sends to a peer.

use std::future::Future;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::{RPCOption, RPCTypes, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendError, StreamAppendResult,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{AnyError, OptionalSend};
use tonic::{Code, Status};

use super::super::snapshot::{Snapshot, SnapshotFile};
use super::super::type_config::{Member, TypeConfig, Vote};
use super::{install, wire};
use crate::model::NodeId;
use crate::rpc::raft::raft_client::RaftClient;
use crate::rpc::{Link, Peers};

/// No message between nodes is longer. A batch of entries stays far below.
pub(super) const MESSAGE_BYTES: usize = 32 << 20;

/// How long a peer may take to say whether it does a transfer.
const TRANSFER: Duration = Duration::from_secs(2);

/// The boxed streams that the library hands around.
type Appended<'s> =
    futures::stream::BoxStream<'s, Result<StreamAppendResult<TypeConfig>, RPCError<TypeConfig>>>;

/// Makes the links to the other members.
#[derive(Debug, Clone)]
pub(in super::super) struct Network {
    peers: Peers,
}

impl Network {
    pub(in super::super) fn new(peers: Peers) -> Self {
        Self { peers }
    }
}

/// The link to one peer; none if the membership has no address of it.
#[derive(Debug, Clone)]
pub(in super::super) struct Peer {
    own: u64,
    node: u64,
    client: Result<RaftClient<Link>, String>,
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Peer;

    async fn new_client(&mut self, target: u64, member: &Member) -> Peer {
        let client = self.peers.link(NodeId(target), &member.address).map_err(|error| error.to_string());
        let client = client.map(|link| {
            RaftClient::new(link)
                .max_decoding_message_size(MESSAGE_BYTES)
                .max_encoding_message_size(MESSAGE_BYTES)
        });
        Peer { own: self.peers.caller().node.0, node: target, client }
    }
}

impl Peer {
    fn client(&self) -> Result<RaftClient<Link>, RPCError<TypeConfig>> {
        self.client.clone().map_err(|why| Unreachable::from_string(why).into())
    }

    /// Asks, for at most as long as the library allows.
    async fn ask<T>(
        &self,
        action: RPCTypes,
        limit: Duration,
        asked: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, RPCError<TypeConfig>> {
        match tokio::time::timeout(limit, asked).await {
            Ok(answered) => Ok(answered.map_err(|status| failed(&status))?.into_inner()),
            Err(_) => Err(Timeout { action, id: self.own, target: self.node, timeout: limit }.into()),
        }
    }
}

/// Whoever cannot be reached is asked again after a pause; whoever answered with an error, at once.
fn failed(status: &Status) -> RPCError<TypeConfig> {
    match status.code() {
        Code::Unavailable | Code::FailedPrecondition | Code::ResourceExhausted | Code::Unimplemented => {
            Unreachable::from_string(status.message().to_owned()).into()
        }
        _ => NetworkError::from_string(status.to_string()).into(),
    }
}

fn malformed(detail: wire::Malformed) -> RPCError<TypeConfig> {
    NetworkError::from_string(format!("reading a peer's answer: {detail}")).into()
}

impl RaftNetworkV2<TypeConfig> for Peer {
    type SnapshotData = SnapshotFile;

    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, RPCError<TypeConfig>> {
        let limit = option.hard_ttl();
        let late =
            Timeout { action: RPCTypes::AppendEntries, id: self.own, target: self.node, timeout: limit };
        let mut answers = self.stream_append(futures::stream::iter([request]), option).await?;
        match tokio::time::timeout(limit, answers.next()).await {
            Err(_) => Err(late.into()),
            Ok(None) => Err(malformed("it ended without an answer".to_owned())),
            Ok(Some(answer)) => Ok(match answer? {
                Ok(last) => AppendEntriesResponse::PartialSuccess(last),
                Err(StreamAppendError::Conflict(_)) => AppendEntriesResponse::Conflict,
                Err(StreamAppendError::HigherVote(vote)) => AppendEntriesResponse::HigherVote(vote),
            }),
        }
    }

    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        _option: RPCOption,
    ) -> futures::future::BoxFuture<'s, Result<Appended<'s>, RPCError<TypeConfig>>>
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
    {
        Box::pin(async move {
            let mut client = self.client()?;
            let answers =
                client.append(input.map(wire::from_append)).await.map_err(|status| failed(&status))?;
            let answers = answers.into_inner().map(|answer| {
                wire::to_appended(answer.map_err(|status| failed(&status))?).map_err(malformed)
            });
            Ok(Box::pin(answers) as Appended<'s>)
        })
    }

    async fn vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let mut client = self.client()?;
        let asked = client.vote(wire::from_vote_request(&request));
        let answer = self.ask(RPCTypes::Vote, option.hard_ttl(), asked).await?;
        wire::to_vote_response(answer).map_err(malformed)
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let mut client = self.client()?;
        let asked = client.pre_vote(wire::from_vote_request(&request));
        let answer = self.ask(RPCTypes::Vote, option.hard_ttl(), asked).await?;
        wire::to_vote_response(answer).map_err(malformed)
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let client = self.client()?;
        tokio::select! {
            sent = install::send(client, &vote, snapshot.snapshot) => match sent {
                Ok(vote) => Ok(SnapshotResponse::new(vote)),
                Err(status) => Err(failed(&status).into()),
            },
            closed = cancel => Err(closed.into()),
        }
    }

    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, RPCError<TypeConfig>> {
        let mut client = self.client()?;
        let asked = client.transfer(crate::rpc::raft::TransferRequest {
            from: Some(wire::from_vote(request.from_leader())),
            to: *request.to_node_id(),
            last: request.last_log_id().map(wire::from_log_id),
        });
        let answer = self.ask(RPCTypes::TransferLeader, TRANSFER, asked).await?;
        match answer.refused {
            refused if refused.is_empty() => Ok(Ok(())),
            refused => Err(Unreachable::new(&AnyError::error(refused)).into()),
        }
    }
}
