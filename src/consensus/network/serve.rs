//! What this node answers its peers.

use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use openraft::Raft;
use openraft::raft::{AppendEntriesRequest, TransferLeaderRequest};
use tonic::{Request, Response, Status, Streaming};

use super::super::state_machine::StateMachine;
use super::super::type_config::TypeConfig;
use super::client::MESSAGE_BYTES;
use super::install::{Installer, is_consistent};
use super::wire;
use crate::rpc::raft::raft_server::{Raft as Served, RaftServer};
use crate::rpc::raft::{
    AppendRequest, AppendResponse, InstallRequest, InstallResponse, TransferRequest, TransferResponse,
    VoteRequest, VoteResponse,
};

/// The service `relatch.raft.v1.Raft` of one node. Who calls is checked before a call gets here.
#[derive(Clone)]
pub struct PeerService(Arc<Inner>);

struct Inner {
    raft: Raft<TypeConfig, StateMachine>,
    installer: Installer,
}

impl PeerService {
    pub(in super::super) fn new(raft: Raft<TypeConfig, StateMachine>, installer: Installer) -> Self {
        Self(Arc::new(Inner { raft, installer }))
    }

    /// As a service that a server can carry.
    #[must_use]
    pub fn into_server(self) -> RaftServer<Self> {
        RaftServer::new(self)
            .max_decoding_message_size(MESSAGE_BYTES)
            .max_encoding_message_size(MESSAGE_BYTES)
    }
}

fn malformed(detail: wire::Malformed) -> Status {
    Status::invalid_argument(format!("the message is malformed: {detail}"))
}

/// The core takes no more: the process is about to end.
fn ended(error: impl std::fmt::Display) -> Status {
    Status::unavailable(format!("consensus has ended on this node: {error}"))
}

#[tonic::async_trait]
impl Served for PeerService {
    type AppendStream = BoxStream<'static, Result<AppendResponse, Status>>;

    async fn append(
        &self,
        request: Request<Streaming<AppendRequest>>,
    ) -> Result<Response<Self::AppendStream>, Status> {
        // What is malformed ends the stream of requests, and its error is the last answer.
        let (fault, mut faults) = tokio::sync::mpsc::channel(1);
        let requests = request
            .into_inner()
            .map(|asked| asked.and_then(|asked| wire::to_append(asked).map_err(malformed)));
        let requests = requests.scan(fault, |fault, asked| {
            let asked: Option<AppendEntriesRequest<TypeConfig>> = match asked {
                Ok(asked) => Some(asked),
                Err(status) => {
                    // There is room for one, and there is only one: the stream ends here.
                    let _told = fault.try_send(status);
                    None
                }
            };
            futures::future::ready(asked)
        });
        let answers = self.0.raft.stream_append(requests);
        let answers = answers.map_err(ended).map_ok(wire::from_appended);
        let last = futures::stream::once(async move { faults.recv().await })
            .filter_map(|fault| futures::future::ready(fault.map(Err)));
        Ok(Response::new(Box::pin(answers.chain(last))))
    }

    async fn vote(&self, request: Request<VoteRequest>) -> Result<Response<VoteResponse>, Status> {
        let asked = wire::to_vote_request(request.into_inner()).map_err(malformed)?;
        let answer = self.0.raft.vote(asked).await.map_err(ended)?;
        Ok(Response::new(wire::from_vote_response(&answer)))
    }

    async fn pre_vote(&self, request: Request<VoteRequest>) -> Result<Response<VoteResponse>, Status> {
        let asked = wire::to_vote_request(request.into_inner()).map_err(malformed)?;
        let answer = self.0.raft.pre_vote(asked).await.map_err(ended)?;
        Ok(Response::new(wire::from_vote_response(&answer)))
    }

    async fn transfer(
        &self,
        request: Request<TransferRequest>,
    ) -> Result<Response<TransferResponse>, Status> {
        let TransferRequest { from, to, last } = request.into_inner();
        let from = wire::to_vote(from).map_err(malformed)?;
        let asked = TransferLeaderRequest::new(from, to, last.map(wire::to_log_id));
        let answer = self.0.raft.handle_transfer_leader(asked).await.map_err(ended)?;
        let refused = answer.err().map_or_else(String::new, |error| error.to_string());
        Ok(Response::new(TransferResponse { refused }))
    }

    async fn install(
        &self,
        request: Request<Streaming<InstallRequest>>,
    ) -> Result<Response<InstallResponse>, Status> {
        let raft = &self.0.raft;
        let taken = self.0.installer.take(request.into_inner(), async |vote, snapshot| {
            let committed =
                raft.with_raft_state(|state| state.local_committed().copied()).await.map_err(ended)?;
            is_consistent(&vote, snapshot.meta.last_log_id.as_ref(), committed.as_ref())?;
            raft.install_full_snapshot(vote, snapshot).await.map_err(ended)
        });
        let vote = taken.await?.vote;
        Ok(Response::new(InstallResponse { vote: Some(wire::from_vote(&vote)) }))
    }
}
