//! A node that looks after the server, and what it is asked.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tempfile::TempDir;

use crate::looks::id;
use crate::server::{Server, heads};
use crate::shared::Arrived;
use crate::support::node::{Hold, Node, NodeOptions, wait_for};

/// Limits under which a test meets no pause that it did not ask for, but the one after an attempt.
const LIMITS: &[&str] = &["in_flight_cluster=64", "in_flight_host=64", "unresolved_host=64", "attempts=1"];

pub struct World {
    pub server: Server,
    pub node: Node,
    pub options: NodeOptions,
    /// Where it is held before it connects, if it is.
    gate: Hold,
    /// The containers that were asked for.
    asked: AtomicUsize,
    _dir: TempDir,
}

impl World {
    pub fn of(server: Server, options: impl FnOnce(NodeOptions) -> NodeOptions) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let gate = Hold::new(dir.path(), "gate");
        let options = options(NodeOptions::new(server.endpoint(), dir.path().join("data")));
        let node = Node::start(&options);
        let set = node.cli(&[&["limits", "set"], LIMITS].concat());
        assert_eq!(set.exit, 0, "{set:#?}");
        Self { server, node, options, gate, asked: AtomicUsize::new(0), _dir: dir }
    }

    /// The same with a node that stands still between the decision and the connection that is to carry its
    /// request.
    pub fn held(server: Server, options: impl FnOnce(NodeOptions) -> NodeOptions) -> Self {
        Self::of(server, |plain| {
            let gate = Hold::new(plain.data_dir.parent().expect("a folder"), "gate");
            options(plain.failpoints(&format!("dispatch-before-connect={}", gate.action())))
        })
    }

    /// Asks for the restart of a container that nobody has asked for yet. Gives its number and its run.
    pub fn opened(&self) -> (usize, String) {
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let answer = self.node.recover(&format!("local/web-{number}"), &["--grace", "0s"]);
        assert_eq!(answer.json["decision"], "DECISION_OPENED", "{answer:#?}");
        (number, answer.run_id())
    }

    /// The node stands between the decision and the connection, where the test lets it go on.
    pub fn stands_before_the_connection(&self) {
        self.gate.reached();
    }

    pub fn goes_on(&self) {
        self.gate.release();
    }

    /// The next run is held there again.
    pub fn hold_again(&self) {
        self.gate.arm();
    }

    /// Waits until nothing was sent, by proof; gives the settlement. Nothing arrived; the run is over; the attempt
    /// was given back, but the next has to wait; and nobody has tried again.
    pub fn unsent(&self, number: usize, run: &str) -> String {
        let settled =
            self.node.wait_for_run(run, "what became of it", |run| run["status"] != "RUN_STATUS_INTERLOCKED");
        assert_eq!(settled["status"], "RUN_STATUS_NOT_APPLIED", "{settled:#}");
        let settlement = settled["settlement"].as_str().expect("a settlement").to_owned();
        println!("web-{number}: {settlement}");
        assert!(settlement.starts_with("no byte was written: "), "{settled:#}");
        assert_eq!(settled["disposition"], "DISPOSITION_NOT_APPLIED", "{settled:#}");
        assert_eq!(settled["quarantined"], false, "{settled:#}");
        assert!(self.server.posts(&id(number)).is_empty(), "{:#?}", self.server.posts(&id(number)));
        let log = std::fs::read_to_string(&self.options.log).expect("the node's log");
        let handed_on = log.lines().filter(|line| line.contains("handing an order") && line.contains(run));
        assert_eq!(handed_on.count(), 1, "it is handed on once:\n{log}");
        settlement
    }

    /// The container may not be asked for again at once, for these reasons alone.
    pub fn refused(&self, number: usize, wanted: &[&str]) {
        wait_for("the engine to be looked at again", || {
            let answer = self.node.recover(&format!("local/web-{number}"), &[]);
            let codes = codes(answer.run());
            if codes == wanted { Ok(()) } else { Err(format!("{answer:#?}")) }
        });
    }

    /// The one connection on which the container's restart arrived, or its beginning: never more than one head.
    pub fn post(&self, number: usize) -> Arrived {
        let mut posts = self.server.posts(&id(number));
        assert_eq!(posts.len(), 1, "{posts:#?}");
        let post = posts.remove(0);
        assert_eq!(heads(&post.bytes), 1, "{}", String::from_utf8_lossy(&post.bytes));
        post
    }

    /// Waits until the run is unresolved for at least these reasons, with nothing claimed.
    pub fn unresolved(&self, run: &str, wanted: &[&str]) -> Value {
        let run = self.node.wait_for_run(run, &format!("{wanted:?}"), |run| {
            run["status"] == "RUN_STATUS_UNRESOLVED" && wanted.iter().all(|code| codes(run).contains(code))
        });
        assert_eq!(run["disposition"], "DISPOSITION_UNCERTAIN", "{run:#}");
        run
    }
}

/// The codes of a run's reasons.
pub fn codes(run: &Value) -> Vec<&str> {
    let reasons = run["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
    reasons.iter().map(|reason| reason["code"].as_str().expect("a code")).collect()
}

/// The detail of the reason with this code.
pub fn detail<'a>(run: &'a Value, code: &str) -> &'a str {
    let reasons = run["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = reasons.iter().find(|reason| reason["code"] == code);
    found.and_then(|reason| reason["detail"].as_str()).unwrap_or_else(|| panic!("no {code}: {run:#}"))
}
