//! dockerd goes away in the middle of a restart, and comes back.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::dockerd::{Dockerd, RunOptions, unique_name};
use crate::support::node::{Node, NodeOptions, wait_for};
use crate::world::codes;

/// A container whose restart takes its whole grace, and is under way.
struct Restarting {
    id: String,
    name: String,
    started_at: String,
    run: String,
}

struct World {
    docker: Dockerd,
    node: Node,
    _dir: TempDir,
}

impl World {
    fn new() -> Self {
        let docker = Dockerd::own();
        let dir = tempfile::Builder::new().prefix("relatch-").tempdir().expect("a temporary folder");
        let node = Node::start(&NodeOptions::new(docker.endpoint(), dir.path().join("data")));
        Self { docker, node, _dir: dir }
    }

    fn restarting(&self, restart_policy: Option<&str>) -> Restarting {
        let name = unique_name("web");
        let options = RunOptions {
            ignores_sigterm: true,
            restart_policy: restart_policy.map(str::to_owned),
            // What dockerd itself gives it when it ends it.
            stop_timeout_s: Some(1),
            ..RunOptions::default()
        };
        let id = self.docker.run_container(&name, options);
        let started_at = self.docker.started_at(&name);
        let answer = self.node.recover(&format!("local/{name}"), &["--grace", "20s"]);
        assert_eq!(answer.json["decision"], "DECISION_OPENED", "{answer:?}");
        wait_for("the engine to get the restart", || match self.docker.posts(&id) {
            0 => Err(self.docker.log_tail()),
            _ => Ok(()),
        });
        Restarting { run: answer.run_id(), id, name, started_at }
    }

    /// Nothing is claimed while nobody can look, whatever came back for the restart.
    fn unreadable(&self, of: &Restarting, came_back: &[&str]) {
        let run = self.node.wait_for_run(&of.run, "engine-unreadable", |run| {
            run["status"] == "RUN_STATUS_UNRESOLVED" && codes(run).contains(&"engine-unreadable".to_owned())
        });
        let codes_of_run = codes(&run);
        let [about_the_exchange, _] = codes_of_run.as_slice() else { panic!("two reasons: {run:#}") };
        assert!(came_back.contains(&about_the_exchange.as_str()), "{run:#}");
        assert_eq!(run["disposition"], "DISPOSITION_UNCERTAIN", "{run:#}");
        let answer = self.node.recover(&format!("local/{}", of.name), &[]);
        assert_eq!(
            (answer.exit, codes(answer.run())),
            (3, vec!["baseline-unreadable".to_owned()]),
            "{answer:?}"
        );
        let explained = self.node.cli(&["explain", &format!("local/{}", of.name)]);
        assert_eq!(explained.json["standing"]["runId"], of.run.as_str(), "{explained:?}");
    }

    /// The run says what its container's `StartedAt` says, once there was a look.
    fn settles_by_started_at(&self, of: &Restarting) -> Value {
        let run = self.node.wait_for_run(&of.run, "a look", |run| {
            run["status"] == "RUN_STATUS_APPLIED" || codes(run).contains(&"target-down".to_owned())
        });
        let applied = run["status"] == "RUN_STATUS_APPLIED";
        let now = self.docker.inspect(&of.id);
        assert_eq!(now["State"]["StartedAt"] != of.started_at.as_str(), applied, "{now:#}\n{run:#}");
        assert!(applied || now["State"]["Status"] == "exited", "{now:#}\n{run:#}");
        assert_eq!(self.docker.posts(&of.id), 1, "one decision, one POST: {}", self.docker.log_tail());
        run
    }
}

#[test]
fn a_dockerd_that_is_killed_during_the_post_leaves_it_uncertain_until_it_is_back() {
    let world = World::new();
    let (stays_down, comes_back) = (world.restarting(None), world.restarting(Some("always")));
    world.docker.kill();
    world.unreadable(&stays_down, &["reply-lost"]);
    world.unreadable(&comes_back, &["reply-lost"]);
    world.docker.start();

    let run = world.settles_by_started_at(&stays_down);
    assert_eq!(codes(&run), ["reply-lost", "started-at-equal", "target-down"], "{run:#}");
    let run = world.settles_by_started_at(&comes_back);
    assert_eq!(run["status"], "RUN_STATUS_APPLIED", "{run:#}");
    assert!(run["settlement"].as_str().unwrap().contains("StartedAt only"), "{run:#}");
    assert_eq!(run["quarantined"], true, "its exchange is not known to have ended: {run:#}");
}

/// dockerd ends its containers before it ends. Whether it starts this one again in between, and says so, is its own
/// affair, and may even be answered with 204.
#[test]
fn a_dockerd_that_is_stopped_during_the_post_leaves_what_its_started_at_shows() {
    let world = World::new();
    let of = world.restarting(None);
    world.docker.stop();
    let seen = world.node.wait_for_run(&of.run, "the end of the exchange, and a look", |run| {
        run["status"] == "RUN_STATUS_APPLIED" || codes(run).contains(&"engine-unreadable".to_owned())
    });
    if seen["status"] != "RUN_STATUS_APPLIED" {
        world.unreadable(&of, &["reply-lost", "error-reply", "awaiting-start"]);
    }
    world.docker.start();
    world.settles_by_started_at(&of);
}
