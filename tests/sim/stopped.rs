//! What a restart left stopped, and replies that say less than they seem to.

use relatch::sim::{Action, ContainerSpec, Effect, Endpoint, Engine, Rule};

use crate::world::{World, codes, opened, reason, refused, settlement, stuck, unresolved};
use crate::world::{attached, event};

/// moby/moby#47549: the kill outlasts the engine's wait, the engine gives up with a 500, and the process ends
/// later. Nothing starts the container again.
#[tokio::test(flavor = "multi_thread")]
async fn a_500_before_the_exit_is_uncertain_and_later_says_that_the_target_is_down() {
    let world = World::of(Engine::builder().kill_wait_ms(100).container(stuck("web"))).await;
    let (node, id) = (world.node(), world.id("web"));
    let run = opened(&node, "local/web", &["--grace", "0s"]);
    let running = unresolved(&node, &run, &["error-reply", "started-at-equal"]);
    assert!(!codes(&running).contains(&"target-down"), "it still runs: {running:#}");
    world.act("web", Action::Exit { code: 137 });
    let down = unresolved(&node, &run, &["error-reply", "started-at-equal", "target-down"]);
    let said = reason(&down, "error-reply")["detail"].as_str().unwrap();
    assert!(said.contains("500") && said.contains("did not receive an exit event"), "{down:#}");
    assert!(reason(&down, "target-down")["detail"].as_str().unwrap().contains("since"), "{down:#}");

    assert_eq!(attached(&node, "local/web", &[]), run, "it is in the way of every other restart");
    world.looked_again(&node, &id).await;
    assert_eq!(world.posts(&id), 1, "and it is only ever looked at");
    // What would end it ends it.
    world.act("web", Action::Start);
    node.wait_for_status(&run, "APPLIED");
    assert_eq!(world.posts(&id), 1);
    world.judge(&node);
}

/// home-assistant/operating-system#3807, willfarrell/docker-autoheal#1: the container is down when the error
/// comes, be it that the engine gave up or that the start failed.
#[tokio::test(flavor = "multi_thread")]
async fn a_500_after_the_exit_is_uncertain_and_says_that_the_target_is_down() {
    let no_start = "failed to initialize logging driver: dial tcp: lookup logs.example: no such host";
    let gave_up = "Cannot restart container web: tried to kill container, but did not receive an exit event";
    let world = World::new([
        ContainerSpec::named("web")
            .rule(Rule::on(Endpoint::Restart).effect(Effect::StopOnly).status(500, gave_up)),
        ContainerSpec { start_error: Some(no_start.to_owned()), ..ContainerSpec::named("api") },
    ])
    .await;
    let node = world.node();
    for (name, text) in [("web", gave_up), ("api", no_start)] {
        let run = opened(&node, &format!("local/{name}"), &[]);
        let run = unresolved(&node, &run, &["error-reply", "started-at-equal", "target-down"]);
        assert!(reason(&run, "error-reply")["detail"].as_str().unwrap().contains(text), "{run:#}");
        world.looked_again(&node, &world.id(name)).await;
        assert_eq!(world.posts(&world.id(name)), 1, "{name}");
        assert_eq!(world.engine.log().history().starts(&world.id(name)), 0, "nothing starts {name} again");
    }
    world.judge(&node);
}

/// The engine itself looked and refused: over a unix socket nothing can have sent the request twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_404_of_the_engine_itself_is_not_applied_and_stays_charged() {
    let replaced = Action::Replace { id: None, keep_old_as: None, rules: Vec::new() };
    for gone in [Action::Remove, replaced] {
        let world = World::web().await;
        let id = world.id("web");
        let (node, hold) = world.node_held_at("dispatch-before-first-byte");
        let run = opened(&node, "local/web", &[]);
        hold.reached();
        world.act("web", gone.clone());
        hold.release();
        let run = node.wait_for_status(&run, "NOT_APPLIED");
        assert!(settlement(&run).contains("404: No such container"), "{run:#}");
        assert_eq!(world.posts(&id), 1);
        let replaced = matches!(gone, Action::Replace { .. });
        let instead = if replaced {
            format!("another container, {}, answers to the target", world.id("web"))
        } else {
            "none answers to the target".to_owned()
        };
        let id_of_run = run["runId"].as_str().unwrap();
        node.wait_for_run(id_of_run, &instead, |run| settlement(run).contains(&instead));
        if replaced {
            let successor = world.id("web");
            refused(&node, "local/web", "backing-off");
            assert_eq!(world.posts(&successor), 0, "whoever has the name now is left alone");
        }
        world.judge(&node);
    }
}

