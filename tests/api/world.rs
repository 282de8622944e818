//! A scripted engine, a node that looks after it, and clients of that node.

use std::time::Duration;

use relatch::rpc::v1;
use relatch::rpc::v1::holds_client::HoldsClient;
use relatch::rpc::v1::limits_client::LimitsClient;
use relatch::rpc::v1::recovery_client::RecoveryClient;
use relatch::sim::{Action, ContainerSpec, Endpoint, Engine, Event};
use tonic::transport::{Channel, Endpoint as Address};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::support::node::{Hold, Node, NodeOptions};
pub use crate::support::scripted::World;

/// When waiting is given up. Not an expectation of speed: a busy machine is slow.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(120);

impl World {
    pub async fn new(containers: impl IntoIterator<Item = ContainerSpec>) -> Self {
        let builder = containers.into_iter().fold(Engine::builder(), |builder, spec| builder.container(spec));
        Self::serving(builder.build().expect("an engine")).await
    }

    /// With a node, and its clients.
    pub async fn up(containers: impl IntoIterator<Item = ContainerSpec>) -> (Self, Node, Clients) {
        let world = Self::new(containers).await;
        let (node, clients) = world.start(&world.options).await;
        (world, node, clients)
    }

    /// The node, once it admits requests.
    pub async fn start(&self, options: &NodeOptions) -> (Node, Clients) {
        let node = Node::start(options);
        let clients = Clients::of(&node).await;
        (node, clients)
    }

    /// A node that stands still at a failpoint, whenever it comes there, until it is let go on.
    pub async fn start_held_at(&self, failpoint: &str) -> (Node, Clients, Hold) {
        let hold = self.hold(failpoint);
        let options = self.options.clone().failpoints(&format!("{failpoint}={}", hold.action()));
        let (node, clients) = self.start(&options).await;
        (node, clients, hold)
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    pub fn id(&self, name: &str) -> String {
        self.engine.container_id(name).expect("the container exists")
    }

    /// Something that concerns the whole engine.
    pub fn act_on_engine(&self, action: Action) {
        self.engine.act(None, action).expect("an action");
    }

    /// Requests of this kind that arrived for a container.
    pub fn asked(&self, name: &str, endpoint: Endpoint) -> usize {
        self.engine.log().history().requests(&self.id(name), endpoint).len()
    }

    /// Every request that arrived and changes something.
    pub fn changes(&self) -> usize {
        let changes = |event: &Event| matches!(event, Event::Request { method, .. } if method != "GET");
        self.engine.log().history().entries.iter().filter(|entry| changes(&entry.event)).count()
    }

    /// Waits until a request stands at the engine's gate.
    pub async fn reached(&self, gate: &str) {
        let waited = tokio::time::timeout(GIVE_UP_AFTER, self.engine.reached(gate, 1)).await;
        waited.unwrap_or_else(|_| panic!("nobody came to {gate}: {:#?}", self.engine.log().history()));
    }
}

/// Raw clients of one node.
#[derive(Clone)]
pub struct Clients {
    pub channel: Channel,
    pub recovery: RecoveryClient<Channel>,
    pub holds: HoldsClient<Channel>,
    pub limits: LimitsClient<Channel>,
}

impl Clients {
    /// Waits until the node admits requests.
    async fn of(node: &Node) -> Self {
        let address = Address::from_shared(node.addr().to_owned()).expect("an address");
        let channel = address.connect().await.expect("a connection");
        let mut clients = Self {
            recovery: RecoveryClient::new(channel.clone()),
            holds: HoldsClient::new(channel.clone()),
            limits: LimitsClient::new(channel.clone()),
            channel,
        };
        let explain = v1::ExplainRequest { target: "local/nobody".into(), grace: None };
        wait("the node to admit requests", async || match clients.recovery.explain(explain.clone()).await {
            Err(status) if status.code() == Code::Unavailable => Err(status.to_string()),
            _ => Ok(()),
        })
        .await;
        clients
    }

    pub async fn request(
        &mut self,
        request: &v1::RequestRecoveryRequest,
    ) -> Result<v1::RequestRecoveryResponse, Status> {
        self.recovery.request_recovery(request.clone()).await.map(tonic::Response::into_inner)
    }

    /// Asks, and expects this decision. Gives the run.
    pub async fn decided(&mut self, request: &v1::RequestRecoveryRequest, decision: v1::Decision) -> v1::Run {
        let answer = self.request(request).await.expect("an answer");
        assert_eq!(answer.decision(), decision, "{answer:#?}");
        answer.run.expect("an answer has a run")
    }

    pub async fn opened(&mut self, target: &str) -> v1::Run {
        self.decided(&ask(target), v1::Decision::Opened).await
    }

    /// Asks for a container that is not there: a refusal, and one entry of the log. Gives the entry's index.
    pub async fn entry(&mut self) -> u64 {
        let run = self.decided(&ask("local/nobody"), v1::Decision::Refused).await;
        run.events.first().expect("a refusal is an event").index
    }

    pub async fn run(&mut self, id: &str) -> v1::Run {
        let answer = self.recovery.get_run(v1::GetRunRequest { run_id: id.to_owned() }).await;
        answer.expect("an answer").into_inner().run.expect("an answer has a run")
    }

