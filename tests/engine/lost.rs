//! Answers that are lost on the way back from a real engine.

use crate::support::dockerd::{Dockerd, RunOptions, unique_name};
use crate::support::node::{Hold, Node, NodeOptions};
use crate::support::proxy::OnRestart;
use crate::world::{World, assert_applied};

#[test]
fn a_reply_that_is_cut_after_the_post_was_passed_on_ends_applied_by_one_post() {
    let world = World::new(RunOptions::default(), OnRestart::CutReply);
    let node = world.node();
    let answer = node.recover(&world.target(), &["--wait=applied"]);
    assert_eq!(answer.exit, 0, "{answer:?}");
    let run = node.run(&answer.run_id());
    assert_applied(&world, &run);
    assert_eq!(run["quarantined"], true, "the exchange is not known to have ended: {run:#}");
    let again = node.recover(&world.target(), &[]);
    assert_eq!(again.exit, 3, "{again:?}");
    let codes: Vec<_> = again.run()["reasons"].as_array().unwrap().iter().map(|r| &r["code"]).collect();
    assert!(codes.iter().any(|code| *code == "quarantined"), "{codes:?}");
}

/// At the default margin: 0 s of grace and 20 s.
#[test]
fn a_client_deadline_that_expires_is_uncertain_and_then_applied_by_one_post() {
    let world = World::new(RunOptions::default(), OnRestart::Swallow);
    let node = world.node();
    deadline_expires(&world, &node);
}

#[test]
fn a_client_deadline_at_the_least_margin_expires_the_same_way() {
    let mut world = World::new(RunOptions::default(), OnRestart::Swallow);
    world.options = world.options.clone().arg("--margin").arg("15s");
    let node = world.node();
    deadline_expires(&world, &node);
}

fn deadline_expires(world: &World, node: &Node) {
    let answer = node.recover(&world.target(), &["--grace", "0s"]);
    assert_eq!(answer.exit, 0, "{answer:?}");
    world.proxy.wait_for_posts(&world.id, 1);
    let run = node.wait_for_status(&answer.run_id(), "APPLIED");
    assert_applied(world, &run);
    let history = run["events"].to_string();
    assert!(history.contains("client deadline"), "{run:#}");
    assert!(history.contains("UNRESOLVED"), "it was uncertain before: {run:#}");
    assert_eq!(run["quarantined"], true, "{run:#}");
}

#[test]
fn a_dockerd_that_is_stopped_before_the_post_proves_that_nothing_was_sent() {
    let docker = Dockerd::own();
    let name = unique_name("web");
    docker.run_container(&name, RunOptions::default());
    docker.wait_until_ready(&name);
    let dir = tempfile::tempdir().unwrap();
    let hold = Hold::new(dir.path(), "rechecked");
    let options = NodeOptions::new(docker.endpoint(), dir.path().join("data"))
        .failpoints(&format!("coordinator-after-recheck={}", hold.action()));
    let node = Node::start(&options);
    let answer = node.recover(&format!("local/{name}"), &[]);
    assert_eq!(answer.exit, 0, "{answer:?}");
    hold.reached();
    docker.stop();
    hold.release();
    let run = node.wait_for_status(&answer.run_id(), "NOT_APPLIED");
    assert_eq!(run["disposition"], "DISPOSITION_NOT_APPLIED");
    assert!(run["settlement"].as_str().unwrap().contains("docker.sock"), "{run:#}");
}
