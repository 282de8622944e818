//! Restarts that go well, and requests that are refused.

use crate::support::dockerd::RunOptions;
use crate::support::proxy::OnRestart;
use crate::world::{World, assert_applied};

#[test]
fn a_polite_container_is_restarted_by_one_post() {
    let world = World::new(RunOptions::default(), OnRestart::Pass);
    let node = world.node();
    let answer = node.recover(&world.target(), &["--wait=applied"]);
    assert_eq!(answer.exit, 0, "{answer:?}");
    let run = node.run(&answer.run_id());
    assert_applied(&world, &run);
    assert_eq!(run["quarantined"], false, "the reply was complete");
    assert_eq!(run["guard"], "GUARD_AGENT");
    node.stop();
}

#[test]
fn a_container_that_ignores_sigterm_is_waited_for_through_its_whole_grace() {
    let world = World::new(RunOptions { ignores_sigterm: true, ..RunOptions::default() }, OnRestart::Pass);
    let node = world.node();
    let answer = node.recover(&world.target(), &["--grace", "3s", "--wait=applied"]);
    assert_eq!(answer.exit, 0, "{answer:?}");
    let run = node.run(&answer.run_id());
    assert_applied(&world, &run);
    assert_eq!(run["grace"], "3s");
    let killed = world.docker.inspect(&world.name);
    assert_eq!(killed["State"]["Running"], true);
}

#[test]
fn every_spelling_of_a_container_finds_it_and_a_second_request_waits_its_turn() {
    let world = World::new(RunOptions::default(), OnRestart::Pass);
    let node = world.node();
    let by_id = node.recover(&format!("local/{}", &world.id[..12]), &["--wait=applied"]);
    assert_eq!(by_id.exit, 0, "{by_id:?}");
    assert_eq!(by_id.run()["target"], world.target().as_str(), "the canonical spelling is by name");
    let again = node.recover(&world.target(), &[]);
    assert_eq!(again.exit, 3, "{again:?}");
    assert_eq!(again.run()["reasons"][0]["code"], "backing-off", "{again:?}");
    assert_eq!(world.posts(), 1);
}

#[test]
fn the_same_request_id_is_one_request() {
    let world = World::new(RunOptions::default(), OnRestart::Pass);
    let node = world.node();
    let first = node.recover(&world.target(), &["--request-id", "q1", "--wait=applied"]);
    assert_eq!(first.exit, 0, "{first:?}");
    let again = node.recover(&world.target(), &["--request-id", "q1"]);
    assert_eq!(again.run_id(), first.run_id());
    let other = node.recover(&world.target(), &["--request-id", "q1", "--grace", "4s"]);
    assert_eq!(other.exit, 2, "the same id with other content is an error: {other:?}");
    assert!(other.stderr.contains("request_id"), "{other:?}");
    assert_eq!(world.posts(), 1);
}

#[test]
fn a_paused_container_is_refused_and_stays_paused() {
    let world = World::new(RunOptions::default(), OnRestart::Pass);
    world.docker.pause(&world.name);
    let node = world.node();
    let answer = node.recover(&world.target(), &[]);
    assert_eq!(answer.exit, 3, "{answer:?}");
    assert_eq!(answer.run()["status"], "RUN_STATUS_REFUSED");
    assert_eq!(answer.run()["reasons"][0]["code"], "target-paused");
    assert_eq!(world.docker.inspect(&world.name)["State"]["Paused"], true);
    assert_eq!(world.posts(), 0);
    world.docker.unpause(&world.name);
}

#[test]
fn a_target_that_is_not_there_is_refused_with_what_is() {
    let world = World::new(RunOptions::default(), OnRestart::Pass);
    let node = world.node();
    let answer = node.recover("local/no-such-container", &[]);
    assert_eq!(answer.exit, 3, "{answer:?}");
    assert_eq!(answer.run()["reasons"][0]["code"], "target-not-found");
    let unknown = node.recover("elsewhere/web", &[]);
    assert_eq!(unknown.exit, 2, "an unknown host is an error, and not stored: {unknown:?}");
    assert!(unknown.stderr.contains("target"), "{unknown:?}");
}
