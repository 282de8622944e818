//! The node is killed with SIGKILL at exact steps of a restart on a real engine, and started again.

use crate::support::dockerd::RunOptions;
use crate::support::node::Node;
use crate::support::proxy::OnRestart;
use crate::world::{World, assert_applied};

/// Asks, lets the failpoint kill the node, and starts it again without one. Gives the run's id.
fn killed_at(world: &World, failpoint: &str) -> (Node, String) {
    let options = world.options.clone().failpoints(&format!("{failpoint}=return(kill)"));
    let node = Node::start(&options);
    // The answer may get lost with the node; the request has an id, so it can be asked for again.
    let _asking = node.ask(&world.target(), &["--request-id", "q1"]);
    node.killed_by_failpoint();
    let node = Node::start(&options.plain());
    let known = node.recover(&world.target(), &["--request-id", "q1"]);
    assert_eq!(known.json["decision"], "DECISION_OPENED", "the decision was kept: {known:?}");
    (node, known.run_id())
}

#[test]
fn killed_between_commit_and_connect_it_is_not_applied_by_attestation() {
    let world = World::new(RunOptions::default(), OnRestart::Pass);
    let (node, run) = killed_at(&world, "dispatch-before-connect");
    let run = node.wait_for_status(&run, "NOT_APPLIED");
    assert!(run["settlement"].as_str().unwrap().contains("no intent"), "{run:#}");
    assert_eq!(world.posts(), 0);
    assert_eq!(world.docker.started_at(&world.name), world.started_at);
}

#[test]
fn killed_after_the_intent_and_before_the_first_byte_it_stays_unresolved() {
    let world = World::new(RunOptions::default(), OnRestart::Pass);
    let (node, run) = killed_at(&world, "dispatch-before-first-byte");
    let run = node.wait_for_run(&run, "a look at the container", |run| {
        run["status"] == "RUN_STATUS_UNRESOLVED" && run["reasons"].to_string().contains("started-at-equal")
    });
    assert_eq!(run["disposition"], "DISPOSITION_UNCERTAIN");
    assert_eq!(world.posts(), 0, "nothing was sent, and nothing is sent again");
    assert_eq!(world.docker.started_at(&world.name), world.started_at);
    for reason in run["reasons"].as_array().unwrap() {
        assert!(!reason["endsWhen"].as_str().unwrap().is_empty(), "{reason:#}");
    }
}

#[test]
fn killed_after_the_bytes_left_it_is_unresolved_and_then_settled() {
    let world = World::new(RunOptions { ignores_sigterm: true, ..RunOptions::default() }, OnRestart::Pass);
    let (node, run) = killed_at(&world, "dispatch-after-first-byte");
    let run = node.wait_for_status(&run, "APPLIED");
    assert_applied(&world, &run);
    let history = run["events"].to_string();
    assert!(history.contains("UNRESOLVED"), "{run:#}");
}

#[test]
fn recreated_under_the_same_name_it_is_superseded_and_the_new_one_is_left_alone() {
    let world = World::new(RunOptions::default(), OnRestart::Pass);
    let options = world.options.clone().failpoints("dispatch-before-first-byte=return(kill)");
    let node = Node::start(&options);
    let _asking = node.ask(&world.target(), &["--request-id", "q1"]);
    node.killed_by_failpoint();
    world.docker.rm(&world.name);
    let new_id = world.docker.run_container(&world.name, RunOptions::default());
    world.docker.wait_until_ready(&world.name);
    let new_start = world.docker.started_at(&world.name);

    let node = Node::start(&options.plain());
    let run = node.recover(&world.target(), &["--request-id", "q1"]).run_id();
    let run = node.wait_for_status(&run, "SUPERSEDED");
    let settlement = run["settlement"].as_str().unwrap();
    assert!(settlement.contains("incarnation-replaced") && settlement.contains(&new_id), "{run:#}");
    assert_eq!(world.docker.started_at(&world.name), new_start);
    assert_eq!(world.proxy.posts(&new_id) + world.posts(), 0);
}
