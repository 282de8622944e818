//! `RequestRecovery`: one request has one answer, and a dry run leaves nothing behind.

use relatch::rpc::v1::{Decision, ListRunsRequest, RequestRecoveryRequest, RunStatus};
use relatch::sim::{Action, ContainerSpec, Endpoint, Health, Hold, ListenMode, Rule};
use tonic_types::StatusExt;

use crate::world::{World, ask, ask_as, codes, fields};

/// The engine has the whole request, and works on it for as long as the gate is closed.
fn works_until(gate: &str) -> Rule {
    Rule::on(Endpoint::Restart).hold_effect(Hold::Until(gate.to_owned()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_comes_again_has_the_same_answer_whatever_became_of_it() {
    let (world, node, mut clients) = World::up([ContainerSpec::named("web").rule(works_until("work"))]).await;
    let requests = [
        (ask_as("opens", "local/web"), Decision::Opened),
        (ask_as("attaches", "local/web"), Decision::Attached),
        (ask_as("is-refused", "local/db"), Decision::Refused),
    ];
    let mut runs = Vec::new();
    for (request, decision) in &requests {
        let answer = clients.request(request).await.unwrap();
        assert_eq!((answer.decision(), answer.repeated_answer), (*decision, false), "{answer:#?}");
        runs.push(answer.run.unwrap());
    }
    assert_eq!(runs[0].request_id, "opens");
    assert_eq!(runs[1].run_id, runs[0].run_id, "an attached request is answered by the open run");
    assert_eq!(codes(&runs[2].reasons), ["target-not-found"]);
    world.reached("work").await;
    let all_again = async |clients: &mut crate::world::Clients, status: Option<RunStatus>| {
        for ((request, decision), run) in requests.iter().zip(&runs) {
            let answer = clients.request(request).await.unwrap();
            assert_eq!((answer.decision(), answer.repeated_answer), (*decision, true), "{answer:#?}");
            let again = answer.run.unwrap();
            assert_eq!(again.run_id, run.run_id);
            let status = status.filter(|_| *decision != Decision::Refused);
            assert_eq!(again.status(), status.unwrap_or(run.status()), "the run is told as it is now");
        }
    };
    all_again(&mut clients, None).await;

    world.engine.release("work");
    clients.wait_for_status(&runs[0].run_id, RunStatus::Applied).await;
    // What was refused stays refused under its id, though nothing stands in the way any more.
    world.engine.add_container(ContainerSpec::named("db")).unwrap();
    all_again(&mut clients, Some(RunStatus::Applied)).await;
    node.stop();
    let (_node, mut clients) = world.start(&world.options).await;
    all_again(&mut clients, Some(RunStatus::Applied)).await;
    assert_eq!(world.asked("web", Endpoint::Restart), 1);
    assert_eq!(clients.runs().await.len(), 2, "no request made a run of its own when it came again");
    clients.opened("local/db").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_was_used_is_refused_for_other_content_and_names_the_run() {
    let (world, _node, mut clients) =
        World::up([ContainerSpec::named("web").rule(works_until("work")), ContainerSpec::named("api")]).await;
    let mut used = Vec::new();
    for (id, target) in [("opens", "local/web"), ("attaches", "local/web"), ("is-refused", "local/db")] {
        let answer = clients.request(&ask_as(id, target)).await.unwrap();
        used.push((ask_as(id, target), answer.run.unwrap().run_id));
    }
    type Change = fn(&mut RequestRecoveryRequest);
    let changes: [Change; 5] = [
        |request| request.target = "local/api".into(),
        |request| request.reason = "another".into(),
        |request| request.grace = Some(prost_types::Duration { seconds: 10, nanos: 0 }),
        |request| request.if_unhealthy = true,
        |request| {
            request.dry_run = true;
            request.reason = "another".into();
        },
    ];
    for (request, run) in used {
        for change in changes {
            let mut other = request.clone();
            change(&mut other);
            let status = clients.request(&other).await.unwrap_err();
            assert_eq!(fields(&status), ["request_id"], "{status:?}");
            let info = status.get_details_error_info().expect("google.rpc.ErrorInfo");
            assert_eq!((info.reason.as_str(), info.domain.as_str()), ("REQUEST_ID_REUSED", "relatch"));
            assert_eq!(info.metadata["run"], run);
            assert!(status.message().contains("use a new id"), "{status:?}");
        }
    }
    assert_eq!(clients.runs().await.len(), 2);
    world.engine.release("work");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_says_how_it_would_be_decided_and_commits_nothing() {
    let web = ContainerSpec::named("web").label("relatch.grace", "7s");
    let (world, _node, mut clients) = World::up([web, ContainerSpec::named("api")]).await;
    let dry = |request: RequestRecoveryRequest| RequestRecoveryRequest { dry_run: true, ..request };
    // A refusal is one entry and leaves nothing to do: those in between would show in the index.
    let before = clients.entry().await;
    let listed = clients.runs().await;
    for _ in 0..2 {
        let answer = clients.request(&dry(ask_as("would-open", "local/web"))).await.unwrap();
        assert_eq!(answer.decision(), Decision::Opened);
        assert!(answer.dry_run && !answer.repeated_answer, "{answer:#?}");
        let run = answer.run.unwrap();
        assert_eq!((run.run_id.as_str(), run.events.len()), ("", 0), "it has no id: it does not exist");
        assert_eq!((run.target.as_str(), run.status()), ("local/web", RunStatus::Interlocked));
        assert_eq!((run.grace.unwrap().seconds, run.grace_source.as_str()), (7, "label"));
        assert_eq!(run.baseline.unwrap().container_id, world.id("web"));
    }
    for (target, code) in [("local/db", "target-not-found"), ("local/web", "grace-above-limit")] {
        let grace = Some(prost_types::Duration { seconds: 301, nanos: 0 });
        let request = dry(RequestRecoveryRequest { grace, ..ask_as("would-be-refused", target) });
        let answer = clients.request(&request).await.unwrap();
        assert_eq!(answer.decision(), Decision::Refused);
        assert!(answer.dry_run, "{answer:#?}");
        let run = answer.run.unwrap();
        assert_eq!((run.run_id.as_str(), codes(&run.reasons)), ("", vec![code]));
    }
    assert_eq!(clients.runs().await, listed, "no run");
    let after = clients.entry().await;
    assert_eq!(after, before + 1, "no entry in the log");
    assert_eq!(world.changes(), 0, "no request to the engine");
    // No memory of their ids: both are free for requests that are meant.
    clients.decided(&ask_as("would-be-refused", "local/api"), Decision::Opened).await;
    let opened = clients.request(&ask_as("would-open", "local/web")).await.unwrap();
    assert!(!opened.repeated_answer, "{opened:#?}");
    let opened = opened.run.unwrap();
    clients.wait_for_status(&opened.run_id, RunStatus::Applied).await;

    // Of a request that was answered, it tells that answer.
    let known = clients.request(&dry(ask_as("would-open", "local/web"))).await.unwrap();
    assert_eq!((known.decision(), known.repeated_answer, known.dry_run), (Decision::Opened, true, true));
    assert_eq!(known.run.unwrap().run_id, opened.run_id);
    let new = clients.request(&dry(ask_as("another", "local/web"))).await.unwrap();
    assert_eq!(codes(&new.run.unwrap().reasons), ["backing-off"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_that_would_attach_leaves_no_trace_in_the_open_run() {
    let (world, _node, mut clients) =
        World::up([ContainerSpec::named("web").rule(works_until("work"))]).await;
    let open = clients.opened("local/web").await;
    world.reached("work").await;
    let grace = Some(prost_types::Duration { seconds: 3, nanos: 0 });
    let request = RequestRecoveryRequest { dry_run: true, grace, ..ask_as("would-attach", "local/web") };
    let answer = clients.request(&request).await.unwrap();
    assert_eq!((answer.decision(), answer.dry_run), (Decision::Attached, true));
    assert_eq!(answer.run.as_ref().unwrap().run_id, open.run_id, "{answer:#?}");
    assert_eq!(answer.ignored, ["grace 3 s: the open run uses 10 s"]);
    let kinds = |run: &relatch::rpc::v1::Run| -> Vec<String> {
        run.events.iter().map(|event| event.kind.clone()).collect()
    };
    let now = clients.run(&open.run_id).await;
    assert!(!kinds(&now).contains(&"ATTACHED".to_owned()), "{now:#?}");
    let of_id = ListRunsRequest { request_id: "would-attach".into(), ..ListRunsRequest::default() };
    assert!(clients.list(of_id.clone()).await.runs.is_empty());

    let attached = RequestRecoveryRequest { dry_run: false, ..request };
    clients.decided(&attached, Decision::Attached).await;
    assert_eq!(clients.list(of_id).await.runs[0].run_id, open.run_id);
    world.engine.release("work");
    clients.wait_for_status(&open.run_id, RunStatus::Applied).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_the_unhealthy_alone_is_refused_for_a_container_that_is_not_and_says_so() {
    let (world, _node, mut clients) =
        World::up([ContainerSpec::named("web"), ContainerSpec::named("ill").health(Health::Saturated)]).await;
    let unhealthy = |target| RequestRecoveryRequest { if_unhealthy: true, ..ask(target) };
    let refused = clients.decided(&unhealthy("local/web"), Decision::Refused).await;
    assert_eq!(codes(&refused.reasons), ["target-not-unhealthy"]);
    let opened = clients.decided(&unhealthy("local/ill"), Decision::Opened).await;
    assert!(opened.if_unhealthy);
    clients.wait_for_status(&opened.run_id, RunStatus::Applied).await;
    assert_eq!((world.asked("web", Endpoint::Restart), world.asked("ill", Endpoint::Restart)), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_incarnation_than_the_caller_means_is_refused_and_an_attach_to_it_too() {
    let (world, _node, mut clients) =
        World::up([ContainerSpec::named("web").rule(works_until("work"))]).await;
    let now = clients.explained("local/web").await.incarnation.expect("it was looked at");
    let mut earlier = now.clone();
    earlier.started_at.as_mut().unwrap().seconds -= 1;
    let expecting = |incarnation: &relatch::rpc::v1::Incarnation| RequestRecoveryRequest {
        expect: Some(incarnation.clone()),
        ..ask("local/web")
    };
    let refused = clients.decided(&expecting(&earlier), Decision::Refused).await;
    assert_eq!(codes(&refused.reasons), ["expectation-mismatch"]);
    assert_eq!(refused.expect.unwrap().started_at, earlier.started_at);
    let opened = clients.decided(&expecting(&now), Decision::Opened).await;
    let refused = clients.decided(&expecting(&earlier), Decision::Refused).await;
    assert!(codes(&refused.reasons).contains(&"expectation-mismatch"), "{refused:#?}");
    let attached = clients.decided(&expecting(&now), Decision::Attached).await;
    assert_eq!(attached.run_id, opened.run_id);
    world.engine.release("work");
}

/// It cannot be asked for by the name that it had, or its engine is silent: what matters then is the run that is open.
#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_the_run_that_is_open_for_what_cannot_be_found_or_read() {
    let (world, _node, mut clients) =
        World::up([ContainerSpec::named("web").rule(works_until("work"))]).await;
    let open = clients.opened("local/web").await.run_id;
    world.reached("work").await;
    world.act("web", Action::Rename { name: "old".into() });
    let told = async |clients: &mut crate::world::Clients, code: &str| {
        let run = clients.decided(&ask("local/web"), Decision::Refused).await;
        assert_eq!(codes(&run.reasons), [code]);
        let named = format!("run {open} is open for ");
        assert!(run.reasons[0].detail.contains(&named), "{run:#?}");
        let standing = clients.explained("local/web").await.standing;
        assert_eq!(standing.map(|run| run.run_id), Some(open.clone()));
    };
    told(&mut clients, "target-not-found").await;
    world.act_on_engine(Action::Listen { mode: ListenMode::Refuse });
    told(&mut clients, "baseline-unreadable").await;
    let other = clients.decided(&ask("local/api"), Decision::Refused).await;
    assert!(!other.reasons[0].detail.contains("is open for"), "{other:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_says_that_it_was_only_for_the_unhealthy() {
    let (_world, _node, mut clients) =
        World::up([ContainerSpec::named("web").health(Health::Saturated)]).await;
    for target in ["local/web", "local/nobody"] {
        for if_unhealthy in [true, false] {
            let grace = Some(prost_types::Duration { seconds: 301, nanos: 0 });
            let request = RequestRecoveryRequest { if_unhealthy, grace, ..ask(target) };
            let run = clients.decided(&request, Decision::Refused).await;
            assert_eq!(run.if_unhealthy, if_unhealthy, "{run:#?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_is_on_record_by_name_and_whoever_asks_again_is_told_the_same() {
    let (_world, _node, mut clients) = World::up([ContainerSpec::named("web")]).await;
    let by = |name: &str, id: &str, target: &str| RequestRecoveryRequest {
        requested_by: name.to_owned(),
        ..ask_as(id, target)
    };
    let refused = clients.decided(&by("kim", "r-none", "local/none"), Decision::Refused).await;
    assert_eq!(refused.requested_by, "kim");
    let opened = clients.decided(&by("kim", "r-web", "local/web"), Decision::Opened).await;
    assert_eq!(opened.requested_by, "kim");
    let again = clients.request(&by("lee", "r-web", "local/web")).await.expect("an answer");
    assert!(again.repeated_answer, "{again:#?}");
    assert_eq!(again.run.expect("a run").requested_by, "kim", "the first who asked");
    let nameless = clients.request(&ask_as("r-web", "local/web")).await.expect("an answer");
    assert!(nameless.repeated_answer, "{nameless:#?}");
    let status = clients.request(&by("two\nlines", "r-bad", "local/web")).await.unwrap_err();
    assert_eq!(fields(&status), ["requested_by"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_nothing_bears_is_answered_with_what_is_spelled_much_like_it() {
    let containers = ["web", "api", "queue"].map(ContainerSpec::named);
    let (_world, _node, mut clients) = World::up(containers).await;
    let refused = clients.decided(&ask("local/wbe"), Decision::Refused).await;
    let detail = &refused.reasons[0].detail;
    assert!(
        detail.starts_with("did you mean local/web? there are ") && detail.contains("local/api"),
        "{detail}"
    );
    let refused = clients.decided(&ask("local/nothing-like-it"), Decision::Refused).await;
    assert!(refused.reasons[0].detail.starts_with("there are "), "{refused:#?}");
}
