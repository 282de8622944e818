//! A node, a proxy and a container on the tests' dockerd.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::dockerd::{Dockerd, RunOptions, unique_name};
use crate::support::node::{Answer, Hold, Node, NodeOptions};
use crate::support::proxy::{OnRestart, Proxy};

/// One container of its own, reached by a node of its own through a proxy of its own.
pub struct World {
    pub docker: &'static Dockerd,
    pub proxy: Proxy,
    pub options: NodeOptions,
    pub name: String,
    pub id: String,
    /// `StartedAt` before anything was asked.
    pub started_at: String,
    dir: TempDir,
}

impl World {
    pub fn new(container: RunOptions, on_restart: OnRestart) -> Self {
        let docker = Dockerd::shared();
        let name = unique_name("web");
        let id = docker.run_container(&name, container);
        docker.wait_until_ready(&name);
        let started_at = docker.started_at(&name);
        let dir = tempfile::Builder::new().prefix("relatch-").tempdir().expect("a temporary folder");
        let proxy = Proxy::start(dir.path(), &docker.socket(), on_restart);
        let options = NodeOptions::new(proxy.endpoint(), dir.path().join("data"));
        Self { docker, proxy, options, name, id, started_at, dir }
    }

    pub fn node(&self) -> Node {
        Node::start(&self.options)
    }

    /// A point at which the node waits, and the options of a node that waits there.
    pub fn hold_at(&self, failpoint: &str) -> (Hold, NodeOptions) {
        let hold = Hold::new(self.dir.path(), failpoint);
        let options = self.options.clone().failpoints(&format!("{failpoint}={}", hold.action()));
        (hold, options)
    }

    pub fn target(&self) -> String {
        format!("local/{}", self.name)
    }

    pub fn posts(&self) -> usize {
        self.proxy.posts(&self.id)
    }
}

/// Asserts what an applied run looks like.
pub fn assert_applied(world: &World, run: &Value) {
    assert_eq!(run["status"], "RUN_STATUS_APPLIED", "{run:#}");
    assert_eq!(run["disposition"], "DISPOSITION_APPLIED", "{run:#}");
    assert_eq!(run["baseline"]["containerId"], world.id.as_str(), "{run:#}");
    assert_eq!(run["observed"]["containerId"], world.id.as_str(), "{run:#}");
    let now = world.docker.started_at(&world.name);
    assert_ne!(now, world.started_at, "the container was started again");
    assert_eq!(world.posts(), 1, "one decision, one POST: {run:#}");
}

/// The codes of reasons: a run's, or a check's.
pub fn codes(of: &Value) -> Vec<String> {
    let reasons = of["reasons"].as_array().unwrap_or_else(|| panic!("no reasons: {of:#}"));
    reasons.iter().map(|reason| reason["code"].as_str().expect("a code").to_owned()).collect()
}

/// Changes limits, as in `attempts=5`.
pub fn set_limits(node: &Node, settings: &[&str]) {
    let answer = node.cli(&[&["limits", "set"], settings].concat());
    assert_eq!(answer.exit, 0, "{answer:?}");
}

/// A command in an operator's name.
pub fn as_operator(node: &Node, args: &[&str]) -> Answer {
    node.cli(&[args, &["--reason", "test", "--by", "kim"]].concat())
}

/// `relatch approve-start RUN`.
pub fn approve(node: &Node, run: &str, args: &[&str]) -> Answer {
    as_operator(node, &[&["approve-start", run], args].concat())
}

/// Waits until the run says that a restart left its container down.
pub fn left_down(node: &Node, run: &str) -> Value {
    let run = node.wait_for_run(run, "target-down", |run| {
        run["status"] != "RUN_STATUS_UNRESOLVED" && run["status"] != "RUN_STATUS_INTERLOCKED"
            || codes(run).contains(&"target-down".to_owned())
    });
    assert_eq!(run["status"], "RUN_STATUS_UNRESOLVED", "{run:#}");
    assert_eq!(run["disposition"], "DISPOSITION_UNCERTAIN", "{run:#}");
    run
}

/// A folder of the host that a container has mounted: without it, the engine stops the container and cannot start
/// it again.
pub struct Source {
    dir: TempDir,
}

impl Source {
    pub fn new() -> Self {
        let source = Self { dir: tempfile::Builder::new().prefix("relatch-").tempdir().expect("a folder") };
        source.mend();
        source
    }

    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("source")
    }

    /// A container that has it mounted.
    pub fn container(&self) -> RunOptions {
        let mount = format!("type=bind,source={},target=/source", self.path().display());
        RunOptions { extra: vec!["--mount".to_owned(), mount], ..RunOptions::default() }
    }

    pub fn remove(&self) {
        std::fs::remove_dir(self.path()).expect("removing the source");
    }

    pub fn mend(&self) {
        std::fs::create_dir(self.path()).expect("making the source");
    }
}
