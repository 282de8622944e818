//! What is done to a container between the decision and the POST, or instead of it.

use relatch::sim::{
    Action, ContainerSpec, EffectKind, End, Endpoint, Event, Health, Hold as EngineHold, Rule, Status,
};

use crate::support::node::Node;
use crate::world::{World, codes, opened, reason, refused, settlement, unresolved};

/// Where a node can stand between the decision and the first byte.
const STEPS: &[&str] = &[
    "coordinator-after-commit",
    "coordinator-after-recheck",
    "dispatch-after-connect",
    "dispatch-after-intent",
];

/// moby/moby#15853, willfarrell/docker-autoheal#53: unhealthy, and paused, or between two runs of Docker's own
/// policy, or stopped by hand.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_running_container_is_restarted_however_unhealthy_another_is() {
    let states = [
        (Status::Paused, "target-paused"),
        (Status::Restarting, "target-restarting"),
        (Status::Removing, "target-removing"),
        (Status::Exited, "target-not-running"),
        (Status::Dead, "target-not-running"),
        (Status::Created, "target-not-running"),
    ];
    let name = |status: Status| format!("{status:?}").to_lowercase();
    let world = World::new(states.map(|(status, _)| ContainerSpec {
        status,
        health: Health::Unhealthy,
        ..ContainerSpec::named(name(status))
    }))
    .await;
    let node = world.node();
    for (status, code) in states {
        let run = refused(&node, &format!("local/{}", name(status)), code);
        assert!(!reason(&run, code)["endsWhen"].as_str().unwrap().is_empty(), "{run:#}");
        assert_eq!(world.posts(&world.id(&name(status))), 0, "{status:?}");
    }
    world.judge(&node);
}

/// hashicorp/nomad#736, moby/moby#49501: paused, started anew by Docker's own policy, or ended meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn what_happens_to_the_container_before_the_post_is_found_at_every_step_and_nothing_is_sent() {
    let changes = [
        ("paused", Action::Pause),
        ("moved", Action::MoveStartedAt),
        ("ended", Action::Exit { code: 1 }),
        ("gone", Action::Remove),
    ];
    for step in STEPS {
        let world = World::new(changes.clone().map(|(name, _)| ContainerSpec::named(name))).await;
        let (node, hold) = world.node_held_at(step);
        for (at, (name, change)) in changes.iter().enumerate() {
            if at > 0 {
                hold.arm();
            }
            let id = world.id(name);
            let run = opened(&node, &format!("local/{name}"), &[]);
            hold.reached();
            world.act(name, change.clone());
            hold.release();
            let run = node.wait_for_status(&run, "NOT_APPLIED");
            assert_eq!(world.posts(&id), 0, "{step}, {name}: {run:#}");
            let by_the_dispatcher =
                run["journal"].as_str().unwrap().contains("nothing was sent, and nothing will be");
            let never_handed_on = settlement(&run).contains("never handed to the dispatcher");
            // Before the recheck the proposer says so; after it the last look does, which comes after the intent.
            assert_eq!(never_handed_on, *step == STEPS[0], "{step}, {name}: {run:#}");
            assert_eq!(by_the_dispatcher, *step != STEPS[0], "{step}, {name}: {run:#}");
        }
        let undone = |entry: &Event| matches!(entry, Event::Effect { effect: EffectKind::Unpaused, .. });
        let history = world.engine.log().history();
        assert!(!history.entries.iter().any(|entry| undone(&entry.event)), "{step}: a pause was undone");
        // Nothing was sent, so nothing is charged.
        let run = opened(&node, "local/moved", &[]);
        node.wait_for_status(&run, "APPLIED");
        world.judge(&node);
    }
}

/// A pause that comes after the last look: an error proves nothing, and a 204 is no evidence.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_that_slips_through_is_judged_by_started_at_alone() {
    let restart = || Rule::on(Endpoint::Restart);
    let world = World::new([
        ContainerSpec::named("done"),
        ContainerSpec::named("error")
            .rule(restart().no_effect().status(500, "cannot stop a paused container")),
        ContainerSpec::named("claimed").rule(restart().no_effect()),
    ])
    .await;
    let (node, hold) = world.node_held_at("dispatch-before-first-byte");
    let runs = ["done", "error", "claimed"].map(|name| {
        if name != "done" {
            hold.arm();
        }
        let run = opened(&node, &format!("local/{name}"), &[]);
        hold.reached();
        world.act(name, Action::Pause);
        hold.release();
        match name {
            "done" => node.wait_for_status(&run, "APPLIED"),
            "error" => unresolved(&node, &run, &["error-reply", "started-at-equal"]),
            _ => unresolved(&node, &run, &["awaiting-start", "started-at-equal"]),
        }
    });
    assert_eq!(settlement(&runs[0]), "a later StartedAt and the engine's reply");
    for name in ["done", "error", "claimed"] {
        assert_eq!(world.posts(&world.id(name)), 1, "{name}");
    }
    world.judge(&node);
}

/// The link is cut while a proxy holds the POST, and the container restarts by itself: that is applied, of a
/// cause that nobody claims, and the target stays closed since the POST may still land. It does.
#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_a_proxy_holds_keeps_the_target_closed_though_the_container_restarted_by_itself() {
    let world = World::web().await;
    let (node, id) = (world.node(), world.id("web"));
    world.script(
        "web",
        Rule::on(Endpoint::Restart)
            .hold_effect(EngineHold::Until("proxy".to_owned()))
            .early_reply()
            .hold_reply(EngineHold::Until("link".to_owned()))
            .cut(End::Fin),
    );
    let run = opened(&node, "local/web", &[]);
    world.reached("link").await;
    world.act("web", Action::MoveStartedAt);
    let by_itself = world.started_at("web");
    world.engine.release("link");
    let applied = node.wait_for_status(&run, "APPLIED");
    assert_eq!(settlement(&applied), "StartedAt only, no response", "{applied:#}");
    assert_eq!(applied["quarantined"], true, "{applied:#}");
    refused(&node, "local/web", "quarantined");

    world.engine.release("proxy");
    world.logged("the POST to land", |history| history.starts(&id) == 2).await;
    assert_ne!(world.started_at("web"), by_itself);
    // Neither that, nor a new leader, opens the target.
    let again = refused(&node, "local/web", "quarantined");
    assert!(reason(&again, "quarantined")["endsIn"].is_string(), "until when: {again:#}");
    node.kill();
    let node = Node::start(&world.options);
    refused(&node, "local/web", "quarantined");
    let later = node.run(&run);
    assert_eq!(later["observed"], applied["observed"], "what was observed stands");
    assert!(codes(&later).contains(&"quarantined"), "{later:#}");
    assert_eq!(world.posts(&id), 1);
    world.judge(&node);
}

/// A request that is only for an unhealthy container looks at the health check, and goes by it alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_only_for_the_unhealthy_restarts_nothing_else() {
    let world = World::new([
        ContainerSpec::named("well").health(Health::Healthy),
        ContainerSpec::named("unknown"),
        ContainerSpec::named("stuck").health(Health::Saturated),
    ])
    .await;
    let node = world.node();
    for name in ["well", "unknown"] {
        let answer = node.recover(&format!("local/{name}"), &["--if-unhealthy"]);
        assert_eq!(answer.exit, 3, "{answer:#?}");
        assert_eq!(codes(answer.run()), ["target-not-unhealthy"], "{answer:#?}");
    }
    let run = opened(&node, "local/stuck", &["--if-unhealthy"]);
    let run = node.wait_for_status(&run, "APPLIED");
    assert_eq!(run["ifUnhealthy"], true, "{run:#}");
    world.judge(&node);
}
