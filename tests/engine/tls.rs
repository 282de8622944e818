//! A real engine on a port, by TLS with certificates on both sides.

use std::path::Path;

use tempfile::TempDir;

use crate::support::certificates::Authority;
use crate::support::dockerd::{Dockerd, RunOptions, unique_name};
use crate::support::node::{Node, NodeOptions};

/// An engine, a CA for its clients, and a place for a node's data.
struct World {
    docker: Dockerd,
    engines: Authority,
    clients: Authority,
    dir: TempDir,
}

impl World {
    fn new() -> Self {
        let (engines, clients) = (Authority::new("engines"), Authority::new("clients"));
        let docker = Dockerd::own_with_tls(&engines.server(&["127.0.0.1"]), &clients);
        let dir = tempfile::Builder::new().prefix("relatch-").tempdir().expect("a temporary folder");
        Self { docker, engines, clients, dir }
    }

    fn container(&self) -> (String, String) {
        let name = unique_name("web");
        let id = self.docker.run_container(&name, RunOptions::default());
        (name, id)
    }

    /// A node with a client's certificate of that CA.
    fn node(&self, clients: &Authority) -> Node {
        let certificates = self.dir.path().join("certificates");
        clients.client().write(&certificates, &self.engines);
        let options = NodeOptions::new(self.docker.tcp_endpoint(), self.dir.path().join("data"));
        Node::start(&options.arg("--docker-tls").arg(path(&certificates)))
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a temporary folder with a plain name")
}

#[test]
fn a_restart_by_tls_ends_applied_by_one_post() {
    let world = World::new();
    let (name, id) = world.container();
    let before = world.docker.started_at(&name);
    let node = world.node(&world.clients);
    let answer = node.recover(&format!("local/{name}"), &["--wait=applied"]);
    assert_eq!(answer.exit, 0, "{answer:?}");
    let run = node.run(&answer.run_id());
    assert_eq!(run["status"], "RUN_STATUS_APPLIED", "{run:#}");
    assert_eq!(run["guard"], "GUARD_AGENT", "{run:#}");
    assert_eq!(run["quarantined"], false, "the reply was complete: {run:#}");
    assert_ne!(world.docker.started_at(&name), before, "the container was started again");
    assert_eq!(world.docker.posts(&id), 1, "{}", world.docker.log_tail());
    node.stop();
}

#[test]
fn with_a_certificate_of_another_ca_nothing_is_sent_and_no_interlock_opens() {
    let world = World::new();
    // The engine is known: it is the certificate alone that stands in the way.
    let (other, other_id) = world.container();
    let node = world.node(&world.clients);
    let answer = node.recover(&format!("local/{other}"), &["--wait=applied"]);
    assert_eq!(answer.exit, 0, "{answer:?}");
    assert_eq!(world.docker.posts(&other_id), 1, "{}", world.docker.log_tail());
    node.stop();

    let (name, id) = world.container();
    let before = world.docker.started_at(&name);
    let node = world.node(&Authority::new("strangers"));
    let answer = node.recover(&format!("local/{name}"), &[]);
    assert_eq!(answer.exit, 3, "{answer:?}");
    let run = answer.run();
    assert_eq!(run["status"], "RUN_STATUS_REFUSED", "{run:#}");
    assert_eq!(run["reasons"][0]["code"], "baseline-unreadable", "{run:#}");
    assert!(run["reasons"].to_string().contains("the engine refused"), "{run:#}");
    assert!(!run["events"].to_string().contains("INTERLOCKED"), "{run:#}");
    assert_eq!(world.docker.posts(&id), 0, "{}", world.docker.log_tail());
    assert_eq!(world.docker.started_at(&name), before);
    node.stop();
}
