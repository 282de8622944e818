//! What is refused before an interlock, each for its own reason: the engine hears of no restart.

use serde_json::Value;

use crate::support::dockerd::{Dockerd, RunOptions, unique_name};
use crate::support::node::{Node, NodeOptions};
use crate::world::codes;

struct World {
    docker: &'static Dockerd,
    node: Node,
    _dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let docker = Dockerd::shared();
        let dir = tempfile::Builder::new().prefix("relatch-").tempdir().expect("a temporary folder");
        let node = Node::start(&NodeOptions::new(docker.endpoint(), dir.path().join("data")));
        Self { docker, node, _dir: dir }
    }

    fn run(&self, options: RunOptions) -> (String, String) {
        let name = unique_name("web");
        let id = self.docker.run_container(&name, options);
        (name, id)
    }

    /// It is refused for that reason alone, and `explain` names that check as the one that blocks. Gives what the
    /// reason says.
    fn refused(&self, path: &str, code: &str, check: &str) -> String {
        let target = format!("local/{path}");
        let answer = self.node.recover(&target, &[]);
        assert_eq!(answer.exit, 3, "{target}: {answer:?}");
        let run = answer.run();
        assert_eq!(run["status"], "RUN_STATUS_REFUSED", "{run:#}");
        assert_eq!(codes(run), [code], "{run:#}");
        assert!(!run["events"].to_string().contains("INTERLOCKED"), "{run:#}");
        assert!(!run["reasons"][0]["endsWhen"].as_str().expect("an end").is_empty(), "{run:#}");
        let explained = self.node.cli(&["explain", &target]);
        assert_eq!(explained.exit, 3, "{target}: {explained:?}");
        blocks_alone(&explained.json, code, check);
        run["reasons"][0]["detail"].as_str().expect("a detail").to_owned()
    }
}

/// One check blocks. Those before it pass; those after it pass, or were not made.
fn blocks_alone(explained: &Value, code: &str, blocking: &str) {
    let checks = explained["checks"].as_array().expect("checks");
    let at = checks.iter().position(|check| check["name"] == blocking);
    let at = at.unwrap_or_else(|| panic!("there is no check {blocking}: {explained:#}"));
    assert_eq!(codes(&checks[at]), [code], "{explained:#}");
    for (n, check) in checks.iter().enumerate() {
        let may_be: &[&str] = match n.cmp(&at) {
            std::cmp::Ordering::Less => &["VERDICT_PASS"],
            std::cmp::Ordering::Equal => &["VERDICT_BLOCK"],
            std::cmp::Ordering::Greater => &["VERDICT_PASS", "VERDICT_NOT_MADE"],
        };
        assert!(may_be.iter().any(|verdict| check["verdict"] == *verdict), "{check:#} of {explained:#}");
    }
}

#[test]
fn what_does_not_run_is_refused_by_reason_and_no_restart_reaches_the_engine() {
    let world = World::new();
    // Its pauses double: by the time that it is asked for, one is long enough.
    let fails = |restart_policy: Option<&str>| RunOptions {
        restart_policy: restart_policy.map(str::to_owned),
        command: Some(vec!["/bin/false".to_owned()]),
        ..RunOptions::default()
    };
    let (restarting, restarting_id) = world.run(fails(Some("always")));

    let (paused, paused_id) = world.run(RunOptions::default());
    world.docker.pause(&paused);
    world.refused(&paused, "target-paused", "state");
    assert_eq!(world.docker.inspect(&paused)["State"]["Paused"], true);

    let (exited, exited_id) = world.run(fails(None));
    world.docker.wait_until(&exited, "exited", |c| c["State"]["Status"] == "exited");
    world.refused(&exited, "target-not-running", "state");

    let created = unique_name("web");
    let created_id = world.docker.docker(&[
        "create",
        "--network",
        "none",
        "--name",
        &created,
        crate::support::dockerd::IMAGE,
        "/bin/false",
    ]);
    world.refused(&created, "target-not-running", "started");
    assert_eq!(world.docker.inspect(&created)["State"]["Status"], "created");

    let (removed, removed_id) = world.run(RunOptions::default());
    world.docker.rm(&removed);
    let there = world.refused(&removed, "target-not-found", "target");
    assert!(there.contains(&format!("local/{created}")), "what there is, is listed: {there}");
    world.refused(&removed_id, "target-not-found", "target");

    let slow = |c: &Value| c["RestartCount"].as_u64() >= Some(6) && c["State"]["Status"] == "restarting";
    world.docker.wait_until(&restarting, "restarting, with a long pause", slow);
    world.refused(&restarting, "target-restarting", "state");

    for id in [&restarting_id, &paused_id, &exited_id, &created_id, &removed_id] {
        assert_eq!(world.docker.posts(id), 0, "{}", world.docker.log_tail());
    }
    for name in [&restarting, &paused, &exited, &created] {
        world.docker.rm(name);
    }
}

