//! A scripted engine, the options of a node that looks after it, and a judge.

use std::time::Duration;

use jiff::Timestamp;
use relatch::sim::{ContainerSpec, Endpoint, Engine, EngineBuilder, Entry, Event, History, StopBehaviour};
use serde_json::Value;

use crate::support::node::{Answer, Hold, Node};
pub use crate::support::scripted::World;

/// When waiting for the engine is given up. Not an expectation of speed: a busy machine is slow.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(120);

impl World {
    pub async fn new(containers: impl IntoIterator<Item = ContainerSpec>) -> Self {
        let builder = containers.into_iter().fold(Engine::builder(), |builder, spec| builder.container(spec));
        Self::of(builder).await
    }

    /// One container, `web`, which stops when it is told to.
    pub async fn web() -> Self {
        Self::new([ContainerSpec::named("web")]).await
    }

    pub async fn of(engine: EngineBuilder) -> Self {
        Self::serving(engine.build().expect("an engine")).await
    }

    pub fn node(&self) -> Node {
        Node::start(&self.options)
    }

    /// A node that stands still at a failpoint, whenever it comes there, until it is let go on.
    pub fn node_held_at(&self, failpoint: &str) -> (Node, Hold) {
        let hold = self.hold(failpoint);
        let node = Node::start(&self.options.clone().failpoints(&format!("{failpoint}={}", hold.action())));
        (node, hold)
    }

    pub fn id(&self, name: &str) -> String {
        self.engine.container_id(name).expect("the container exists")
    }

    /// `StartedAt`, as an inspect shows it.
    pub fn started_at(&self, name: &str) -> String {
        self.engine.started_at(name).expect("the container exists")
    }

    /// Restart requests that arrived for the container with this full id, whether or not it was there still.
    pub fn posts(&self, id: &str) -> usize {
        restarts(&self.engine.log().history()).filter(|(asked, _)| asked == id).count()
    }

    /// The engine's log, once it is as wanted.
    pub async fn logged(&self, what: &str, wanted: impl Fn(&History) -> bool) -> History {
        let waited = tokio::time::timeout(GIVE_UP_AFTER, self.engine.log().wait_until(wanted)).await;
        waited.unwrap_or_else(|_| panic!("gave up waiting for {what}: {:#?}", self.engine.log().history()))
    }

    /// Waits until so many requests stand at the engine's gate.
    pub async fn reached(&self, gate: &str) {
        let waited = tokio::time::timeout(GIVE_UP_AFTER, self.engine.reached(gate, 1)).await;
        waited.unwrap_or_else(|_| panic!("nobody came to {gate}: {:#?}", self.engine.log().history()));
    }

    /// Makes the node look at the container of an open run, by a request that attaches, and waits until it has.
    pub async fn looked_again(&self, node: &Node, id: &str) {
        let before = self.engine.log().history().requests(id, Endpoint::Inspect).len();
        attached(node, &format!("local/{}", &id[..12]), &[]);
        // One for the request, and one for the run.
        let looked = |history: &History| history.requests(id, Endpoint::Inspect).len() >= before + 2;
        self.logged("another look", looked).await;
    }

    /// What holds in every case, whatever else happened: there are no more POSTs than interlocks, and none
    /// before its interlock; every POST says its grace; nothing else was ever asked that changes anything; and
    /// `applied` is said of a later `StartedAt` of the same container alone.
    pub fn judge(&self, node: &Node) {
        let runs: Vec<Value> =
            node.runs().iter().map(|run| node.run(run["runId"].as_str().expect("an id"))).collect();
        let history = self.engine.log().history();
        for entry in &history.entries {
            if let Event::Request { method, endpoint, target, .. } = &entry.event {
                let harmless = method == "GET" || *endpoint == Endpoint::Restart && target.contains("?t=");
                assert!(harmless, "nothing else may be asked: {entry:#?}");
            }
        }
        for (id, post) in restarts(&history) {
            let earlier = restarts(&history).filter(|(other, at)| *other == id && at.seq <= post.seq).count();
            let committed = runs.iter().filter(|run| {
                let event =
                    event(run, "INTERLOCKED").filter(|_| run["baseline"]["containerId"] == id.as_str());
                event.is_some_and(|event| instant(&event["time"]) <= instant(&post.time.clone().into()))
            });
            let committed = committed.count();
            assert!(earlier <= committed, "POST {earlier} of {committed} interlocks: {post:#?}\n{runs:#?}");
        }
        for run in runs.iter().filter(|run| run["disposition"] == "DISPOSITION_APPLIED") {
            let (before, after) = (&run["baseline"], &run["observed"]);
            assert_eq!(before["containerId"], after["containerId"], "{run:#}");
            assert_eq!(before["engineId"], after["engineId"], "{run:#}");
            assert!(instant(&after["startedAt"]) > instant(&before["startedAt"]), "{run:#}");
        }
    }
}