/// The same number from something in between says nothing; the container is then looked at.
#[tokio::test(flavor = "multi_thread")]
async fn a_404_that_no_engine_wrote_is_uncertain_until_the_engine_says_that_the_container_is_gone() {
    let world = World::web().await;
    let (node, id) = (world.node(), world.id("web"));
    world.script("web", Rule::on(Endpoint::Restart).no_effect().proxy_status(404, "no such container"));
    let run = opened(&node, "local/web", &[]);
    unresolved(&node, &run, &["error-reply", "started-at-equal"]);
    world.act("web", Action::Remove);
    let run = node.wait_for_status(&run, "SUPERSEDED");
    assert_eq!(settlement(&run), "incarnation-removed");
    assert_eq!(run["disposition"], "DISPOSITION_UNCERTAIN", "{run:#}");
    assert_eq!(world.posts(&id), 1);
    world.judge(&node);
}

/// Over TCP a proxy may have sent the request twice: the engine's own 404 proves nothing there.
#[tokio::test(flavor = "multi_thread")]
async fn a_404_over_tcp_is_uncertain_until_the_container_is_seen_to_be_gone() {
    let mut world = World::web().await;
    let address = world.engine.serve_tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
    world.options.docker = format!("tcp://{address}");
    let (node, hold) = world.node_held_at("dispatch-before-first-byte");
    let run = opened(&node, "local/web", &[]);
    hold.reached();
    let id = world.id("web");
    world.act("web", Action::Remove);
    hold.release();
    let run = node.wait_for_status(&run, "SUPERSEDED");
    assert_eq!(settlement(&run), "incarnation-removed");
    let history = run["events"].to_string();
    assert!(history.contains("404") && history.contains("UNRESOLVED"), "{run:#}");
    assert_eq!(world.posts(&id), 1);
    world.judge(&node);
}

/// moby/moby#27267: authorization plugins vote on the answer too, after the work was done.
#[tokio::test(flavor = "multi_thread")]
async fn a_403_is_no_proof_whether_or_not_the_restart_was_done() {
    let denied = "authorization denied by plugin opa: not allowed";
    let denies = || Rule::on(Endpoint::Restart).status(403, denied);
    let world = World::new([
        ContainerSpec::named("done").rule(denies()),
        ContainerSpec::named("not-done").rule(denies().no_effect()),
    ])
    .await;
    let node = world.node();
    let done = opened(&node, "local/done", &[]);
    let run = node.wait_for_status(&done, "APPLIED");
    assert!(event(&run, "EXCHANGED").unwrap()["detail"].as_str().unwrap().contains(denied), "{run:#}");
    let not_done = opened(&node, "local/not-done", &[]);
    let run = unresolved(&node, &not_done, &["error-reply", "started-at-equal"]);
    assert!(reason(&run, "error-reply")["detail"].as_str().unwrap().contains(denied), "{run:#}");
    for name in ["done", "not-done"] {
        assert_eq!(world.posts(&world.id(name)), 1, "{name}");
    }
    world.judge(&node);
}

/// A container that is removed when it ends, and whose start fails: the engine removes it in the middle of the
/// restart, and nothing takes its place.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_the_engine_removed_when_its_start_failed_is_superseded() {
    let start_error = Some("driver failed programming external connectivity".to_owned());
    let web = ContainerSpec { auto_remove: true, start_error, ..ContainerSpec::named("web") };
    let world = World::new([web]).await;
    let (node, id) = (world.node(), world.id("web"));
    let run = opened(&node, "local/web", &[]);
    let run = node.wait_for_status(&run, "SUPERSEDED");
    assert_eq!(settlement(&run), "incarnation-removed");
    assert_eq!(run["disposition"], "DISPOSITION_UNCERTAIN", "{run:#}");
    assert!(run["exchange"].as_str().unwrap().contains("external connectivity"), "{run:#}");
    assert_eq!(world.posts(&id), 1);
    refused(&node, "local/web", "target-not-found");
    world.judge(&node);
}
