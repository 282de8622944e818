//! The same request again, late, through a node that has forgotten nothing.

use relatch::sim::{Action, ContainerSpec, Endpoint, Hold as EngineHold, Rule, Status};
use serde_json::Value;

use crate::support::node::Node;
use crate::world::{World, codes, opened};

fn answer(node: &Node, target: &str, request_id: &str) -> Value {
    node.recover(target, &["--request-id", request_id]).json
}

/// Q attached to R, its answer was lost with the leader, and R is settled by now.
#[tokio::test(flavor = "multi_thread")]
async fn an_attached_request_whose_answer_was_lost_gets_the_stored_answer() {
    let world = World::web().await;
    let (id, gate) = (world.id("web"), "go".to_owned());
    world.script("web", Rule::on(Endpoint::Restart).hold_effect(EngineHold::Until(gate)));
    // The first proposal passes; the second is committed, and its answer goes with the node.
    let options = world.options.clone().failpoints("coordinator-after-propose=1*off->return(kill)");
    let node = Node::start(&options);
    let run = opened(&node, "local/web", &["--request-id", "r"]);
    world.reached("go").await;
    let asking = node.ask("local/web", &["--request-id", "q"]);
    node.killed_by_failpoint();
    drop(asking);
    world.engine.release("go");
    let node = Node::start(&world.options);
    node.wait_for_status(&run, "APPLIED");
    // As new, it would be refused now.
    for _ in 0..2 {
        let stored = answer(&node, "local/web", "q");
        assert_eq!(stored["decision"], "DECISION_ATTACHED", "{stored:#}");
        assert_eq!(stored["repeatedAnswer"], true, "{stored:#}");
        assert_eq!(stored["run"]["runId"], run.as_str(), "{stored:#}");
        assert_eq!(stored["run"]["status"], "RUN_STATUS_APPLIED", "as it is now: {stored:#}");
    }
    assert_eq!(world.posts(&id), 1);
    world.judge(&node);
}

/// A duplicate of a refused request arrives when nothing stands in its way any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_duplicate_of_a_refused_request_is_refused_as_before() {
    let world = World::new([ContainerSpec { status: Status::Paused, ..ContainerSpec::named("web") }]).await;
    let (node, id) = (world.node(), world.id("web"));
    let first = answer(&node, "local/web", "q");
    let missing = answer(&node, "local/later", "m");
    assert_eq!(codes(&first["run"]), ["target-paused"], "{first:#}");
    assert_eq!(codes(&missing["run"]), ["target-not-found"], "{missing:#}");
    world.act("web", Action::Unpause);
    world.engine.add_container(ContainerSpec::named("later")).unwrap();
    let again = |node: &Node| {
        for (target, request_id, before) in [("local/web", "q", &first), ("local/later", "m", &missing)] {
            let now = answer(node, target, request_id);
            assert_eq!(now["decision"], "DECISION_REFUSED", "{now:#}");
            assert_eq!(now["repeatedAnswer"], true, "{now:#}");
            assert_eq!(now["run"]["runId"], before["run"]["runId"], "{now:#}");
            assert_eq!(codes(&now["run"]), codes(&before["run"]), "{now:#}");
        }
    };
    again(&node);
    node.kill();
    let node = Node::start(&world.options);
    again(&node);
    assert_eq!(world.posts(&id), 0);
    // It needs a new id, and with one it is a new request.
    let run = opened(&node, "local/web", &["--request-id", "q2"]);
    node.wait_for_status(&run, "APPLIED");
    again(&node);
    assert_eq!(world.posts(&id), 1);
    world.judge(&node);
}
