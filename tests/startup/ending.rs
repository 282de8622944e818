//! Ctrl-C.

use relatch::sim::{ContainerSpec, Endpoint, Engine, Hold, Rule};

use crate::World;
use crate::support::node::{Node, wait_for};

/// An engine that restarts `web` at once, and answers only when the gate `answer` is released.
async fn world_that_answers_when_told() -> World {
    let hold = Rule { hold_reply: Some(Hold::Until("answer".to_owned())), ..Rule::on(Endpoint::Restart) };
    let web = ContainerSpec::named("web").rule(hold);
    World::serving(Engine::builder().container(web).build().unwrap()).await
}

/// Asks for a restart, and returns once its request is at the engine.
async fn under_way(world: &World) -> (Node, String) {
    let node = Node::start(&world.options);
    let run = node.recover("local/web", &["--grace", "1s"]).run_id();
    let id = world.engine.container_id("web").unwrap();
    world.engine.log().wait_until(|history| !history.posts(&id).is_empty()).await;
    (node, run)
}

/// Waits until the node takes no more requests, which shows that it was told to end.
fn stops_admitting(node: &Node) {
    let answer = wait_for("the node to stop admitting", || {
        let answer = node.recover("local/web", &["--retry-for", "1ms"]);
        if answer.exit == 0 { Err(format!("{answer:?}")) } else { Ok(answer) }
    });
    assert!(answer.stderr.contains("this node is ending"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_waits_for_the_answer_of_a_restart_and_loses_nothing() {
    let world = world_that_answers_when_told().await;
    let (mut node, run) = under_way(&world).await;
    node.interrupt();
    stops_admitting(&node);
    assert!(node.runs_still(), "it ended before the answer came");
    world.engine.release("answer");
    node.ended();

    let node = Node::start(&world.options);
    let run = node.wait_for_status(&run, "APPLIED");
    assert_eq!(run["quarantined"], false, "the answer was kept: {run:#}");
    assert_eq!(world.posts(), 1, "{run:#}");
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_ctrl_c_ends_it_at_once_and_the_run_is_still_there() {
    let world = world_that_answers_when_told().await;
    let (node, run) = under_way(&world).await;
    node.interrupt();
    stops_admitting(&node);
    node.interrupt();
    // The answer is never given.
    node.ended();

    let node = Node::start(&world.options);
    let run = node.wait_for_status(&run, "APPLIED");
    assert_eq!(run["quarantined"], true, "nobody knows whether the request is over: {run:#}");
    assert_eq!(world.posts(), 1, "{run:#}");
    node.stop();
}

/// The container never came back: nothing settles the run, and nothing is sent again.
#[tokio::test(flavor = "multi_thread")]
async fn an_interlock_that_was_open_at_the_end_is_open_after_the_next_start() {
    let rule = Rule {
        hold_effect: Some(Hold::Until("effect".to_owned())),
        hold_reply: Some(Hold::Until("answer".to_owned())),
        ..Rule::on(Endpoint::Restart)
    };
    let web = ContainerSpec::named("web").rule(rule);
    let world = World::serving(Engine::builder().container(web).build().unwrap()).await;
    let (node, run) = under_way(&world).await;
    node.interrupt();
    stops_admitting(&node);
    node.interrupt();
    node.ended();

    let node = Node::start(&world.options);
    let seen = node.wait_for_run(&run, "the replay to look", |run| {
        run["status"] == "RUN_STATUS_UNRESOLVED" && run["reasons"].to_string().contains("started-at-equal")
    });
    let again = node.recover("local/web", &[]);
    assert_eq!(again.json["decision"], "DECISION_ATTACHED", "{seen:#}\n{again:?}");
    world.engine.release("effect");
    world.engine.release("answer");
    node.wait_for_status(&run, "APPLIED");
    assert_eq!(world.posts(), 1);
    node.stop();
}
