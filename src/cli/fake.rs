//! A node that answers what a test tells it to, and keeps what it was asked.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::{Args, Command};
use futures::{Stream, StreamExt, stream};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::address::Address;
use crate::rpc::v1::holds_server::{Holds, HoldsServer};
use crate::rpc::v1::limits_server::{Limits, LimitsServer};
use crate::rpc::v1::recovery_server::{Recovery, RecoveryServer};
use crate::rpc::v1::*;

/// One method of the node: its answers in order, and the requests that came.
#[derive(Debug)]
pub(super) struct Method<Q, A> {
    answers: VecDeque<Result<A, Status>>,
    asked: Vec<Q>,
}

impl<Q, A> Default for Method<Q, A> {
    fn default() -> Self {
        Self { answers: VecDeque::new(), asked: Vec::new() }
    }
}

impl<Q: Clone, A> Method<Q, A> {
    /// Adds the next answer.
    pub(super) fn then(&mut self, answer: Result<A, Status>) -> &mut Self {
        self.answers.push_back(answer);
        self
    }

    /// Adds these answers.
    pub(super) fn all(&mut self, answers: impl IntoIterator<Item = Result<A, Status>>) {
        self.answers.extend(answers);
    }

    pub(super) fn asked(&self) -> Vec<Q> {
        self.asked.clone()
    }

    fn answer(&mut self, request: Request<Q>) -> Result<Response<A>, Status> {
        self.asked.push(request.into_inner());
        let no_more = || Err(Status::unimplemented("no further request was expected"));
        self.answers.pop_front().unwrap_or_else(no_more).map(Response::new)
    }
}

/// What the node answers.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) request: Method<RequestRecoveryRequest, RequestRecoveryResponse>,
    pub(super) explain: Method<ExplainRequest, ExplainResponse>,
    pub(super) resolve: Method<ResolveRunRequest, ResolveRunResponse>,
    pub(super) approve: Method<ApproveStartRequest, ApproveStartResponse>,
    pub(super) get_run: Method<GetRunRequest, GetRunResponse>,
    pub(super) list_runs: Method<ListRunsRequest, ListRunsResponse>,
    /// What each watch tells, in order; the last one goes on without a further change.
    pub(super) watch: Method<WatchRunsRequest, Vec<Result<WatchRunsResponse, Status>>>,
    pub(super) place: Method<PlaceHoldRequest, PlaceHoldResponse>,
    pub(super) renew: Method<RenewHoldRequest, RenewHoldResponse>,
    pub(super) lift: Method<LiftHoldRequest, LiftHoldResponse>,
    pub(super) list_holds: Method<ListHoldsRequest, ListHoldsResponse>,
    pub(super) get_limits: Method<GetLimitsRequest, GetLimitsResponse>,
    pub(super) set_limits: Method<SetLimitsRequest, SetLimitsResponse>,
}

/// The node.
#[derive(Clone)]
pub(super) struct Fake {
    script: Arc<Mutex<Script>>,
    address: Address,
}

impl Fake {
    /// Serves what `write` puts into the script.
    pub(super) async fn serve(write: impl FnOnce(&mut Script)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string().parse().unwrap();
        let mut script = Script::default();
        write(&mut script);
        let fake = Self { script: Arc::new(Mutex::new(script)), address };
        let server = Server::builder()
            .add_service(RecoveryServer::new(fake.clone()))
            .add_service(HoldsServer::new(fake.clone()))
            .add_service(LimitsServer::new(fake.clone()));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        fake
    }

    /// Where it is, as `--addr` has it.
    pub(super) fn addr(&self) -> Vec<Address> {
        vec![self.address.clone()]
    }

    /// Looks at the script as it is now.
    pub(super) fn script<T>(&self, look: impl FnOnce(&Script) -> T) -> T {
        look(&self.script.lock().unwrap())
    }
}

#[tonic::async_trait]
impl Recovery for Fake {
    async fn request_recovery(
        &self,
        request: Request<RequestRecoveryRequest>,
    ) -> Result<Response<RequestRecoveryResponse>, Status> {
        self.script.lock().unwrap().request.answer(request)
    }

    async fn explain(&self, request: Request<ExplainRequest>) -> Result<Response<ExplainResponse>, Status> {
        self.script.lock().unwrap().explain.answer(request)
    }

