//! Authority that is lost, or a process that is told to stop, in the middle of the POST (hyperium/hyper#4017: who
//! drops a request has not taken it back).

use relatch::ledger::Status;
use relatch::sim::{ContainerSpec, End, Ended, Endpoint, Event, History, Hold as EngineHold, Rule};

use crate::leader::Leader;
use crate::support::node::Node;
use crate::world::{World, opened, settlement, unresolved};

/// The engine has the whole request, and works on it for as long as the gate is closed.
fn works_until(gate: &str) -> Rule {
    Rule::on(Endpoint::Restart).hold_effect(EngineHold::Until(gate.to_owned()))
}

/// The process is told to stop, twice, while the engine works: the client's end is no end of the work.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_stopped_in_the_middle_of_the_post_leaves_it_uncertain_until_its_effect_is_seen() {
    let world = World::new([ContainerSpec::named("web").rule(works_until("work"))]).await;
    let (node, id) = (world.node(), world.id("web"));
    let run = opened(&node, "local/web", &[]);
    world.reached("work").await;
    node.stop_at_once();
    let left = |history: &History| {
        let by_client = |entry: &Event| {
            matches!(entry, Event::Exchanged { ended: Ended::ClientClosed, status: None, .. })
        };
        history.entries.iter().any(|entry| by_client(&entry.event))
    };
    world.logged("the client to leave", left).await;
    let node = Node::start(&world.options);
    unresolved(&node, &run, &["exchange-unknown", "started-at-equal"]);
    world.engine.release("work");
    let run = node.wait_for_status(&run, "APPLIED");
    assert_eq!(settlement(&run), "StartedAt only, no response", "{run:#}");
    assert_eq!(run["quarantined"], true, "{run:#}");
    assert_eq!(world.posts(&id), 1);
    world.judge(&node);
}

/// The same when no more than a part of the request was ever read: this side cannot tell.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_stopped_while_its_request_is_read_leaves_it_uncertain() {
    let cut = Rule::on(Endpoint::Restart).cut_request(100, End::Stall);
    let world = World::new([ContainerSpec::named("web").rule(cut)]).await;
    let (node, id) = (world.node(), world.id("web"));
    let run = opened(&node, "local/web", &[]);
    world.logged("a part of the request", |history| !history.cut_requests().is_empty()).await;
    node.stop_at_once();
    let node = Node::start(&world.options);
    unresolved(&node, &run, &["exchange-unknown", "started-at-equal"]);
    world.looked_again(&node, &id).await;
    assert_eq!(world.posts(&id), 0, "it never became whole, and is not sent again");
    world.judge(&node);
}

/// The leader cannot sync its log any more, and leads nothing, while its POST is under way.
#[tokio::test(flavor = "multi_thread")]
async fn authority_that_is_lost_in_the_middle_of_the_post_leaves_it_uncertain_until_its_effect_is_seen() {
    let world =
        World::new([ContainerSpec::named("web").rule(works_until("work")), ContainerSpec::named("other")])
            .await;
    let id = world.id("web");
    let leader = Leader::start(&world).await;
    let run = leader.ask("local/web", "q1").await.expect("it is admitted").run.id;
    world.reached("work").await;

    leader.log.let_syncs_fail();
    let refused = leader.ask("local/other", "q2").await;
    assert!(refused.is_err(), "nothing can be committed: {refused:?}");
    leader.consensus.leadership().wait_for(Option::is_none).await.expect("leadership goes");
    let status = leader.consensus.read(|ledger| ledger.run(&run).map(|run| run.status.clone()));
    assert!(matches!(status, Some(Status::Interlocked { .. })), "nothing is claimed: {status:?}");
    leader.end().await;

    let node = Node::start(&world.options);
    unresolved(&node, run.as_str(), &["exchange-unknown", "started-at-equal"]);
    world.engine.release("work");
    let run = node.wait_for_status(run.as_str(), "APPLIED");
    assert_eq!(settlement(&run), "StartedAt only, no response", "{run:#}");
    assert_eq!(run["quarantined"], true, "{run:#}");
    assert_eq!((world.posts(&id), world.posts(&world.id("other"))), (1, 0));
    world.judge(&node);
}
