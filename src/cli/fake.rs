//! A node that answers what a test tells it to, and what the commands make of that.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Parser;
use futures::{Stream, StreamExt, stream};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

use super::client::Nodes;
use super::exit::Exit;
use super::output::{Format, Output};
use super::recover::Recover;
use crate::rpc::v1::recovery_server::{Recovery, RecoveryServer};
use crate::rpc::v1::{
    ApproveStartRequest, ApproveStartResponse, Decision, ExplainRequest, ExplainResponse, GetRunRequest,
    GetRunResponse, ListRunsRequest, ListRunsResponse, RequestRecoveryRequest, RequestRecoveryResponse,
    ResolveRunRequest, ResolveRunResponse, Run, RunStatus, Verification, WatchRunsRequest, WatchRunsResponse,
};

#[derive(Default)]
struct Script {
    /// The answers to requests, in order.
    answers: VecDeque<Result<RequestRecoveryResponse, Status>>,
    /// What each watch tells, in order; the last one goes on without a further change.
    watches: VecDeque<Vec<Result<WatchRunsResponse, Status>>>,
    /// The ids of the requests that came.
    ids: Vec<String>,
    /// After which index each watch began.
    afters: Vec<u64>,
}

#[derive(Clone, Default)]
struct Fake {
    script: Arc<Mutex<Script>>,
}

#[tonic::async_trait]
impl Recovery for Fake {
    async fn request_recovery(
        &self,
        request: Request<RequestRecoveryRequest>,
    ) -> Result<Response<RequestRecoveryResponse>, Status> {
        let mut script = self.script.lock().unwrap();
        script.ids.push(request.into_inner().request_id);
        script.answers.pop_front().expect("no more requests were expected").map(Response::new)
    }

    async fn explain(&self, _: Request<ExplainRequest>) -> Result<Response<ExplainResponse>, Status> {
        Err(Status::unimplemented("not in this test"))
    }

    async fn resolve_run(
        &self,
        _: Request<ResolveRunRequest>,
    ) -> Result<Response<ResolveRunResponse>, Status> {
        Err(Status::unimplemented("not in this test"))
    }

    async fn approve_start(
        &self,
        _: Request<ApproveStartRequest>,
    ) -> Result<Response<ApproveStartResponse>, Status> {
        Err(Status::unimplemented("not in this test"))
    }

    async fn get_run(&self, _: Request<GetRunRequest>) -> Result<Response<GetRunResponse>, Status> {
        Err(Status::unimplemented("not in this test"))
    }

    async fn list_runs(&self, _: Request<ListRunsRequest>) -> Result<Response<ListRunsResponse>, Status> {
        Err(Status::unimplemented("not in this test"))
    }

    type WatchRunsStream = Pin<Box<dyn Stream<Item = Result<WatchRunsResponse, Status>> + Send>>;

    async fn watch_runs(
        &self,
        request: Request<WatchRunsRequest>,
    ) -> Result<Response<Self::WatchRunsStream>, Status> {
        let mut script = self.script.lock().unwrap();
        script.afters.push(request.into_inner().after_index);
        let told = script.watches.pop_front().unwrap_or_default();
        let goes_on = script.watches.is_empty();
        let told = stream::iter(told);
        Ok(Response::new(if goes_on { Box::pin(told.chain(stream::pending())) } else { Box::pin(told) }))
    }
}

impl Fake {
    /// Serves the script; gives the address.
    async fn serve(script: Script) -> (Self, String) {
        let fake = Self { script: Arc::new(Mutex::new(script)) };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = Server::builder().add_service(RecoveryServer::new(fake.clone()));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        (fake, address)
    }

    fn ids(&self) -> Vec<String> {
        self.script.lock().unwrap().ids.clone()
    }

    fn afters(&self) -> Vec<u64> {
        self.script.lock().unwrap().afters.clone()
    }
}

fn run(status: RunStatus, verification: Verification) -> Run {
    let run_id = "ab".repeat(16);
    Run { run_id, status: status.into(), verification: verification.into(), ..Run::default() }
}

fn open() -> Run {
    run(RunStatus::Interlocked, Verification::Unspecified)
}

fn answer(decision: Decision, run: Run) -> RequestRecoveryResponse {
    RequestRecoveryResponse {
        decision: decision.into(),
        run: Some(run),
        ..RequestRecoveryResponse::default()
    }
}

fn change(index: u64, run: Run) -> Result<WatchRunsResponse, Status> {
    Ok(WatchRunsResponse { run: Some(run), index })
}

#[derive(Debug, Parser)]
struct Alone {
    #[command(flatten)]
    recover: Recover,
}

/// `relatch recover local/web --reason stuck …` at these nodes.
async fn recover(addresses: &[&str], arguments: &[&str]) -> anyhow::Result<(RequestRecoveryResponse, Exit)> {
    let all = ["recover", "local/web", "--reason", "stuck"].iter().chain(arguments);
    let command = Alone::try_parse_from(all).unwrap().recover;
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    let mut nodes = Nodes::new(addresses).unwrap();
    let output = Output::new(Format::Json).muted();
    let asked = command.ask(&mut nodes, &output);
    tokio::time::timeout(Duration::from_secs(30), asked).await.expect("the command ends")
}