    async fn resolve_run(
        &self,
        request: Request<ResolveRunRequest>,
    ) -> Result<Response<ResolveRunResponse>, Status> {
        self.script.lock().unwrap().resolve.answer(request)
    }

    async fn approve_start(
        &self,
        request: Request<ApproveStartRequest>,
    ) -> Result<Response<ApproveStartResponse>, Status> {
        self.script.lock().unwrap().approve.answer(request)
    }

    async fn get_run(&self, request: Request<GetRunRequest>) -> Result<Response<GetRunResponse>, Status> {
        self.script.lock().unwrap().get_run.answer(request)
    }

    async fn list_runs(
        &self,
        request: Request<ListRunsRequest>,
    ) -> Result<Response<ListRunsResponse>, Status> {
        self.script.lock().unwrap().list_runs.answer(request)
    }

    type WatchRunsStream = Pin<Box<dyn Stream<Item = Result<WatchRunsResponse, Status>> + Send>>;

    async fn watch_runs(
        &self,
        request: Request<WatchRunsRequest>,
    ) -> Result<Response<Self::WatchRunsStream>, Status> {
        let mut script = self.script.lock().unwrap();
        let told = stream::iter(script.watch.answer(request)?.into_inner());
        let goes_on = script.watch.answers.is_empty();
        Ok(Response::new(if goes_on { Box::pin(told.chain(stream::pending())) } else { Box::pin(told) }))
    }
}

#[tonic::async_trait]
impl Holds for Fake {
    async fn place_hold(
        &self,
        request: Request<PlaceHoldRequest>,
    ) -> Result<Response<PlaceHoldResponse>, Status> {
        self.script.lock().unwrap().place.answer(request)
    }

    async fn renew_hold(
        &self,
        request: Request<RenewHoldRequest>,
    ) -> Result<Response<RenewHoldResponse>, Status> {
        self.script.lock().unwrap().renew.answer(request)
    }

    async fn lift_hold(
        &self,
        request: Request<LiftHoldRequest>,
    ) -> Result<Response<LiftHoldResponse>, Status> {
        self.script.lock().unwrap().lift.answer(request)
    }

    async fn list_holds(
        &self,
        request: Request<ListHoldsRequest>,
    ) -> Result<Response<ListHoldsResponse>, Status> {
        self.script.lock().unwrap().list_holds.answer(request)
    }
}

#[tonic::async_trait]
impl Limits for Fake {
    async fn get_limits(
        &self,
        request: Request<GetLimitsRequest>,
    ) -> Result<Response<GetLimitsResponse>, Status> {
        self.script.lock().unwrap().get_limits.answer(request)
    }

    async fn set_limits(
        &self,
        request: Request<SetLimitsRequest>,
    ) -> Result<Response<SetLimitsResponse>, Status> {
        self.script.lock().unwrap().set_limits.answer(request)
    }
}

/// A node's own word that it cannot decide now.
pub(super) fn not_admitting() -> Status {
    let details = ErrorDetails::with_retry_info(Some(Duration::from_millis(10)));
    Status::with_error_details(Code::Unavailable, "no leader", details)
}

/// A node's word that it is not known what became of the request.
pub(super) fn not_known() -> Status {
    Status::deadline_exceeded("not known whether it was decided")
}

/// An address where nobody listens.
pub(super) fn nobody() -> Address {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string().parse().unwrap()
}

/// A run of this status and verification.
pub(super) fn run(status: RunStatus, verification: Verification) -> Run {
    let run_id = "ab".repeat(16);
    Run { run_id, status: status.into(), verification: verification.into(), ..Run::default() }
}

/// A change as a watch tells it.
pub(super) fn change(index: u64, run: Run) -> Result<WatchRunsResponse, Status> {
    Ok(WatchRunsResponse { run: Some(run), index })
}

/// Reads the arguments of one command, without its name.
pub(super) fn parse<T: Args>(arguments: &[&str]) -> Result<T, clap::Error> {
    let command = T::augment_args(Command::new("relatch").no_binary_name(true));
    T::from_arg_matches(&command.try_get_matches_from(arguments)?)
}

/// What a command comes to; it must end by itself.
pub(super) async fn ended<T>(command: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), command).await.expect("the command ends")
}