/// A container that ends only when the script says so: neither SIGTERM nor SIGKILL reaches it.
pub fn stuck(name: &str) -> ContainerSpec {
    let an_hour_ms = 3_600_000;
    ContainerSpec::named(name).stop(StopBehaviour::Unkillable { exits_after_ms: an_hour_ms })
}

/// The codes of a run's reasons.
pub fn codes(run: &Value) -> Vec<&str> {
    let reasons = run["reasons"].as_array().expect("a run has reasons, or none");
    reasons.iter().map(|reason| reason["code"].as_str().expect("a code")).collect()
}

/// The reason with this code.
pub fn reason<'a>(run: &'a Value, code: &str) -> &'a Value {
    let reasons = run["reasons"].as_array().expect("a run has reasons, or none");
    let found = reasons.iter().find(|reason| reason["code"] == code);
    found.unwrap_or_else(|| panic!("no reason {code}: {run:#}"))
}

/// The first event of this kind.
pub fn event<'a>(run: &'a Value, kind: &str) -> Option<&'a Value> {
    run["events"].as_array().expect("a run has events").iter().find(|event| event["kind"] == kind)
}

/// Waits until the run is unresolved for at least these reasons. Each says what would end it.
pub fn unresolved(node: &Node, run: &str, wanted: &[&str]) -> Value {
    let run = node.wait_for_run(run, &format!("{wanted:?}"), |run| {
        run["status"] == "RUN_STATUS_UNRESOLVED" && wanted.iter().all(|code| codes(run).contains(code))
    });
    assert_eq!(run["disposition"], "DISPOSITION_UNCERTAIN", "{run:#}");
    for reason in run["reasons"].as_array().expect("it has reasons") {
        assert!(!reason["endsWhen"].as_str().unwrap_or_default().is_empty(), "{reason:#}");
    }
    run
}

/// Asks, and expects to be accepted. Gives the run's id.
pub fn opened(node: &Node, target: &str, args: &[&str]) -> String {
    decided(node.recover(target, args), "OPENED")
}

/// Asks, and expects to share the open run. Gives its id.
pub fn attached(node: &Node, target: &str, args: &[&str]) -> String {
    decided(node.recover(target, args), "ATTACHED")
}

fn decided(answer: Answer, decision: &str) -> String {
    assert_eq!(answer.json["decision"], format!("DECISION_{decision}").as_str(), "{answer:#?}");
    answer.run_id()
}

/// Asks, and expects to be refused for this reason, with no interlock. Gives the run.
pub fn refused(node: &Node, target: &str, code: &str) -> Value {
    let answer = node.recover(target, &[]);
    assert_eq!(answer.exit, 3, "{answer:#?}");
    let run = answer.run().clone();
    assert!(codes(&run).contains(&code), "{run:#}");
    assert_eq!(event(&run, "INTERLOCKED"), None, "{run:#}");
    run
}

/// The settlement, in words.
pub fn settlement(run: &Value) -> &str {
    run["settlement"].as_str().expect("a settlement is a text")
}

/// Each restart request that arrived, with the id that it names.
fn restarts(history: &History) -> impl Iterator<Item = (String, &Entry)> {
    history.entries.iter().filter_map(|entry| match &entry.event {
        Event::Request { endpoint: Endpoint::Restart, target, .. } => {
            let id = target.trim_start_matches("/containers/").split('/').next().expect("a path has a part");
            Some((id.to_owned(), entry))
        }
        _ => None,
    })
}

fn instant(value: &Value) -> Timestamp {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no instant: {value}"))
}

/// The judge would be worth nothing if it never found anything.
#[tokio::test(flavor = "multi_thread")]
async fn the_judge_sees_a_request_that_no_interlock_stands_for() {
    let ids = ["1", "2"].map(|digit| digit.repeat(64));
    for forbidden in [
        format!("POST /containers/{}/restart?t=1 HTTP/1.1", ids[0]),
        format!("POST /containers/{}/restart HTTP/1.1", ids[1]),
        format!("POST /containers/{}/unpause HTTP/1.1", ids[1]),
    ] {
        let web = ContainerSpec { id: Some(ids[1].clone()), ..ContainerSpec::named("web") };
        let world = World::new([web]).await;
        let node = world.node();
        let run = opened(&node, "local/web", &[]);
        node.wait_for_status(&run, "APPLIED");
        world.judge(&node);
        let mut stream = tokio::net::UnixStream::connect(&world.options.docker).await.expect("a connection");
        let head = format!("{forbidden}\r\nHost: test\r\nContent-Length: 0\r\n\r\n");
        tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes()).await.expect("a request");
        let arrived = |history: &History| {
            history.entries.iter().any(
                |entry| matches!(&entry.event, Event::Request { head, .. } if head.contains("Host: test")),
            )
        };
        world.logged("the request", arrived).await;
        let judged = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.judge(&node)));
        assert!(judged.is_err(), "{forbidden} went unnoticed");
    }
}
