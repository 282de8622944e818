//! The gaps between decided, checked and sent: who dies or sleeps there sends nothing late.

use std::time::{Duration, Instant};

use relatch::model::{JournalWord, Term};
use relatch::sim::{Action, ContainerSpec, Endpoint, Hold as EngineHold, Rule};

use crate::leader::Leader;
use crate::support::node::{Node, wait_for};
use crate::world::{World, codes, event, opened, settlement};

/// Kills the node at the failpoint, for the request `q`.
fn killed_at(world: &World, failpoint: &str) {
    let options = world.options.clone().failpoints(&format!("{failpoint}=return(kill)"));
    let node = Node::start(&options);
    let asking = node.ask("local/web", &["--request-id", "q"]);
    node.killed_by_failpoint();
    drop(asking);
}

/// Waits until a ticket of then, or of before, is good no more.
fn ticket_expires(since: Instant) {
    wait_for("the ticket's time to pass", || {
        let passed = since.elapsed();
        if passed > Duration::from_secs(5) { Ok(()) } else { Err(format!("{passed:?}")) }
    });
}

/// The leader dies between commit and connect, and the container's own policy restarts it: the journal says
/// that this was not our doing.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_restarted_by_itself_is_not_applied_if_the_journal_knows_of_no_intent() {
    for step in ["coordinator-after-commit", "coordinator-after-recheck", "dispatch-after-connect"] {
        let world = World::web().await;
        killed_at(&world, step);
        world.act("web", Action::MoveStartedAt);
        let node = Node::start(&world.options);
        let run = opened(&node, "local/web", &["--request-id", "q"]);
        let run = node.wait_for_status(&run, "NOT_APPLIED");
        assert!(settlement(&run).contains("the journal has no intent"), "{step}: {run:#}");
        assert_eq!(world.posts(&world.id("web")), 0, "{step}");
        // The target is free, and nothing is charged.
        let run = opened(&node, "local/web", &[]);
        node.wait_for_status(&run, "APPLIED");
        world.judge(&node);
    }
}

/// The same while the journal cannot be asked: `StartedAt` is judged, and nobody claims the cause. The journal's
/// later word is set beside that.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_restarted_by_itself_is_applied_of_unknown_cause_while_the_journal_is_unreachable() {
    let world = World::web().await;
    killed_at(&world, "dispatch-before-connect");
    world.act("web", Action::MoveStartedAt);
    let (node, hold) = world.node_held_at("journal-before-write");
    let run = opened(&node, "local/web", &["--request-id", "q"]);
    let applied = node.wait_for_status(&run, "APPLIED");
    assert_eq!(settlement(&applied), "StartedAt only, journal unreachable: attribution unknown");
    assert_eq!(applied["quarantined"], true, "{applied:#}");
    assert_eq!(codes(&applied), ["quarantined"], "{applied:#}");
    hold.release();
    let free = node.wait_for_run(&run, "the journal's word", |run| run["quarantined"] == false);
    assert!(free["journal"].as_str().unwrap().contains("no intent"), "{free:#}");
    assert_eq!(settlement(&free), settlement(&applied), "what was settled stands");
    assert!(event(&free, "QUARANTINE_ENDED").is_some(), "{free:#}");
    assert_eq!(world.posts(&world.id("web")), 0);
    world.judge(&node);
}

/// The log's disk hangs until the proposal was given up, and then it commits in the same term after all.
#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_that_was_given_up_and_commits_later_is_settled_unsent_and_the_target_is_free() {
    let world = World::new(["other", "web"].map(ContainerSpec::named)).await;
    world.hold("raft_append_synced").release();
    let (node, hold) = world.node_held_at("raft_append_synced");
    let other = opened(&node, "local/other", &[]);
    let term = node.wait_for_status(&other, "APPLIED")["term"].clone();
    hold.arm();
    let given_up = node.recover("local/web", &["--request-id", "q", "--retry-for", "0s"]);
    assert_eq!(given_up.exit, 1, "{given_up:#?}");
    assert!(given_up.stderr.contains("not known whether"), "{given_up:#?}");
    hold.release();
    let run = opened(&node, "local/web", &["--request-id", "q"]);
    let run = node.wait_for_status(&run, "NOT_APPLIED");
    assert_eq!(run["term"], term, "no other leader: {run:#}");
    assert!(settlement(&run).contains("the journal has no intent, and the run is revoked"), "{run:#}");
    assert_eq!(world.posts(&world.id("web")), 0);
    let run = opened(&node, "local/web", &[]);
    node.wait_for_status(&run, "APPLIED");
    assert_eq!(world.posts(&world.id("web")), 1);
    world.judge(&node);
}

