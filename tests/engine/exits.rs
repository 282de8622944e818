//! The exit codes of `recover --wait`, which scripts act on.

use std::time::Duration;

use crate::support::dockerd::{Dockerd, Healthcheck, RunOptions, unique_name};
use crate::support::node::{Answer, Hold, Node, NodeOptions, wait_for};
use crate::support::pending::Pending;
use crate::world::{Source, as_operator, codes, left_down, set_limits};

fn checked_by(command: &str) -> RunOptions {
    let healthcheck = Healthcheck {
        command: command.to_owned(),
        interval: Duration::from_millis(500),
        timeout: Duration::from_secs(5),
        retries: 1,
        start_period: Duration::ZERO,
    };
    RunOptions { healthcheck: Some(healthcheck), ..RunOptions::default() }
}

fn assert_ends(answer: &Answer, exit: i32, status: &str, verification: &str) {
    let run = answer.run();
    let seen = (answer.exit, run["status"].as_str(), run["verification"].as_str());
    let status = format!("RUN_STATUS_{status}");
    let verification = format!("VERIFICATION_{verification}");
    assert_eq!(seen, (exit, Some(status.as_str()), Some(verification.as_str())), "{answer:?}");
}

#[test]
fn each_end_of_a_run_has_its_exit_code() {
    let docker = Dockerd::shared();
    let dir = tempfile::Builder::new().prefix("relatch-").tempdir().expect("a temporary folder");
    // The first restart waits before its last look, so that a hold can come between.
    let point = Hold::new(dir.path(), "commit");
    let options = NodeOptions::new(docker.endpoint(), dir.path().join("data"))
        .failpoints(&format!("coordinator-after-commit={}", point.action()));
    let node = Node::start(&options);
    // On a busy machine the shared engine may take its time for a look.
    set_limits(&node, &["dispatch_by_ms=60s", "inspect_ms=30s", "in_flight_host=20", "in_flight_cluster=20"]);
    let run = |options: RunOptions| {
        let name = unique_name("web");
        let id = docker.run_container(&name, options);
        (format!("local/{name}"), name, id)
    };
    let wait = ["--wait", "--wait-timeout", "100s"];

    // 5: proven to have had no effect.
    let (held, ..) = run(RunOptions::default());
    let waiting = Pending::recover(&node, &held, &wait);
    point.reached();
    assert_eq!(as_operator(&node, &["hold", &held]).exit, 0);
    point.release();
    assert_ends(&waiting.answer(), 5, "NOT_APPLIED", "UNSPECIFIED");

    // 7: applied, and never well again. That takes its whole window; the others end meanwhile.
    let (ill, ill_name, _) = run(checked_by("test ! -e /tmp/ill"));
    docker.docker(&["exec", &ill_name, "touch", "/tmp/ill"]);
    docker.wait_until(&ill_name, "unhealthy", |c| c["State"]["Health"]["Status"] == "unhealthy");
    let never_well = Pending::recover(&node, &ill, &wait);

    // 0: well again, or nothing can tell.
    let (well, ..) = run(checked_by("true"));
    assert_ends(&node.recover(&well, &wait), 0, "APPLIED", "RECOVERED");
    let (plain, plain_name, _) = run(RunOptions::default());
    assert_ends(&node.recover(&plain, &wait), 0, "APPLIED", "UNVERIFIED");

    // 3: refused.
    docker.pause(&plain_name);
    let refused = node.recover(&plain, &wait);
    assert_ends(&refused, 3, "REFUSED", "UNSPECIFIED");
    assert!(codes(refused.run()).contains(&"target-paused".to_owned()), "{refused:?}");
    docker.unpause(&plain_name);

    // 4: still uncertain when the wait is over; 8: ended by an operator while somebody waits.
    let source = Source::new();
    let (down, ..) = run(source.container());
    source.remove();
    let opened = node.recover(&down, &[]);
    left_down(&node, &opened.run_id());
    let uncertain = node.recover(&down, &["--wait", "--wait-timeout", "1s"]);
    assert_ends(&uncertain, 4, "UNRESOLVED", "UNSPECIFIED");
    let waiting = Pending::recover(&node, &down, &wait);
    node.wait_for_run(&uncertain.run_id(), "the third request", |run| {
        let attached = |event: &&serde_json::Value| event["kind"] == "ATTACHED";
        let times = |event: &serde_json::Value| event["times"].as_str()?.parse::<u32>().ok();
        let events = run["events"].as_array().expect("events");
        events.iter().filter(attached).filter_map(times).sum::<u32>() == 2
    });
    assert_eq!(as_operator(&node, &["resolve", &uncertain.run_id()]).exit, 0);
    assert_ends(&waiting.answer(), 8, "OPERATOR_RESOLVED", "UNSPECIFIED");

    // 6: removed while its restart goes on.
    let (gone, gone_name, gone_id) = run(RunOptions { ignores_sigterm: true, ..RunOptions::default() });
    let waiting = Pending::recover(&node, &gone, &[&["--grace", "60s"], &wait[..]].concat());
    wait_for("the engine to get the restart", || match docker.posts(&gone_id) {
        0 => Err(docker.log_tail()),
        _ => Ok(()),
    });
    docker.rm(&gone_name);
    assert_ends(&waiting.answer(), 6, "SUPERSEDED", "UNSPECIFIED");

    assert_ends(&never_well.answer(), 7, "APPLIED", "NOT_RECOVERED");
}
