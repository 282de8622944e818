//! An engine that refuses the version of the API.

use relatch::sim::{Action, ContainerSpec, Endpoint, Engine, EngineSpec, Identity, Reply, Rule};

use crate::support::node::wait_for;
use crate::world::{World, opened, reason, refused, settlement};

fn version_refused(on: Endpoint) -> Rule {
    Rule::on(on).no_effect().reply(Reply::VersionRefused { minimum: "1.60".to_owned() })
}

/// containrrr/watchtower#2126: the engine's floor was raised above what the client speaks.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_refuses_every_version_gives_one_clear_error_and_the_node_stays_up() {
    let floor = Identity {
        api_version: "1.61".to_owned(),
        min_api_version: "1.60".to_owned(),
        ..Identity::default()
    };
    let spec = EngineSpec { engine: floor, ..EngineSpec::default() };
    for engine in [
        Engine::builder().spec(spec.clone()),
        Engine::builder().rule(version_refused(Endpoint::Any).forever()),
    ] {
        let world = World::of(engine.container(ContainerSpec::named("web"))).await;
        let node = world.node();
        wait_for("one clear error", || {
            let answer = node.recover("local/web", &["--retry-for", "0s"]);
            assert_eq!(answer.exit, 1, "{answer:#?}");
            if answer.stderr.contains("is too old") { Ok(()) } else { Err(answer.stderr) }
        });
        assert_eq!(node.runs().len(), 0, "nothing was decided");
        assert_eq!(world.posts(&world.id("web")), 0);
        node.stop();
    }
}

/// The engine was updated while the node runs: no attempt is spent on it, and it is used again when it answers.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_whose_floor_rises_is_refused_without_an_interlock_and_spends_no_attempt() {
    let world = World::web().await;
    let (node, id) = (world.node(), world.id("web"));
    refused(&node, "local/no-such-container", "target-not-found");
    world.engine.script_engine([version_refused(Endpoint::Any).forever()]);
    for _ in 0..5 {
        let run = refused(&node, "local/web", "baseline-unreadable");
        let said = reason(&run, "baseline-unreadable")["detail"].as_str().unwrap();
        assert!(said.contains("400") && said.contains("is too old"), "{run:#}");
    }
    assert_eq!(world.posts(&id), 0);
    world.engine.clear_script(None).unwrap();
    let run = opened(&node, "local/web", &[]);
    node.wait_for_status(&run, "APPLIED");
    world.judge(&node);
}

/// nicholas-fedor/watchtower#87: refused from the POST on. The check comes before the handler, so this error
/// proves that nothing was done.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_refused_at_the_post_is_not_applied_and_is_not_tried_again() {
    let world = World::web().await;
    let (node, id) = (world.node(), world.id("web"));
    let refuses = Action::AddRules { rules: vec![version_refused(Endpoint::Restart).forever()] };
    world.act("web", refuses);
    let before = world.started_at("web");
    let run = opened(&node, "local/web", &[]);
    let run = node.wait_for_status(&run, "NOT_APPLIED");
    assert!(settlement(&run).contains("400") && settlement(&run).contains("is too old"), "{run:#}");
    // It stays charged: whoever asks at each tick does not reach the engine at each tick.
    for _ in 0..3 {
        refused(&node, "local/web", "backing-off");
    }
    assert_eq!(world.posts(&id), 1);
    assert_eq!(world.started_at("web"), before);
    world.judge(&node);
}
