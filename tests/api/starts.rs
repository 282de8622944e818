//! `ApproveStart`: one start of what a restart left down, by an operator's approval.

use relatch::rpc::v1::hold_scope::Scope;
use relatch::rpc::v1::{ApproveStartRequest, ApproveStartResponse, Decision, Run, RunStatus};
use relatch::sim::{Action, ContainerSpec, End, Endpoint, Hold, ListenMode, Rule};
use tonic::Status;

use crate::world::{Clients, World, codes, fields, hold, missing};

fn approval(run: &str) -> ApproveStartRequest {
    ApproveStartRequest {
        run_id: run.to_owned(),
        operator: "kim".to_owned(),
        reason: "it is needed".to_owned(),
        start_id: String::new(),
    }
}

async fn approve(
    clients: &mut Clients,
    approval: &ApproveStartRequest,
) -> Result<ApproveStartResponse, Status> {
    clients.recovery.approve_start(approval.clone()).await.map(tonic::Response::into_inner)
}

/// Expects a refusal for these reasons, each with what would end it, and no start in the run.
async fn refused(clients: &mut Clients, run: &str, wanted: &[&str]) {
    let answer = approve(clients, &approval(run)).await.expect("an answer");
    assert_eq!(answer.decision(), Decision::Refused, "{answer:#?}");
    assert_eq!(codes(&answer.reasons), wanted, "{answer:#?}");
    assert!(answer.reasons.iter().all(|reason| !reason.ends_when.is_empty()), "{answer:#?}");
    assert_eq!(answer.start_id, "");
}

/// A container that a restart stops and never starts again; the engine says so with a 500.
fn left_down(name: &str) -> ContainerSpec {
    let gave_up = "Cannot restart container: did not receive an exit event";
    ContainerSpec::named(name)
        .rule(Rule::on(Endpoint::Restart).effect(relatch::sim::Effect::StopOnly).status(500, gave_up))
}

