//! What hangs or dies without a word, and what goes on beside it.

use relatch::sim::{Action, ContainerSpec, Delivery, End, Endpoint, Engine, Hold as EngineHold, Rule};

use crate::support::node::Node;
use crate::world::{World, opened, refused, settlement, unresolved};

fn hangs() -> Rule {
    Rule::on(Endpoint::Inspect).forever().never_answer()
}

/// The node gets no reply, once it is let go on, though the restart was done or not as the rule says.
fn reply_is_cut_at(gate: &str) -> Rule {
    Rule::on(Endpoint::Restart).hold_reply(EngineHold::Until(gate.to_owned())).cut(End::Fin)
}

/// moby/moby#33870: one stuck container makes its own inspect hang, and no other.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_whose_inspect_hangs_is_refused_and_the_others_are_restarted() {
    let world = World::new([ContainerSpec::named("web").rule(hangs()), ContainerSpec::named("api")]).await;
    let node = world.node();
    let asking = node.ask("local/web", &["--request-id", "q1"]);
    world
        .logged("the inspect", |history| !history.requests(&world.id("web"), Endpoint::Inspect).is_empty())
        .await;
    let api = opened(&node, "local/api", &[]);
    node.wait_for_status(&api, "APPLIED");
    drop(asking);
    refused(&node, "local/web", "baseline-unreadable");
    assert_eq!(world.posts(&world.id("web")), 0);
    world.judge(&node);
}

/// It begins to hang after the baseline was read: at the recheck, or at the last look before the first byte.
#[tokio::test(flavor = "multi_thread")]
async fn an_inspect_that_hangs_between_the_decision_and_the_post_sends_nothing() {
    let looks = [("recheck", 1), ("last-look", 2)];
    let world =
        World::new(looks.map(|(name, before)| ContainerSpec::named(name).rule(hangs().skip(before)))).await;
    let node = world.node();
    for (name, _) in looks {
        let run = opened(&node, &format!("local/{name}"), &[]);
        let run = node.wait_for_status(&run, "NOT_APPLIED");
        assert!(settlement(&run).contains("no whole answer within"), "{run:#}");
        assert_eq!(world.posts(&world.id(name)), 0, "{name}");
    }
    world.judge(&node);
}

/// moby/moby#18848, docker/for-linux#397: it hangs after the answer was lost.
#[tokio::test(flavor = "multi_thread")]
async fn an_inspect_that_hangs_after_a_lost_reply_is_uncertain_and_stops_nothing_else() {
    let world = World::new(["web", "api", "db"].map(ContainerSpec::named)).await;
    let (node, id) = (world.node(), world.id("web"));
    world.script("web", reply_is_cut_at("cut").no_effect());
    let web = opened(&node, "local/web", &[]);
    world.reached("cut").await;
    world.script("web", hangs());
    world.engine.release("cut");
    unresolved(&node, &web, &["reply-lost", "engine-unreadable"]);
    let api = opened(&node, "local/api", &[]);
    node.wait_for_status(&api, "APPLIED");
    // Nor does it stop a new leader, which looks at every open run before it admits anything.
    node.kill();
    let node = Node::start(&world.options);
    let db = opened(&node, "local/db", &[]);
    node.wait_for_status(&db, "APPLIED");
    unresolved(&node, &web, &["reply-lost", "engine-unreadable"]);
    assert_eq!(world.posts(&id), 1);
    // A look that took too long was never read as "unchanged" or "not running": what it shows at last counts.
    world.engine.clear_script(Some("web")).unwrap();
    unresolved(&node, &web, &["reply-lost", "started-at-equal"]);
    world.judge(&node);
}

/// docker-archive/classicswarm#2237, luc-ass/docker-telegram-notifier#142: the stream of events dies without a
/// word, or says nothing any more.
#[tokio::test(flavor = "multi_thread")]
async fn what_no_event_tells_is_found_by_looking() {
    for end in [End::Fin, End::Stall] {
        let silent = Rule::on(Endpoint::Events).forever().delivery(Delivery::HalfBody { end });
        let web = ContainerSpec::named("web").rule(Rule::on(Endpoint::Restart).no_effect().cut(End::Fin));
        let world = World::of(Engine::builder().container(web).rule(silent)).await;
        let (node, id) = (world.node(), world.id("web"));
        let run = opened(&node, "local/web", &[]);
        unresolved(&node, &run, &["reply-lost", "started-at-equal"]);
        world.engine.act(None, Action::CutEventStreams).unwrap();
        world.act("web", Action::MoveStartedAt);
        let run = node.wait_for_status(&run, "APPLIED");
        assert_eq!(settlement(&run), "StartedAt only, no response", "{run:#}");
        assert_eq!(world.posts(&id), 1, "{end:?}");
        world.judge(&node);
    }
}
