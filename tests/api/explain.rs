//! `Explain`: every check with its verdict, and nothing committed.

use prost_types::Duration;
use relatch::rpc::v1::hold_scope::Scope;
use relatch::rpc::v1::{Decision, ExplainRequest, ExplainResponse, Guard, LimitSet, RunStatus, Verdict};
use relatch::sim::{Action, ContainerSpec, End, Endpoint, Hold, ListenMode, Rule, Status};

use crate::world::{Clients, World, codes, fields, hold};

/// The one check that blocks, and why. Those before it pass, and every reason says what would end it.
fn blocking(answer: &ExplainResponse) -> (&str, Vec<&str>) {
    assert_eq!(answer.decision(), Decision::Refused, "{answer:#?}");
    let blocks: Vec<_> = answer.checks.iter().filter(|check| check.verdict() == Verdict::Block).collect();
    let [check] = blocks.as_slice() else { panic!("one check blocks: {answer:#?}") };
    for other in answer.checks.iter().filter(|other| other.name != check.name) {
        assert!(other.reasons.is_empty(), "{other:#?}");
    }
    for reason in &check.reasons {
        assert!(!reason.ends_when.is_empty() && reason.since.is_some(), "{reason:#?}");
    }
    (&check.name, codes(&check.reasons))
}

