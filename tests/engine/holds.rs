//! Holds over real containers.

use crate::support::dockerd::{RunOptions, unique_name};
use crate::support::node::{Node, relatch};
use crate::support::proxy::OnRestart;
use crate::world::{World, as_operator, assert_applied, codes, set_limits};

#[test]
fn a_hold_between_interlock_and_post_refuses_it_and_gives_the_attempt_back_without_a_pause() {
    let world = World::new(RunOptions::default(), OnRestart::Pass);
    let (point, options) = world.hold_at("coordinator-after-commit");
    let node = Node::start(&options);
    set_limits(&node, &["dispatch_by_ms=60s"]);
    let run = node.recover(&world.target(), &[]).run_id();
    point.reached();
    let held = as_operator(&node, &["hold", &world.target()]);
    assert_eq!(held.exit, 0, "{held:?}");
    assert_eq!(
        held.json["openRunIds"][0],
        run.as_str(),
        "whoever holds is told what may be on its way: {held:?}"
    );
    point.release();
    let run = node.wait_for_status(&run, "NOT_APPLIED");
    assert_eq!(run["disposition"], "DISPOSITION_NOT_APPLIED", "{run:#}");
    assert!(run["settlement"].as_str().unwrap().contains("held by kim"), "{run:#}");
    assert_eq!(world.docker.posts(&world.id), 0, "{}", world.docker.log_tail());

    let refused = node.recover(&world.target(), &[]);
    assert_eq!((refused.exit, codes(refused.run())), (3, vec!["held".to_owned()]), "{refused:?}");
    let lifted = node.cli(&["unhold", &world.target(), "--by", "kim"]);
    assert_eq!(lifted.exit, 0, "{lifted:?}");
    // By default a second attempt has to wait for minutes: this one is the first.
    let answer = node.recover(&world.target(), &["--wait=applied"]);
    assert_eq!(answer.exit, 0, "{answer:?}");
    assert_applied(&world, answer.run());
}

#[test]
fn while_a_command_runs_under_a_hold_its_container_is_not_restarted_and_then_it_is() {
    let world = World::new(RunOptions::default(), OnRestart::Pass);
    let node = world.node();
    let script = r#""$0" --addr "$1" recover "$2" --reason test; exit $((10 + $?))"#;
    let output = relatch()
        .args(["--addr", node.addr(), "hold", &world.target(), "--reason", "upgrade", "--by", "kim", "--"])
        .args(["sh", "-c", script, env!("CARGO_BIN_EXE_relatch"), node.addr(), &world.target()])
        .output()
        .expect("running relatch");
    assert_eq!(output.status.code(), Some(13), "the command was refused its restart: {output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("is held by kim: upgrade"), "{output:?}");
    assert_eq!(node.cli(&["holds"]).json["holds"], serde_json::json!([]));
    assert_eq!(world.posts(), 0);
    let answer = node.recover(&world.target(), &["--wait=applied"]);
    assert_eq!(answer.exit, 0, "{answer:?}");
    assert_applied(&world, answer.run());
}

#[test]
fn a_project_is_held_through_a_sigkill_of_the_node_and_its_neighbours_are_not() {
    let (shop, blog) = (unique_name("shop"), unique_name("blog"));
    let of = |project: &str, service: &str| {
        let label = |key: &str, value: &str| (format!("com.docker.compose.{key}"), value.to_owned());
        let labels =
            vec![label("project", project), label("service", service), label("container-number", "1")];
        RunOptions { labels, ..RunOptions::default() }
    };
    let world = World::new(of(&shop, "web"), OnRestart::Pass);
    let others = [(&shop, "db"), (&blog, "web")].map(|(project, service)| {
        let name = unique_name("web");
        world.docker.run_container(&name, of(project, service));
        name
    });
    let node = world.node();
    let held = as_operator(&node, &["hold", "--project", &format!("local/{shop}"), "--for", "1h"]);
    assert_eq!(held.exit, 0, "{held:?}");
    node.kill();

    let node = world.node();
    let holds = node.cli(&["holds"]).json;
    assert_eq!(holds["holds"][0]["holdId"], held.json["hold"]["holdId"], "{holds:#}");
    for (target, expected) in [
        (world.target(), 3),
        (format!("local/{shop}/web"), 3),
        (format!("local/{shop}/db/1"), 3),
        (format!("local/{}", others[0]), 3),
        (format!("local/{blog}/web"), 0),
    ] {
        let explained = node.cli(&["explain", &target]);
        assert_eq!(explained.exit, expected, "{target}: {explained:?}");
        let blocks = |check: &&serde_json::Value| check["verdict"] == "VERDICT_BLOCK";
        let blocking: Vec<_> =
            explained.json["checks"].as_array().unwrap().iter().filter(blocks).map(|c| &c["name"]).collect();
        assert_eq!(blocking.len(), usize::from(expected == 3), "{target}: {explained:?}");
        assert!(blocking.iter().all(|name| **name == "hold"), "{target}: {explained:?}");
    }
    let refused = node.recover(&world.target(), &[]);
    assert_eq!((refused.exit, codes(refused.run())), (3, vec!["held".to_owned()]), "{refused:?}");
    assert_eq!(world.docker.posts(&world.id), 0, "{}", world.docker.log_tail());
    others.iter().for_each(|name| world.docker.rm(name));
}
