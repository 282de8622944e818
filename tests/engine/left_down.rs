//! A restart that stopped a real container and could not start it again.

use crate::support::dockerd::RunOptions;
use crate::support::node::{Node, NodeOptions, wait_for};
use crate::support::proxy::OnRestart;
use crate::world::{Source, World, approve, codes, left_down, set_limits};

/// A container whose next restart leaves it down, until its source is mended.
fn world(on_restart: OnRestart) -> (World, Source) {
    let source = Source::new();
    let world = World::new(source.container(), on_restart);
    source.remove();
    (world, source)
}

/// What the engine's own log has of it: restarts, and starts that are not the `docker` command's.
fn requests(world: &World) -> (usize, usize) {
    (world.docker.posts(&world.id), world.docker.starts(&world.id))
}

/// The least deadline that an interlock or a start can have, since one of these tests waits for it.
const SOON: &[&str] = &["margin_ms=15s", "connect_ms=1s", "dispatch_by_ms=2s"];

#[test]
fn what_a_restart_left_down_is_started_once_by_approval() {
    let (world, source) = world(OnRestart::Pass);
    // The first request to end is the restart, the second the start: what that did is seen before its reply is known.
    let (replied, options) = world.hold_at("dispatch-before-journal-end");
    let second = format!("dispatch-before-journal-end=1*off->{}", replied.action());
    let node = Node::start(&options.failpoints(&second));
    let run = node.recover(&world.target(), &[]).run_id();
    let down = left_down(&node, &run);
    assert_eq!(codes(&down), ["error-reply", "started-at-equal", "target-down"], "{down:#}");
    let finished_at = &world.docker.inspect(&world.id)["State"]["FinishedAt"];
    let detail = down["reasons"][2]["detail"].as_str().unwrap();
    let seconds = finished_at.as_str().unwrap().split('.').next().unwrap();
    assert!(detail.starts_with(&format!("target down since {seconds}")), "{detail}, and not {finished_at}");
    assert!(down["exchange"].as_str().unwrap().contains("no such file or directory"), "{down:#}");

    let second = node.recover(&world.target(), &[]);
    assert_eq!((second.exit, second.run_id()), (0, run.clone()), "{second:?}");
    assert_eq!(second.json["decision"], "DECISION_ATTACHED", "{second:?}");
    source.mend();
    assert_eq!(requests(&world), (1, 0), "nothing is started without approval: {}", world.docker.log_tail());

    let started = approve(&node, &run, &["--wait=applied"]);
    assert_eq!(started.exit, 0, "{started:?}");
    replied.reached();
    let applied = started.run();
    assert_eq!(applied["status"], "RUN_STATUS_APPLIED", "{applied:#}");
    assert!(applied["evidence"] == "by-follow-up-start", "{applied:#}");
    assert_eq!(applied["quarantined"], true, "the start's reply is still to come: {applied:#}");
    replied.release();
    node.wait_for_run(&run, "the start's reply", |run| run["quarantined"] == false);
    assert_eq!(world.docker.inspect(&world.id)["State"]["Running"], true);

    let again = approve(&node, &run, &[]);
    assert_eq!((again.exit, codes(&again.json)), (3, vec!["run-settled".to_owned()]), "{again:?}");
    assert_eq!(requests(&world), (1, 1), "{}", world.docker.log_tail());
}

