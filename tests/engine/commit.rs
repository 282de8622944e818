//! A settlement that cannot be committed (invariant 8).

use crate::support::dockerd::RunOptions;
use crate::support::node::Node;
use crate::support::proxy::OnRestart;
use crate::world::{World, assert_applied};

#[test]
fn an_interlock_stays_in_force_while_what_the_engine_answered_cannot_be_committed() {
    let world = World::new(RunOptions::default(), OnRestart::Pass);
    let (again, options) = world.hold_at("coordinator-commit-evidence");
    let node = Node::start(
        &options.failpoints(&format!("coordinator-commit-evidence=1*return(lose)->{}", again.action())),
    );
    let answer = node.recover(&world.target(), &[]);
    assert_eq!(answer.exit, 0, "{answer:?}");
    again.reached();
    assert_eq!(world.docker.posts(&world.id), 1, "{}", world.docker.log_tail());
    let run = node.run(&answer.run_id());
    assert_eq!(run["status"], "RUN_STATUS_INTERLOCKED", "what is not committed is not so: {run:#}");
    let second = node.recover(&world.target(), &[]);
    assert_eq!(second.json["decision"], "DECISION_ATTACHED", "{second:?}");
    assert_eq!(second.run_id(), answer.run_id());
    again.release();
    let run = node.wait_for_status(&answer.run_id(), "APPLIED");
    assert_applied(&world, &run);
    assert_eq!(run["quarantined"], false, "{run:#}");
    assert_eq!(world.docker.posts(&world.id), 1, "{}", world.docker.log_tail());
}
