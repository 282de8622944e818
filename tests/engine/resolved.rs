//! Runs that are ended by an operator's word.

use crate::support::dockerd::{Dockerd, RunOptions, unique_name};
use crate::support::node::{Node, NodeOptions, wait_for};
use crate::support::pending::Pending;
use crate::support::proxy::OnRestart;
use crate::world::{Source, World, as_operator, left_down};

#[test]
fn resolved_while_dockerd_is_gone_for_good_it_stays_uncertain_and_its_target_closed() {
    let docker = Dockerd::own();
    let dir = tempfile::tempdir().unwrap();
    let node = Node::start(&NodeOptions::new(docker.endpoint(), dir.path().join("data")));
    let name = unique_name("web");
    let id = docker.run_container(&name, RunOptions { ignores_sigterm: true, ..RunOptions::default() });
    let waiting = Pending::recover(&node, &format!("local/{name}"), &["--grace", "20s", "--wait"]);
    wait_for("the engine to get the restart", || match docker.posts(&id) {
        0 => Err(docker.log_tail()),
        _ => Ok(()),
    });
    docker.kill();
    let run = node.runs()[0]["runId"].as_str().unwrap().to_owned();
    node.wait_for_run(&run, "a look", |run| run["reasons"].to_string().contains("engine-unreadable"));

    // Its dispatcher lives, and has told how the request went: no late send has to be accepted.
    let resolved = as_operator(&node, &["resolve", &run, "--as", "not-applied"]);
    assert_eq!(resolved.exit, 0, "{resolved:?}");
    let run = resolved.run();
    assert_eq!(run["status"], "RUN_STATUS_OPERATOR_RESOLVED", "{run:#}");
    assert_eq!(run["disposition"], "DISPOSITION_UNCERTAIN", "a word is no observation: {run:#}");
    assert_eq!(run["resolution"]["assertion"], "ASSERTION_NOT_APPLIED", "{run:#}");
    assert_eq!(run["resolution"]["acceptedLatePost"], false, "{run:#}");
    assert_eq!(run["quarantined"], true, "the exchange is not known to have ended: {run:#}");
    let waited = waiting.answer();
    assert_eq!(waited.exit, 8, "{waited:?}");
    let again = as_operator(&node, &["resolve", &waited.run_id(), "--as", "not-applied"]);
    assert_eq!((again.exit, &again.json["repeatedAnswer"]), (0, &true.into()), "{again:?}");
    let otherwise = as_operator(&node, &["resolve", &waited.run_id(), "--as", "applied"]);
    assert_eq!(otherwise.exit, 1, "what was resolved is not resolved otherwise: {otherwise:?}");
}

#[test]
fn resolved_after_the_engine_has_answered_it_leaves_the_target_open() {
    let source = Source::new();
    let world = World::new(source.container(), OnRestart::Pass);
    source.remove();
    let node = world.node();
    let run = node.recover(&world.target(), &[]).run_id();
    left_down(&node, &run);
    let resolved = as_operator(&node, &["resolve", &run]);
    assert_eq!(resolved.exit, 0, "{resolved:?}");
    assert_eq!(resolved.run()["status"], "RUN_STATUS_OPERATOR_RESOLVED", "{resolved:?}");
    assert_eq!(resolved.run()["quarantined"], false, "the reply was whole: {resolved:?}");
    assert_eq!(world.docker.posts(&world.id), 1, "{}", world.docker.log_tail());
}
