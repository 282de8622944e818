//! `ResolveRun`: an operator's word, after the dispatcher's.

use relatch::rpc::v1::{Assertion, Disposition, ResolveRunRequest, ResolveRunResponse, Run, RunStatus};
use relatch::sim::{Action, ContainerSpec, End, Endpoint, Rule};
use tonic::Status;

use crate::world::{Clients, World, codes, fields, missing, precondition};

fn word(run: &str) -> ResolveRunRequest {
    ResolveRunRequest {
        run_id: run.to_owned(),
        operator: "kim".to_owned(),
        reason: "looked at it by hand".to_owned(),
        assertion: Assertion::NotApplied.into(),
        accept_late_post: false,
    }
}

async fn resolve(clients: &mut Clients, word: &ResolveRunRequest) -> Result<ResolveRunResponse, Status> {
    clients.recovery.resolve_run(word.clone()).await.map(tonic::Response::into_inner)
}

/// A container whose restart is lost: the engine does nothing, and hangs up.
fn loses(name: &str) -> ContainerSpec {
    ContainerSpec::named(name).rule(Rule::on(Endpoint::Restart).no_effect().cut(End::Fin))
}

async fn left_unresolved(clients: &mut Clients, target: &str) -> Run {
    let run = clients.opened(target).await;
    clients.unresolved(&run.run_id, "started-at-equal").await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operators_word_ends_a_run_and_claims_nothing() {
    let (world, _node, mut clients) = World::up([loses("web")]).await;
    let open = left_unresolved(&mut clients, "local/web").await;
    let answer = resolve(&mut clients, &word(&open.run_id[..8])).await.unwrap();
    assert!(!answer.repeated_answer);
    let run = answer.run.unwrap();
    assert_eq!((run.status(), run.disposition()), (RunStatus::OperatorResolved, Disposition::Uncertain));
    let resolution = run.resolution.as_ref().expect("how it was resolved");
    assert_eq!((resolution.operator.as_str(), resolution.reason.as_str()), ("kim", "looked at it by hand"));
    assert_eq!(resolution.assertion(), Assertion::NotApplied);
    assert!(!resolution.accepted_late_post, "the dispatcher acknowledged that it sends nothing more");
    // The link was cut: a proxy on the way could hold the request still.
    assert!(run.quarantined && codes(&run.reasons).contains(&"quarantined"), "{run:#?}");
    assert!(run.events.iter().any(|event| event.kind == "RESOLVED"), "{run:#?}");

    for again in [word(&open.run_id), ResolveRunRequest { accept_late_post: true, ..word(&open.run_id) }] {
        let repeated = resolve(&mut clients, &again).await.unwrap();
        assert!(repeated.repeated_answer);
        assert_eq!(
            repeated.run.unwrap().events,
            run.events,
            "the same answer, and nothing more in the history"
        );
    }
    for other in [
        ResolveRunRequest { operator: "lee".into(), ..word(&open.run_id) },
        ResolveRunRequest { reason: "another".into(), ..word(&open.run_id) },
        ResolveRunRequest { assertion: Assertion::Applied.into(), ..word(&open.run_id) },
    ] {
        let status = resolve(&mut clients, &other).await.unwrap_err();
        assert_eq!(precondition(&status), "RUN_SETTLED");
        assert!(status.message().contains("OPERATOR_RESOLVED"), "{status:?}");
    }
    let refused = clients.decided(&crate::world::ask("local/web"), relatch::rpc::v1::Decision::Refused).await;
    assert!(codes(&refused.reasons).contains(&"quarantined"), "{refused:#?}");
    assert_eq!(world.asked("web", Endpoint::Restart), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dispatchers_own_word_settles_a_run_before_the_operators() {
    let world = World::new([ContainerSpec::named("web")]).await;
    let (_node, mut clients, hold) = world.start_held_at("dispatch-before-connect").await;
    let open = clients.opened("local/web").await;
    hold.reached();
    let answer = resolve(&mut clients, &word(&open.run_id)).await.unwrap();
    let run = answer.run.unwrap();
    assert_eq!(
        (run.status(), run.disposition()),
        (RunStatus::NotApplied, Disposition::NotApplied),
        "{run:#?}"
    );
    assert!(run.settlement.contains("no intent") && run.resolution.is_none(), "{run:#?}");
    hold.release();
    // What was revoked is never sent: the next one is the first that arrives.
    let next = clients.opened("local/web").await;
    clients.wait_for_status(&next.run_id, RunStatus::Applied).await;
    assert_eq!(world.asked("web", Endpoint::Restart), 1);
    let status = resolve(&mut clients, &word(&open.run_id)).await.unwrap_err();
    assert_eq!(precondition(&status), "RUN_SETTLED");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_dispatchers_word_nothing_is_resolved_unless_a_late_post_is_accepted() {
    let world = World::new([ContainerSpec::named("web")]).await;
    // The journal's disk hangs: nothing that the dispatcher says is durable, and so it says nothing.
    let (_node, mut clients, disk) = world.start_held_at("journal-before-write").await;
    let open = clients.opened("local/web").await;
    disk.reached();
    let status = resolve(&mut clients, &word(&open.run_id)).await.unwrap_err();
    assert_eq!(precondition(&status), "MAY_STILL_LAND");
    assert!(status.message().contains("accept_late_post"), "{status:?}");
    let still = clients.run(&open.run_id).await;
    assert!(still.resolution.is_none() && still.disposition() == Disposition::Uncertain, "{still:#?}");

    let accepted = ResolveRunRequest { accept_late_post: true, ..word(&open.run_id) };
    let run = resolve(&mut clients, &accepted).await.unwrap().run.unwrap();
    assert_eq!((run.status(), run.disposition()), (RunStatus::OperatorResolved, Disposition::Uncertain));
    assert!(run.resolution.unwrap().accepted_late_post && run.quarantined);
    assert!(run.quarantine_ends_in.is_some_and(|left| left.seconds > 0));
    // Once the disk goes on, the dispatcher's word ends the quarantine, whether or not it sent the one request.
    disk.release();
    let free = clients.wait_for_run(&open.run_id, "the dispatcher's word", |run| !run.quarantined).await;
    assert_eq!(free.status(), RunStatus::OperatorResolved, "what was resolved stays so");
    assert!(world.asked("web", Endpoint::Restart) <= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_settled_or_never_was_admitted_or_is_not_there_is_not_resolved() {
    let (world, _node, mut clients) = World::up([ContainerSpec::named("web"), loses("api")]).await;
    let applied = clients.opened("local/web").await;
    clients.wait_for_status(&applied.run_id, RunStatus::Applied).await;
    let status = resolve(&mut clients, &word(&applied.run_id)).await.unwrap_err();
    assert_eq!(precondition(&status), "RUN_SETTLED");
    assert!(status.message().contains("is APPLIED"), "{status:?}");

    let gone = left_unresolved(&mut clients, "local/api").await;
    world.act("api", Action::Remove);
    clients.wait_for_status(&gone.run_id, RunStatus::Superseded).await;
    let status = resolve(&mut clients, &word(&gone.run_id)).await.unwrap_err();
    assert_eq!(precondition(&status), "RUN_SETTLED");

    clients.entry().await;
    let refused = clients.runs().await.remove(0);
    assert_eq!(refused.status(), RunStatus::Refused);
    let status = resolve(&mut clients, &word(&refused.run_id)).await.unwrap_err();
    assert_eq!(missing(&status).0, "relatch.v1.Run");
    assert!(status.message().contains("ever admitted"), "{status:?}");
    let status = resolve(&mut clients, &word("00000000")).await.unwrap_err();
    assert_eq!(missing(&status).1, "00000000");
    let mut nonsense = word(&applied.run_id);
    nonsense.assertion = 7;
    assert_eq!(fields(&resolve(&mut clients, &nonsense).await.unwrap_err()), ["assertion"]);
}
