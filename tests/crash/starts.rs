//! The node is killed at every step of an approved start.

use relatch::sim::{ContainerSpec, Effect, Endpoint, Rule};
use serde_json::Value;

use crate::World;
use crate::support::node::{Hold, Node, wait_for};
use crate::support::pending::Pending;

/// Every failpoint of a start, and the starts that may have arrived once the node is dead. Those that a restart
/// passes as well are let go by once.
const STEPS: &[(&str, &str, usize)] = &[
    ("coordinator-after-approve", "", 1),
    ("coordinator-after-approval", "", 0),
    ("coordinator-after-recheck", "1*off->", 0),
    ("dispatch-before-connect", "1*off->", 0),
    ("dispatch-after-connect", "1*off->", 0),
    ("dispatch-after-intent", "1*off->", 0),
    ("dispatch-before-first-byte", "1*off->", 0),
    ("dispatch-after-first-byte", "1*off->", 1),
    ("dispatch-before-journal-end", "1*off->", 1),
    ("dispatch-after-journal-end", "1*off->", 1),
];

const START: &str = "abababababababababababababababab";

/// A container that a restart stops and never starts again; the engine says so with a 500.
fn left_down() -> ContainerSpec {
    let gave_up = "Cannot restart container: did not receive an exit event";
    ContainerSpec::named("web")
        .rule(Rule::on(Endpoint::Restart).effect(Effect::StopOnly).status(500, gave_up))
}

fn starts(world: &World) -> usize {
    world.engine.log().history().requests(&world.id(), Endpoint::Start).len()
}

fn approval(run: &str) -> [&str; 8] {
    ["approve-start", run, "--by", "kim", "--reason", "it is needed", "--start-id", START]
}

/// Begins to wait for the run to be left down.
fn down(node: &Node) -> String {
    let run = node.recover("local/web", &["--grace", "1s"]).run_id();
    node.wait_for_run(&run, "target-down", |run| run["reasons"].to_string().contains("target-down"));
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_step_of_a_start_there_is_never_a_second_one_and_never_a_restart() {
    for (failpoint, first, most) in STEPS {
        let world = World::of([left_down()]).await;
        let options = world.options.clone().failpoints(&format!("{failpoint}={first}return(kill)"));
        let node = Node::start(&options);
        let run = down(&node);
        let _asking = Pending::begin(&node, &approval(&run));
        node.killed_by_failpoint();
        let node = Node::start(&options.plain());
        // What it says of the start comes from the journal alone, before anything is seen.
        let told = node.wait_for_run(&run, failpoint, |run| {
            let start = &run["starts"][0];
            start["journal"] != "" || start["exchange"] != ""
        });
        assert!(starts(&world) <= *most, "{failpoint}: {} starts\n{told:#}", starts(&world));
        let again = node.cli(&approval(&run));
        assert_eq!(again.json["repeatedAnswer"], true, "{failpoint}: {again:?}");
        let begun = node.wait_for_run(&run, "the start's effect, if it was sent", |run| {
            (starts(&world) == 0) != (run["status"] == "RUN_STATUS_APPLIED")
        });
        let sent = starts(&world);
        assert!(sent <= *most, "{failpoint}: {sent} starts\n{begun:#}");
        let start = &begun["starts"][0];
        if sent == 1 {
            assert!(settled_by_start(&begun), "{failpoint}: {begun:#}");
        } else if start["journal"].as_str().unwrap_or("").contains("no intent") {
            // It is known that nothing left: the next may be approved at once.
            let next = node.cli(&["approve-start", &run, "--by", "kim", "--reason", "once more"]);
            assert_eq!(next.json["decision"], "DECISION_OPENED", "{failpoint}: {next:?}");
            node.wait_for_status(&run, "APPLIED");
            assert_eq!(starts(&world), 1, "{failpoint}");
        } else {
            assert_eq!(start["outstanding"], true, "{failpoint}: {begun:#}");
            let next = node.cli(&["approve-start", &run, "--by", "kim", "--reason", "once more"]);
            assert_eq!(next.exit, 3, "{failpoint}: {next:?}");
            assert!(next.json.to_string().contains("start-outstanding"), "{failpoint}: {next:?}");
        }
        assert_eq!(world.posts(), 1, "{failpoint}: a start never restarts");
        println!("{failpoint:32} {:24} starts {sent}", begun["status"].as_str().unwrap_or(""));
        node.stop();
        world.engine.shutdown().await.unwrap();
    }
}

fn settled_by_start(run: &Value) -> bool {
    run["evidence"] == "by-follow-up-start"
}

/// An operator ends the run while its start is about to be sent: it is not sent any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_resolved_takes_back_the_start_that_was_not_sent_yet() {
    let world = World::of([left_down()]).await;
    let hold = Hold::new(world.dir.path(), "intent");
    let options =
        world.options.clone().failpoints(&format!("dispatch-after-intent=1*off->{}", hold.action()));
    let node = Node::start(&options);
    let run = down(&node);
    let opened = node.cli(&approval(&run));
    assert_eq!(opened.json["decision"], "DECISION_OPENED", "{opened:?}");
    hold.reached();
    let resolved = node.cli(&["resolve", &run, "--by", "kim", "--reason", "looked at it by hand"]);
    assert_eq!(resolved.json["run"]["status"], "RUN_STATUS_OPERATOR_RESOLVED", "{resolved:?}");
    assert_eq!(resolved.json["run"]["quarantined"], true, "{resolved:?}");
    hold.release();
    let run = node.wait_for_run(&run, "the end of the quarantine", |run| run["quarantined"] == false);
    assert_eq!(starts(&world), 0, "{run:#}");
    assert_eq!(run["status"], "RUN_STATUS_OPERATOR_RESOLVED", "{run:#}");
    wait_for("the attempt to stay charged", || {
        let answer = node.recover("local/web", &[]);
        if answer.exit == 3 { Ok(()) } else { Err(format!("{answer:?}")) }
    });
    assert_eq!(world.posts(), 1);
    node.stop();
}