/// The reply to the restart was lost. So its own start may still come, until its deadline has passed.
#[test]
fn a_start_waits_for_the_restart_that_may_be_under_way_and_one_that_fails_is_spent() {
    let (world, source) = world(OnRestart::CutReply);
    let node = world.node();
    set_limits(&node, SOON);
    let run = node.recover(&world.target(), &["--grace", "0s"]).run_id();
    left_down(&node, &run);
    let early = approve(&node, &run, &[]);
    // A busy engine may be too slow for the look as well; then that is said beside it.
    assert_eq!((early.exit, codes(&early.json)[0].as_str()), (3, "restart-under-way"), "{early:?}");
    assert!(!early.json["reasons"][0]["endsIn"].is_null(), "it says when it ends: {early:?}");
    assert_eq!(requests(&world), (1, 0), "{}", world.docker.log_tail());

    // Nothing but time opens it: the container is still broken.
    world.proxy.on_restart(OnRestart::Pass);
    let failed = wait_for("the restart's deadline to pass", || {
        let answer = approve(&node, &run, &[]);
        if answer.exit == 0 { Ok(answer) } else { Err(format!("{answer:?}")) }
    });
    let start = failed.json["startId"].as_str().expect("a start's id");
    let spent = node.wait_for_run(&run, "the start to be answered", |run| {
        run["starts"][0]["exchange"].as_str().is_some_and(|exchange| !exchange.is_empty())
    });
    assert_eq!(spent["starts"][0]["startId"], start, "{spent:#}");
    assert!(spent["starts"][0]["exchange"].as_str().unwrap().contains("does not exist"), "{spent:#}");
    assert_eq!(spent["starts"][0]["outstanding"], false, "{spent:#}");
    assert!(codes(&spent).contains(&"target-down".to_owned()), "{spent:#}");
    assert!(!codes(&spent).contains(&"start-awaited".to_owned()), "{spent:#}");
    let repeated = approve(&node, &run, &["--start-id", start]);
    assert_eq!(repeated.json["repeatedAnswer"], true, "{repeated:?}");
    assert_eq!(requests(&world), (1, 1), "{}", world.docker.log_tail());

    // Somebody mends it and starts it by hand.
    source.mend();
    world.docker.docker(&["start", &world.name]);
    let by_hand = approve(&node, &run, &[]);
    assert_eq!(by_hand.exit, 3, "{by_hand:?}");
    let code = &codes(&by_hand.json)[0];
    assert!(["incarnation-changed", "run-settled"].contains(&code.as_str()), "{by_hand:?}");
    let applied = node.wait_for_status(&run, "APPLIED");
    assert_ne!(applied["evidence"], "by-follow-up-start", "the engine had refused that start: {applied:#}");
    assert_eq!(requests(&world), (1, 1), "{}", world.docker.log_tail());
}

/// The node that sent the start dies before the first byte. Whoever comes next knows only of the intent.
#[test]
fn a_start_that_may_be_on_its_way_is_not_followed_by_another_until_its_time_is_over() {
    let (world, source) = world(OnRestart::Pass);
    // The first request of this node is the restart, the second the start.
    let killed: NodeOptions =
        world.options.clone().failpoints("dispatch-before-first-byte=1*off->return(kill)");
    let node = Node::start(&killed);
    set_limits(&node, SOON);
    let run = node.recover(&world.target(), &["--grace", "0s"]).run_id();
    left_down(&node, &run);
    source.mend();
    let start = "5".repeat(32);
    let _lost = approve(&node, &run, &["--start-id", &start, "--retry-for", "0s"]);
    node.killed_by_failpoint();

    let node = Node::start(&killed.plain());
    let awaited =
        node.wait_for_run(&run, "start-awaited", |run| codes(run).contains(&"start-awaited".to_owned()));
    assert_eq!(awaited["starts"][0]["startId"], start.as_str(), "{awaited:#}");
    assert_eq!(awaited["starts"][0]["outstanding"], true, "{awaited:#}");
    let second = approve(&node, &run, &[]);
    assert_eq!((second.exit, codes(&second.json)), (3, vec!["start-outstanding".to_owned()]), "{second:?}");
    assert_eq!(requests(&world), (1, 0), "{}", world.docker.log_tail());

    let opened = wait_for("the start's deadline to pass", || {
        let answer = approve(&node, &run, &["--wait=applied"]);
        if answer.exit == 0 { Ok(answer) } else { Err(format!("{answer:?}")) }
    });
    let applied = opened.run();
    assert!(applied["evidence"] == "by-follow-up-start", "{applied:#}");
    assert_eq!(applied["starts"][0]["outstanding"], false, "{applied:#}");
    assert_eq!(requests(&world), (1, 1), "{}", world.docker.log_tail());
}

#[test]
fn what_runs_is_not_started() {
    let world = World::new(RunOptions::default(), OnRestart::Pass);
    let options = world.options.clone().failpoints("dispatch-before-first-byte=return(kill)");
    let node = Node::start(&options);
    let _asking = node.ask(&world.target(), &["--request-id", "q1"]);
    node.killed_by_failpoint();
    let node = Node::start(&options.plain());
    let run = node.recover(&world.target(), &["--request-id", "q1"]).run_id();
    node.wait_for_run(&run, "a look", |run| codes(run).contains(&"started-at-equal".to_owned()));
    let answer = approve(&node, &run, &[]);
    assert_eq!(answer.exit, 3, "{answer:?}");
    assert_eq!(codes(&answer.json), ["restart-under-way", "target-not-down"], "{answer:?}");
    assert_eq!(requests(&world), (0, 0), "{}", world.docker.log_tail());
    assert_eq!(world.docker.started_at(&world.id), world.started_at);
}