/// The intent is on disk, and then the order is refused: `not-sent` is on disk too before anybody is told. So a
/// leader that dies before it is told leaves no doubt.
#[tokio::test(flavor = "multi_thread")]
async fn an_intent_that_was_refused_is_proven_unsent_by_the_journal_alone() {
    let mut held = Vec::new();
    for (why, moved) in [("started again meanwhile", true), ("the container was looked at", false)] {
        let world = World::web().await;
        let hold = world.hold("intent");
        let failpoints =
            format!("dispatch-after-intent={};dispatch-after-journal-end=return(kill)", hold.action());
        let node = Node::start(&world.options.clone().failpoints(&failpoints));
        let run = opened(&node, "local/web", &[]);
        hold.reached();
        held.push((why, moved, world, hold, node, run, Instant::now()));
    }
    for (why, moved, world, hold, node, run, since) in held {
        if moved {
            world.act("web", Action::MoveStartedAt);
        } else {
            ticket_expires(since);
        }
        hold.release();
        node.killed_by_failpoint();
        let node = Node::start(&world.options);
        let run = node.wait_for_status(&run, "NOT_APPLIED");
        let journal = run["journal"].as_str().unwrap();
        assert!(journal.contains("nothing was sent, and nothing will be"), "{run:#}");
        assert!(settlement(&run).contains(why), "{run:#}");
        assert_eq!(world.posts(&world.id("web")), 0);
        let run = opened(&node, "local/web", &[]);
        node.wait_for_status(&run, "APPLIED");
        world.judge(&node);
    }
}

/// A new leader raises the term, or revokes the run, between the intent and the first byte.
#[tokio::test(flavor = "multi_thread")]
async fn an_intent_that_a_higher_term_or_a_revocation_overtakes_is_refused_at_the_gate() {
    for (revoked, why) in [(false, "term 99 was accepted"), (true, "the run was revoked")] {
        let last_look = Rule::on(Endpoint::Inspect).skip(2).hold_reply(EngineHold::Until("look".to_owned()));
        let world = World::new([ContainerSpec::named("web").rule(last_look)]).await;
        let leader = Leader::start(&world).await;
        let run = leader.ask("local/web", "q").await.expect("it is admitted").run;
        world.reached("look").await;
        assert_eq!(leader.dispatcher.known(&run.id).expect("an intent").word, JournalWord::Intent);
        if revoked {
            let (baseline, interlock) =
                (run.baseline.expect("a baseline"), run.interlock.expect("an interlock"));
            let container_id = &baseline.incarnation.container_id;
            leader.dispatcher.revoke(&run.id, &interlock.fence, container_id).await.expect("a journal");
        } else {
            leader.dispatcher.raise_term(Term(99)).await.expect("a journal");
        }
        world.engine.release("look");
        let settled = leader.wait_for_run(&run.id, "a settlement", |run| !run.is_open()).await;
        assert_eq!(settled.status.word(), "NOT_APPLIED", "{settled:#?}");
        assert!(format!("{:?}", settled.status).contains(why), "{settled:#?}");
        assert_eq!(leader.dispatcher.known(&run.id).expect("an end").word, JournalWord::NotSent);
        assert_eq!(world.posts(&world.id("web")), 0);
        leader.end().await;
    }
}

/// A machine that sleeps between the look and the first byte, wherever: what it knows is too old by then.
#[tokio::test(flavor = "multi_thread")]
async fn who_sleeps_between_look_and_send_longer_than_a_ticket_is_good_sends_nothing() {
    let steps = [
        "coordinator-after-recheck",
        "dispatch-before-connect",
        "dispatch-after-connect",
        "dispatch-after-intent",
    ];
    let mut asleep = Vec::new();
    for step in steps {
        let world = World::web().await;
        let (node, hold) = world.node_held_at(step);
        let run = opened(&node, "local/web", &[]);
        hold.reached();
        asleep.push((step, world, node, hold, run, Instant::now()));
    }
    for (step, world, node, hold, run, since) in asleep {
        ticket_expires(since);
        hold.release();
        let run = node.wait_for_status(&run, "NOT_APPLIED");
        // Whoever slept before the authority check may find that it is too late to send at all.
        let too_old = settlement(&run).contains("the container was looked at")
            || (step == steps[0] && settlement(&run).contains("the time to send it in was over"));
        assert!(too_old, "{step}: {run:#}");
        assert_eq!(world.posts(&world.id("web")), 0, "{step}");
        let run = opened(&node, "local/web", &[]);
        node.wait_for_status(&run, "APPLIED");
        world.judge(&node);
    }
}