/// Expects the target to be refused for this one check and reason.
async fn blocked(clients: &mut Clients, target: &str, check: &str, code: &str) -> ExplainResponse {
    let answer = clients.explained(target).await;
    assert_eq!(blocking(&answer), (check, vec![code]), "{target}");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_good_target_passes_every_check_and_nothing_is_committed() {
    let (world, _node, mut clients) = World::up([ContainerSpec::compose("shop", "web", 1)]).await;
    let before = clients.entry().await;
    let answer = clients.explained("local/shop-web-1").await;
    assert_eq!((answer.target.as_str(), answer.decision()), ("local/shop/web/1", Decision::Opened));
    for check in &answer.checks {
        assert_eq!((check.verdict(), check.reasons.len()), (Verdict::Pass, 0), "{check:#?}");
        assert!(!check.detail.is_empty(), "what was seen: {check:#?}");
    }
    assert_eq!((answer.state.as_str(), answer.health.as_str()), ("running", "none"));
    assert_eq!(
        (answer.grace, answer.grace_source.as_str()),
        (Some(Duration { seconds: 10, nanos: 0 }), "policy")
    );
    assert_eq!(answer.guard(), Guard::Agent);
    assert_eq!(answer.standing, None);
    let incarnation = answer.incarnation.expect("it was looked at");
    assert_eq!(incarnation.container_id, world.id("shop-web-1"));
    assert_eq!(incarnation.engine_id, world.engine.engine_id());
    assert_eq!(clients.entry().await, before + 1, "no entry in the log");
    assert_eq!(world.changes(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_container_is_or_does_is_told_by_the_check_that_blocks() {
    let short = "5".repeat(12);
    let of_id = |name: &str, digit: &str| ContainerSpec {
        id: Some(format!("{short}{}", digit.repeat(52))),
        ..ContainerSpec::named(name)
    };
    let in_state = |name: &str, status| ContainerSpec { status, ..ContainerSpec::named(name) };
    let (_world, _node, mut clients) = World::up([
        of_id("twin-a", "a"),
        of_id("twin-b", "b"),
        in_state("created", Status::Created),
        in_state("paused", Status::Paused),
        in_state("restarting", Status::Restarting),
        in_state("removing", Status::Removing),
        in_state("exited", Status::Exited),
        in_state("dead", Status::Dead),
        ContainerSpec::named("task").label("com.docker.swarm.task.id", "t1"),
        ContainerSpec::named("label").label("relatch.grace", "soon"),
        ContainerSpec::named("long").label("relatch.grace", "301"),
        ContainerSpec { stop_timeout_s: Some(-1), ..ContainerSpec::named("for-ever") },
    ])
    .await;
    for (name, check, code) in [
        ("nobody", "target", "target-not-found"),
        (short.as_str(), "target", "target-ambiguous"),
        ("created", "started", "target-not-running"),
        ("task", "swarm", "target-swarm-task"),
        ("label", "grace-source", "label-invalid"),
        ("for-ever", "grace-source", "grace-above-limit"),
        ("paused", "state", "target-paused"),
        ("restarting", "state", "target-restarting"),
        ("removing", "state", "target-removing"),
        ("exited", "state", "target-not-running"),
        ("dead", "state", "target-not-running"),
        ("long", "grace", "grace-above-limit"),
    ] {
        let answer = blocked(&mut clients, &format!("local/{name}"), check, code).await;
        let at = answer.checks.iter().position(|made| made.name == check).unwrap();
        assert!(answer.checks[..at].iter().all(|made| made.verdict() == Verdict::Pass), "{answer:#?}");
        // What stands before a look at the container keeps the rest from being made.
        let rest = if answer.incarnation.is_some() { Verdict::Pass } else { Verdict::NotMade };
        assert!(answer.checks[at + 1..].iter().all(|made| made.verdict() == rest), "{answer:#?}");
        assert_eq!(answer.state.is_empty(), answer.incarnation.is_none(), "{answer:#?}");
    }
    let grace = Some(Duration { seconds: 301, nanos: 0 });
    let asked = ExplainRequest { target: "local/label".into(), grace };
    let asked = clients.recovery.explain(asked).await.unwrap().into_inner();
    assert_eq!(
        blocking(&asked),
        ("grace", vec!["grace-above-limit"]),
        "the request's own goes before the label"
    );
    assert!(clients.runs().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cluster_keeps_is_told_by_the_check_that_blocks() {
    let works = Rule::on(Endpoint::Restart).hold_effect(Hold::Until("work".into()));
    // Its effect comes, and no answer: closed until the exchange is known to have ended.
    let loses = Rule::on(Endpoint::Restart).cut(End::Fin);
    let (world, _node, mut clients) = World::up([
        ContainerSpec::named("web"),
        ContainerSpec::named("api").rule(loses),
        ContainerSpec::named("busy").rule(works),
        ContainerSpec::named("other"),
    ])
    .await;
    let run = clients.opened("local/web").await;
    clients.wait_for_status(&run.run_id, RunStatus::Applied).await;
    let answer = blocked(&mut clients, "local/web", "backoff", "backing-off").await;
    let check = answer.checks.iter().find(|check| check.name == "backoff").unwrap();
    assert!(
        check.reasons[0].ends_in.as_ref().is_some_and(|left| (1..=300).contains(&left.seconds)),
        "{check:#?}"
    );
    let one = LimitSet { attempts: Some(1), backoff_first_ms: Some(0), ..LimitSet::default() };
    clients.set_limits(one).await.unwrap();
    blocked(&mut clients, "local/web", "attempts", "attempts-exhausted").await;

    let run = clients.opened("local/api").await;
    clients.wait_for_run(&run.run_id, "a quarantine", |run| run.quarantined).await;
    clients.set_limits(LimitSet { attempts: Some(9), ..LimitSet::default() }).await.unwrap();
    let answer = blocked(&mut clients, "local/api", "standing-run", "quarantined").await;
    assert_eq!(answer.standing.unwrap().run_id, run.run_id);

    let run = clients.opened("local/busy").await;
    world.reached("work").await;
    let open = clients.explained("local/busy").await;
    assert_eq!((open.decision(), open.standing.unwrap().run_id), (Decision::Attached, run.run_id.clone()));
    for (limits, check) in [
        (LimitSet { in_flight_host: Some(1), ..LimitSet::default() }, "in-flight-host"),
        (
            LimitSet { in_flight_host: Some(2), in_flight_cluster: Some(1), ..LimitSet::default() },
            "in-flight-cluster",
        ),
    ] {
        clients.set_limits(limits).await.unwrap();
        blocked(&mut clients, "local/other", check, check).await;
    }
    world.engine.release("work");
    clients.wait_for_status(&run.run_id, RunStatus::Applied).await;

    let placed = clients.place(hold(Scope::Target("local/other".into()))).await.hold.unwrap();
    let answer = blocked(&mut clients, "local/other", "hold", "held").await;
    let check = answer.checks.iter().find(|check| check.name == "hold").unwrap();
    for part in ["kim", "an upgrade", &placed.hold_id] {
        assert!(check.reasons[0].detail.contains(part), "{part}: {check:#?}");
    }
    assert_eq!(check.reasons[0].since, placed.placed_at);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_does_not_answer_or_is_another_is_told_by_the_check_that_blocks() {
    let (world, _node, mut clients) = World::up([ContainerSpec::named("web")]).await;
    world.script("web", Rule::on(Endpoint::Inspect).forever().never_answer());
    blocked(&mut clients, "local/web", "engine", "baseline-unreadable").await;
    world.engine.clear_script(Some("web")).unwrap();
    world.act_on_engine(Action::Listen { mode: ListenMode::Refuse });
    world.act_on_engine(Action::DropIdleConnections { end: End::Fin });
    let answer = blocked(&mut clients, "local/web", "engine", "baseline-unreadable").await;
    assert!(answer.checks[1..].iter().all(|check| check.verdict() == Verdict::NotMade), "{answer:#?}");
    world.act_on_engine(Action::Listen { mode: ListenMode::Open });
    world.act_on_engine(Action::SetEngineId { id: "another".into() });
    world.act_on_engine(Action::DropIdleConnections { end: End::Fin });
    blocked(&mut clients, "local/web", "host", "host-differs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_host_is_an_error_that_names_the_hosts_that_there_are() {
    let (_world, _node, mut clients) = World::up([]).await;
    let request = ExplainRequest { target: "elsewhere/web".into(), grace: None };
    let status = clients.recovery.explain(request).await.unwrap_err();
    assert_eq!(fields(&status), ["target"]);
    assert!(status.message().ends_with("the hosts are: local"), "{status:?}");
}