/// An address where nobody listens.
fn nobody() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[tokio::test]
async fn a_request_without_an_answer_is_sent_again_under_the_same_id() {
    let answers = VecDeque::from([
        Err(Status::unavailable("no leader")),
        Err(Status::deadline_exceeded("not known whether it was decided")),
        Ok(answer(Decision::Opened, open())),
    ]);
    let (fake, address) = Fake::serve(Script { answers, ..Script::default() }).await;
    let (_, exit) = recover(&[&address], &[]).await.unwrap();
    assert_eq!(exit, Exit::Done);
    let ids = fake.ids();
    assert_eq!(ids.len(), 3);
    assert!(ids[0].len() == 32 && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[tokio::test]
async fn an_error_that_stands_is_not_asked_for_twice() {
    let answers = VecDeque::from([Err(Status::invalid_argument("target: no host of that name"))]);
    let (fake, address) = Fake::serve(Script { answers, ..Script::default() }).await;
    let error = recover(&[&address], &[]).await.unwrap_err();
    assert_eq!(Exit::of_error(&error), Exit::Usage);
    assert_eq!(fake.ids().len(), 1);
}

#[tokio::test]
async fn an_unknown_decision_is_told_with_the_id_that_finds_out() {
    let unknown = || Err(Status::deadline_exceeded("not known whether it was decided"));
    let answers = (0..20).map(|_| unknown()).collect();
    let (_, address) = Fake::serve(Script { answers, ..Script::default() }).await;
    let error = recover(&[&address], &["--request-id", "r-7", "--retry-for", "300ms"]).await.unwrap_err();
    assert!(error.to_string().contains("--request-id r-7"), "{error:#}");
    assert_eq!(Exit::of_error(&error), Exit::Error);
}

#[tokio::test]
async fn the_next_node_is_asked_where_one_is_down() {
    let answers = VecDeque::from([Ok(answer(Decision::Attached, open()))]);
    let (fake, address) = Fake::serve(Script { answers, ..Script::default() }).await;
    let (answer, exit) = recover(&[&nobody(), &address], &[]).await.unwrap();
    assert_eq!((answer.decision(), exit), (Decision::Attached, Exit::Done));
    assert_eq!(fake.ids().len(), 1);
}

#[tokio::test]
async fn a_refusal_is_not_waited_for() {
    let refused = run(RunStatus::Refused, Verification::Unspecified);
    let answers = VecDeque::from([Ok(answer(Decision::Refused, refused))]);
    let (fake, address) = Fake::serve(Script { answers, ..Script::default() }).await;
    let (_, exit) = recover(&[&address], &["--wait"]).await.unwrap();
    assert_eq!((exit, fake.afters().len()), (Exit::Refused, 0));
}

#[tokio::test]
async fn a_wait_goes_on_after_a_broken_stream_where_it_was() {
    let answers = VecDeque::from([Ok(answer(Decision::Opened, open()))]);
    let watches = VecDeque::from([
        vec![
            change(5, run(RunStatus::Unresolved, Verification::Unspecified)),
            Err(Status::unavailable("this node is shutting down")),
        ],
        vec![change(7, run(RunStatus::Applied, Verification::Pending))],
        vec![change(9, run(RunStatus::Applied, Verification::Recovered))],
    ]);
    let (fake, address) = Fake::serve(Script { answers, watches, ..Script::default() }).await;
    let (answer, exit) = recover(&[&address], &["--wait"]).await.unwrap();
    assert_eq!(exit, Exit::Done);
    assert_eq!(answer.run.unwrap().verification(), Verification::Recovered);
    assert_eq!(fake.afters(), [0, 5, 7]);
}

#[tokio::test]
async fn a_wait_that_is_over_tells_what_is_still_uncertain() {
    let answers = VecDeque::from([Ok(answer(Decision::Opened, open()))]);
    let unresolved = run(RunStatus::Unresolved, Verification::Unspecified);
    let watches = VecDeque::from([vec![change(5, unresolved)]]);
    let (_, address) = Fake::serve(Script { answers, watches, ..Script::default() }).await;
    let (answer, exit) = recover(&[&address], &["--wait", "--wait-timeout", "500ms"]).await.unwrap();
    assert_eq!(exit, Exit::Uncertain);
    assert_eq!(answer.run.unwrap().status(), RunStatus::Unresolved);
}

#[tokio::test]
async fn a_node_that_answers_nonsense_is_not_believed() {
    let answers = VecDeque::from([Ok(RequestRecoveryResponse::default())]);
    let (_, address) = Fake::serve(Script { answers, ..Script::default() }).await;
    let error = recover(&[&address], &[]).await.unwrap_err();
    assert!(error.to_string().contains("without a run"), "{error:#}");
    assert_eq!(Exit::of_error(&error), Exit::Error);
}
