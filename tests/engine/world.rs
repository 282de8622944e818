//! A node, a proxy and a container on the tests' dockerd.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::dockerd::{Dockerd, RunOptions, unique_name};
use crate::support::node::{Node, NodeOptions};
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
    /// Goes with the world.
    _dir: TempDir,
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
        Self { docker, proxy, options, name, id, started_at, _dir: dir }
    }

    pub fn node(&self) -> Node {
        Node::start(&self.options)
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