    /// Waits until the run is as wanted.
    pub async fn wait_for_run(&mut self, id: &str, what: &str, wanted: impl Fn(&v1::Run) -> bool) -> v1::Run {
        wait(what, async || {
            let run = self.run(id).await;
            if wanted(&run) { Ok(run) } else { Err(format!("{run:#?}")) }
        })
        .await
    }

    pub async fn wait_for_status(&mut self, id: &str, status: v1::RunStatus) -> v1::Run {
        self.wait_for_run(id, status.as_str_name(), |run| run.status() == status).await
    }

    /// Waits until the run is unresolved for at least this reason.
    pub async fn unresolved(&mut self, id: &str, code: &str) -> v1::Run {
        self.wait_for_run(id, code, |run| {
            run.status() == v1::RunStatus::Unresolved && codes(&run.reasons).contains(&code)
        })
        .await
    }

    pub async fn list(&mut self, request: v1::ListRunsRequest) -> v1::ListRunsResponse {
        self.recovery.list_runs(request).await.expect("an answer").into_inner()
    }

    /// Every run, newest first.
    pub async fn runs(&mut self) -> Vec<v1::Run> {
        self.list(v1::ListRunsRequest { page_size: 1_000, ..v1::ListRunsRequest::default() }).await.runs
    }

    pub async fn explained(&mut self, target: &str) -> v1::ExplainResponse {
        let request = v1::ExplainRequest { target: target.to_owned(), grace: None };
        self.recovery.explain(request).await.expect("an answer").into_inner()
    }

    pub async fn place(&mut self, request: v1::PlaceHoldRequest) -> v1::PlaceHoldResponse {
        self.holds.place_hold(request).await.expect("an answer").into_inner()
    }

    pub async fn standing(&mut self) -> Vec<v1::Hold> {
        self.holds.list_holds(v1::ListHoldsRequest {}).await.expect("an answer").into_inner().holds
    }

    pub async fn limits(&mut self) -> v1::LimitSet {
        let answer = self.limits.get_limits(v1::GetLimitsRequest {}).await;
        answer.expect("an answer").into_inner().limits.expect("an answer has limits")
    }

    pub async fn set_limits(&mut self, limits: v1::LimitSet) -> Result<v1::LimitSet, Status> {
        let answer = self.limits.set_limits(v1::SetLimitsRequest { limits: Some(limits) }).await?;
        Ok(answer.into_inner().limits.expect("an answer has limits"))
    }
}

/// A request for one restart, without an id.
pub fn ask(target: &str) -> v1::RequestRecoveryRequest {
    v1::RequestRecoveryRequest {
        target: target.to_owned(),
        reason: "its queue is stuck".to_owned(),
        ..v1::RequestRecoveryRequest::default()
    }
}

/// The same with an id.
pub fn ask_as(id: &str, target: &str) -> v1::RequestRecoveryRequest {
    v1::RequestRecoveryRequest { request_id: id.to_owned(), ..ask(target) }
}

/// A wish for a hold that has no end.
pub fn hold(scope: v1::hold_scope::Scope) -> v1::PlaceHoldRequest {
    v1::PlaceHoldRequest {
        scope: Some(v1::HoldScope { scope: Some(scope) }),
        operator: "kim".to_owned(),
        reason: "an upgrade".to_owned(),
        ..v1::PlaceHoldRequest::default()
    }
}

pub fn codes(reasons: &[v1::Reason]) -> Vec<&str> {
    reasons.iter().map(|reason| reason.code.as_str()).collect()
}

/// The fields that an INVALID_ARGUMENT names, each with a rule, in details and message alike.
pub fn fields(status: &Status) -> Vec<String> {
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let details = status.get_details_bad_request().expect("google.rpc.BadRequest");
    for violation in &details.field_violations {
        assert!(violation.description.len() > 10, "no rule: {violation:?}");
        let field = format!("{}: ", violation.field);
        assert!(status.message().contains(&field), "{field} is not in {:?}", status.message());
    }
    details.field_violations.into_iter().map(|violation| violation.field).collect()
}

/// The kind of condition that a FAILED_PRECONDITION names.
pub fn precondition(status: &Status) -> String {
    assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
    let details = status.get_details_precondition_failure().expect("google.rpc.PreconditionFailure");
    let [violation] = details.violations.as_slice() else { panic!("one condition: {details:?}") };
    assert!(!violation.subject.is_empty() && violation.description.len() > 10, "{violation:?}");
    violation.r#type.clone()
}

/// What a NOT_FOUND says is not there: its type and name.
pub fn missing(status: &Status) -> (String, String) {
    assert_eq!(status.code(), Code::NotFound, "{status:?}");
    let details = status.get_details_resource_info().expect("google.rpc.ResourceInfo");
    (details.resource_type, details.resource_name)
}

/// Waits for a condition, and says what it saw last if it has to give up.
pub async fn wait<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let begun = tokio::time::Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(saw) if begun.elapsed() > GIVE_UP_AFTER => panic!("gave up waiting for {what}: {saw}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