#[test]
fn what_is_not_one_plain_container_is_refused_and_listed_as_it_can_be_asked_for() {
    let world = World::new();
    let project = unique_name("shop");
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let compose = |key: &str, value: &str| label(&format!("com.docker.compose.{key}"), value);
    let labels =
        vec![compose("project", &project), compose("service", "web"), compose("container-number", "1")];
    let same = RunOptions { labels, ..RunOptions::default() };
    let ((one, one_id), (other, other_id)) = (world.run(same.clone()), world.run(same));
    for spelling in [format!("{project}/web"), format!("{project}/web/1")] {
        let listed = world.refused(&spelling, "target-ambiguous", "target");
        for name in [&one, &other] {
            assert!(listed.contains(&format!("local/{name}")), "{listed}");
        }
    }
    for name in [&one, &other] {
        let explained = world.node.cli(&["explain", &format!("local/{name}")]);
        assert_eq!(explained.exit, 0, "what is listed can be asked for: {explained:?}");
    }

    let labels = vec![label("com.docker.swarm.task.id", "x1")];
    let (task, task_id) = world.run(RunOptions { labels, ..RunOptions::default() });
    world.refused(&task, "target-swarm-task", "swarm");
    for id in [&one_id, &other_id, &task_id] {
        assert_eq!(world.docker.posts(id), 0, "{}", world.docker.log_tail());
    }
    for name in [&one, &other, &task] {
        world.docker.rm(name);
    }
}

/// The binary with what it is linked to, mounted into a container of the engine that it watches over.
#[test]
fn relatch_in_a_container_does_not_restart_its_own() {
    let docker = Dockerd::shared();
    let mut extra = Vec::new();
    let mut mount = |from: &str, to: &str| extra.extend(["--volume".to_owned(), format!("{from}:{to}")]);
    for libraries in ["/usr", "/lib", "/lib64"] {
        if std::path::Path::new(libraries).exists() {
            mount(libraries, &format!("{libraries}:ro"));
        }
    }
    mount(env!("CARGO_BIN_EXE_relatch"), "/relatch:ro");
    mount(docker.folder().to_str().expect("a plain path"), "/engine");
    extra.extend(["--volume", "/data"].map(str::to_owned));
    let dev = ["/relatch", "dev", "--docker", "unix:///engine/docker.sock", "--data-dir", "/data/relatch"];
    let command = Some(dev.map(str::to_owned).to_vec());
    let name = unique_name("relatch");
    let id = docker.run_container(&name, RunOptions { command, extra, ..RunOptions::default() });
    let ask = |args: &[&str]| {
        let target = format!("local/{name}");
        let output = docker.try_docker(
            &[&["exec", &name, "/relatch", "--output", "json"], args, &[target.as_str()]].concat(),
        );
        let log = docker.try_docker(&["logs", &name]);
        assert_eq!(output.status.code(), Some(3), "{output:?}\n{log:?}");
        serde_json::from_slice::<Value>(&output.stdout).expect("an answer")
    };
    let answer = ask(&["recover", "--reason", "test"]);
    assert_eq!(codes(&answer["run"]), ["target-is-relatch"], "{answer:#}");
    blocks_alone(&ask(&["explain"]), "target-is-relatch", "relatch");
    assert_eq!(docker.posts(&id), 0, "{}", docker.log_tail());
    docker.rm(&name);
}
