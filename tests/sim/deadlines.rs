//! Deadlines that fit the work.

use std::collections::BTreeSet;

use relatch::sim::{ContainerSpec, Endpoint, Event, Hold as EngineHold, Rule, StopBehaviour};

use crate::support::node::Node;
use crate::world::{World, opened, settlement};

/// willfarrell/docker-autoheal#119: a client that gives up before the engine can be done.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_shorter_than_the_work_is_refused_at_the_start_by_name() {
    let world = World::web().await;
    for margin in ["0s", "1s", "14999ms"] {
        let said = Node::refuses_to_start(&world.options.clone().arg("--margin").arg(margin));
        assert!(said.contains("margin_ms") && said.contains("at least 15000"), "{margin}: {said}");
    }
    assert_eq!(world.engine.log().history().connections(), 0, "the engine was not even asked");
}

/// docker/docker-py#1950: after the grace the engine kills, and waits for the exit up to 10 s more.
#[tokio::test(flavor = "multi_thread")]
async fn a_204_just_after_the_grace_and_the_wait_for_the_kill_is_waited_for() {
    let slow = StopBehaviour::Unkillable { exits_after_ms: 9_500 };
    let world = World::new([ContainerSpec::named("web").stop(slow)]).await;
    let node = world.node();
    let run = opened(&node, "local/web", &["--grace", "1s"]);
    let run = node.wait_for_status(&run, "APPLIED");
    assert_eq!(settlement(&run), "a later StartedAt and the engine's reply", "{run:#}");
    assert_eq!(run["quarantined"], false, "{run:#}");
    assert_eq!(world.posts(&world.id("web")), 1);
    world.judge(&node);
}

/// However long it took to connect: the engine answers within the deadline as counted from the first byte, and
/// after it as counted from before the connection.
#[tokio::test(flavor = "multi_thread")]
async fn the_time_to_connect_is_not_taken_out_of_the_time_for_the_work() {
    let mut world = World::web().await;
    world.options = world.options.clone().arg("--margin").arg("15s");
    world.script("web", Rule::on(Endpoint::Restart).hold_reply(EngineHold::Ms(13_500)));
    let (node, hold) = world.node_held_at("dispatch-after-connect");
    let run = opened(&node, "local/web", &["--grace", "0s"]);
    hold.reached();
    // Less than a ticket is good for; with the engine's time, more than the deadline.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    hold.release();
    let run = node.wait_for_status(&run, "APPLIED");
    assert_eq!(run["clientDeadline"], "15s");
    assert_eq!(settlement(&run), "a later StartedAt and the engine's reply", "{run:#}");
    world.judge(&node);
}

/// containers/podman#29276, #6128: without `t` in the query one engine takes its own time, and another none.
#[tokio::test(flavor = "multi_thread")]
async fn the_grace_stands_in_the_query_wherever_it_came_from() {
    let cases = [
        ("asked", ContainerSpec::named("asked"), Some("7s"), 7),
        ("none", ContainerSpec::named("none"), Some("0s"), 0),
        ("label", ContainerSpec::named("label").label("relatch.grace", "8s"), None, 8),
        ("own", ContainerSpec { stop_timeout_s: Some(9), ..ContainerSpec::named("own") }, None, 9),
        ("policy", ContainerSpec::named("policy"), None, 10),
    ];
    let world = World::new(cases.iter().map(|(_, spec, _, _)| spec.clone())).await;
    let node = world.node();
    let mut wanted = BTreeSet::new();
    for (name, _, grace, seconds) in &cases {
        let args: Vec<&str> = grace.iter().flat_map(|grace| ["--grace", grace]).collect();
        let run = opened(&node, &format!("local/{name}"), &args);
        node.wait_for_status(&run, "APPLIED");
        wanted.insert(format!("/containers/{}/restart?t={seconds}", world.id(name)));
    }
    let lines = world.engine.log().history().entries.into_iter().filter_map(|entry| match entry.event {
        Event::Request { endpoint: Endpoint::Restart, target, .. } => Some(target),
        _ => None,
    });
    assert_eq!(lines.collect::<BTreeSet<_>>(), wanted);
    world.judge(&node);
}