async fn down(clients: &mut Clients, target: &str) -> Run {
    let run = clients.opened(target).await;
    clients.unresolved(&run.run_id, "target-down").await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_start_is_sent_once_however_often_its_approval_comes_and_settles_the_run() {
    let (world, node, mut clients) = World::up([left_down("web"), left_down("api")]).await;
    let run = down(&mut clients, "local/web").await;
    let first = ApproveStartRequest { start_id: "ab".repeat(16), ..approval(&run.run_id[..8]) };
    let answer = approve(&mut clients, &first).await.unwrap();
    assert_eq!((answer.decision(), answer.repeated_answer), (Decision::Opened, false), "{answer:#?}");
    assert_eq!(answer.start_id, first.start_id);
    let applied = clients.wait_for_status(&run.run_id, RunStatus::Applied).await;
    assert!(applied.evidence == "by-follow-up-start", "never by restart: {applied:#?}");
    let [start] = applied.starts.as_slice() else { panic!("one start: {applied:#?}") };
    assert_eq!((start.operator.as_str(), start.reason.as_str()), ("kim", "it is needed"));
    assert!(!start.outstanding && start.exchange.contains("reply 204"), "{start:#?}");
    let kinds: Vec<&str> = applied.events.iter().map(|event| event.kind.as_str()).collect();
    assert!(kinds.contains(&"START_APPROVED") && kinds.contains(&"START_EXCHANGED"), "{kinds:?}");

    node.stop();
    let (_node, mut clients) = world.start(&world.options).await;
    let again = approve(&mut clients, &first).await.unwrap();
    assert_eq!((again.decision(), again.repeated_answer), (Decision::Opened, true), "{again:#?}");
    assert_eq!(
        (again.start_id.as_str(), again.run.unwrap().status()),
        (&*first.start_id, RunStatus::Applied)
    );
    let other = down(&mut clients, "local/api").await;
    for reused in [
        ApproveStartRequest { reason: "another".into(), ..first.clone() },
        ApproveStartRequest { operator: "lee".into(), ..first.clone() },
        ApproveStartRequest { run_id: other.run_id.clone(), ..first.clone() },
    ] {
        let status = approve(&mut clients, &reused).await.unwrap_err();
        assert_eq!(fields(&status), ["start_id"], "{status:?}");
        assert!(status.message().contains("use a new id"), "{status:?}");
    }
    refused(&mut clients, &run.run_id, &["run-settled"]).await;
    assert_eq!(world.asked("web", Endpoint::Start), 1);
    assert_eq!(world.asked("api", Endpoint::Start), 0);
    assert_eq!(world.asked("web", Endpoint::Restart), 1);
}

/// The engine has started the container and not answered yet; its event makes the leader look.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_start_did_is_never_told_as_the_restarts_though_its_answer_is_still_to_come() {
    let waits = Rule::on(Endpoint::Start).hold_reply(Hold::Until("reply".into()));
    let (world, _node, mut clients) = World::up([left_down("web").rule(waits)]).await;
    let run = down(&mut clients, "local/web").await;
    let answer = approve(&mut clients, &approval(&run.run_id)).await.unwrap();
    assert_eq!(answer.decision(), Decision::Opened, "{answer:#?}");
    let applied = clients.wait_for_status(&run.run_id, RunStatus::Applied).await;
    assert!(applied.evidence == "by-follow-up-start", "{applied:#?}");
    assert_eq!(applied.starts[0].exchange, "", "not heard of yet: {applied:#?}");
    assert!(applied.quarantined, "and so the target stays closed: {applied:#?}");
    world.engine.release("reply");
    clients.wait_for_run(&run.run_id, "the start's answer", |run| !run.quarantined).await;
    assert_eq!(world.asked("web", Endpoint::Start), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_refused_while_the_restart_may_still_take_effect() {
    let works = Rule::on(Endpoint::Restart).hold_effect(Hold::Until("work".into()));
    let world = World::new([ContainerSpec::named("web").rule(works)]).await;
    let (_node, mut clients, before) = world.start_held_at("dispatch-before-connect").await;
    let run = clients.opened("local/web").await;
    before.reached();
    let not_down = "target-not-down";
    refused(&mut clients, &run.run_id, &["restart-not-sent", "restart-under-way", not_down]).await;
    before.release();
    world.reached("work").await;
    // Nobody has heard of the exchange yet: it may have been sent or not.
    refused(&mut clients, &run.run_id, &["restart-not-sent", "restart-under-way", not_down]).await;
    world.engine.release("work");
    clients.wait_for_status(&run.run_id, RunStatus::Applied).await;

    let world = World::new([ContainerSpec::named("web")
        .rule(Rule::on(Endpoint::Restart).effect(relatch::sim::Effect::StopOnly).cut(End::Fin))])
    .await;
    let (_node, mut clients) = world.start(&world.options).await;
    let run = down(&mut clients, "local/web").await;
    refused(&mut clients, &run.run_id, &["restart-under-way"]).await;
    assert_eq!(world.asked("web", Endpoint::Start), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_refused_for_a_hold_another_start_or_what_the_container_shows() {
    let fails = Rule::on(Endpoint::Restart).no_effect().status(500, "no");
    let works = Rule::on(Endpoint::Start).hold_effect(Hold::Until("start".into()));
    let (world, _node, mut clients) =
        World::up([left_down("web").rule(works), ContainerSpec::named("runs").rule(fails)]).await;
    let runs = clients.opened("local/runs").await;
    clients.unresolved(&runs.run_id, "error-reply").await;
    refused(&mut clients, &runs.run_id, &["target-not-down"]).await;
    world.act("runs", Action::SetStartedAt { value: "2020-01-01T00:00:00Z".into() });
    refused(&mut clients, &runs.run_id, &["incarnation-changed"]).await;

    let run = down(&mut clients, "local/web").await;
    let placed = clients.place(hold(Scope::Target("local/web".into()))).await;
    assert_eq!(placed.open_run_ids, [run.run_id.as_str()]);
    refused(&mut clients, &run.run_id, &["held"]).await;
    let lift = relatch::rpc::v1::LiftHoldRequest {
        hold_id: placed.hold.unwrap().hold_id,
        scope: None,
        operator: "kim".into(),
    };
    clients.holds.lift_hold(lift).await.unwrap();

    world.act_on_engine(Action::Listen { mode: ListenMode::Refuse });
    world.act_on_engine(Action::DropIdleConnections { end: End::Fin });
    refused(&mut clients, &run.run_id, &["baseline-unreadable"]).await;
    world.act_on_engine(Action::Listen { mode: ListenMode::Open });

    let answer = approve(&mut clients, &approval(&run.run_id)).await.unwrap();
    assert_eq!(answer.decision(), Decision::Opened, "{answer:#?}");
    assert_eq!(answer.start_id.len(), 32, "one was minted");
    world.reached("start").await;
    let now = clients.run(&run.run_id).await;
    assert!(now.starts[0].outstanding && codes(&now.reasons).contains(&"start-awaited"), "{now:#?}");
    refused(&mut clients, &run.run_id, &["start-outstanding"]).await;
    world.engine.release("start");
    clients.wait_for_status(&run.run_id, RunStatus::Applied).await;
    assert_eq!(world.asked("web", Endpoint::Start), 1);
    assert_eq!(world.asked("runs", Endpoint::Start), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_not_there_or_never_was_admitted_has_no_start() {
    let (_world, _node, mut clients) = World::up([]).await;
    clients.entry().await;
    let refused = clients.runs().await.remove(0);
    for id in ["00000000", &refused.run_id] {
        let status = approve(&mut clients, &approval(id)).await.unwrap_err();
        assert_eq!(missing(&status), ("relatch.v1.Run".into(), id.into()));
    }
}

/// Somebody else started the container while the approved start had not been handed on; then the node died.
#[tokio::test(flavor = "multi_thread")]
async fn a_settled_run_asks_after_a_start_that_nobody_spoke_of() {
    let world = World::new([left_down("web")]).await;
    let (node, mut clients, point) = world.start_held_at("coordinator-after-approval").await;
    let run = down(&mut clients, "local/web").await;
    let answer = approve(&mut clients, &approval(&run.run_id)).await.unwrap();
    assert_eq!(answer.decision(), Decision::Opened, "{answer:#?}");
    point.reached();
    world.act("web", Action::Start);
    let applied = clients.wait_for_status(&run.run_id, RunStatus::Applied).await;
    // The start may have been sent: the target is closed, until its dispatcher is asked.
    assert!(applied.events.iter().any(|event| event.kind == "QUARANTINE_BEGAN"), "{applied:#?}");
    node.kill();
    let (_node, mut clients) = world.start(&world.options).await;
    let free = clients.wait_for_run(&run.run_id, "the journal's word", |run| !run.quarantined).await;
    assert!(free.starts[0].journal.contains("no intent"), "{free:#?}");
    assert_eq!(free.settlement, applied.settlement, "a settled run never changes its mind");
    assert_eq!(world.asked("web", Endpoint::Start), 0);
}

/// An engine that never gets the container up, and somebody, or a script, that never gives up.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_has_so_many_starts_and_no_more_and_stays_readable() {
    let text = "port is already allocated ".repeat(100);
    let fails = Rule::on(Endpoint::Start).forever().no_effect().status(500, &text);
    let (world, _node, mut clients) = World::up([left_down("web").rule(fails)]).await;
    let run = down(&mut clients, "local/web").await;
    let longest = ApproveStartRequest { reason: "\u{10348}".repeat(1_000), ..approval(&run.run_id) };
    let mut opened = 0;
    let refused = loop {
        let answer = approve(&mut clients, &longest).await.expect("an answer that a client takes");
        if answer.decision() == Decision::Opened {
            opened += 1;
            clients
                .wait_for_run(&run.run_id, "the start's end", |run| !run.starts[opened - 1].outstanding)
                .await;
        } else if codes(&answer.reasons) != ["start-outstanding"] {
            break answer;
        }
    };
    assert_eq!(codes(&refused.reasons), ["starts-exhausted"], "{refused:#?}");
    assert_eq!(world.asked("web", Endpoint::Start), opened);
    assert_eq!(clients.runs().await.len(), 1, "a list of it is no longer than a client takes");
}
