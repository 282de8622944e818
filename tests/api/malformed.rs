//! What breaks a rule is refused by name, with the rule, and leaves nothing behind.

use prost_types::{Duration, Timestamp};
use relatch::rpc::v1;
use relatch::rpc::v1::hold_scope::Scope;
use relatch::sim::ContainerSpec;
use tonic::{Code, Response, Status};

use crate::world::{Clients, World, ask, ask_as, fields, hold};

/// Longer than any field may be, and shorter than a message.
fn huge() -> String {
    "x".repeat(30_000)
}

/// Texts for people that are refused: nothing, too much, and what breaks or steers lines.
fn bad_texts() -> [String; 7] {
    ["", " \t ", "two\nlines", "bell\u{7}", "esc\u{1b}[2J", "line\u{2028}separator"]
        .map(ToOwned::to_owned)
        .into_iter()
        .chain([huge()])
        .collect::<Vec<_>>()
        .try_into()
        .expect("seven")
}

fn status<T: std::fmt::Debug>(answer: Result<Response<T>, Status>) -> Status {
    answer.expect_err("it breaks a rule")
}

/// Nothing was stored: no run, no hold, no limit, and not one entry of the log.
struct Untouched {
    index: u64,
    runs: usize,
    limits: v1::LimitSet,
}

impl Untouched {
    async fn so_far(clients: &mut Clients) -> Self {
        let index = clients.entry().await;
        Self { index, runs: clients.runs().await.len(), limits: clients.limits().await }
    }

    async fn still(self, clients: &mut Clients) {
        assert_eq!(clients.runs().await.len(), self.runs);
        assert_eq!(clients.standing().await, []);
        assert_eq!(clients.limits().await, self.limits);
        assert_eq!(clients.entry().await, self.index + 1, "an entry was committed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_breaks_a_rule_names_the_field_and_stores_nothing() {
    let (world, _node, mut clients) = World::up([ContainerSpec::named("web")]).await;
    let untouched = Untouched::so_far(&mut clients).await;
    let good = || ask_as("r-1", "local/web");
    let grace =
        |seconds, nanos| v1::RequestRecoveryRequest { grace: Some(Duration { seconds, nanos }), ..good() };
    let expect = |container_id: &str, started_at| v1::RequestRecoveryRequest {
        expect: Some(v1::Incarnation {
            engine_id: String::new(),
            container_id: container_id.into(),
            started_at,
        }),
        ..good()
    };
    let at = |seconds, nanos| Some(Timestamp { seconds, nanos });
    let id = world.id("web");
    let mut cases = vec![
        ("grace", grace(-1, 0)),
        ("grace", grace(0, -1)),
        ("grace", grace(1, 500_000_000)),
        ("grace", grace(i64::MAX, 0)),
        ("grace", grace(i64::MIN, i32::MIN)),
        ("expect.container_id", expect("", at(1, 0))),
        ("expect.container_id", expect(&id[..12], at(1, 0))),
        ("expect.container_id", expect(&id.to_uppercase(), at(1, 0))),
        ("expect.container_id", expect(&huge(), at(1, 0))),
        ("expect.started_at", expect(&id, None)),
        ("expect.started_at", expect(&id, at(1, 1_000_000_000))),
        ("expect.started_at", expect(&id, at(1, -1))),
        ("expect.started_at", expect(&id, at(i64::MAX, 0))),
    ];
    for target in
        ["", "web", "/web", "local/", "local//web", "local/a/b/c/d", "Local/web", "local/we b", "lo\ncal/web"]
    {
        cases.push(("target", v1::RequestRecoveryRequest { target: target.into(), ..good() }));
    }
    cases.push(("target", v1::RequestRecoveryRequest { target: format!("local/{}", huge()), ..good() }));
    cases.push(("target", v1::RequestRecoveryRequest { target: format!("{}/web", huge()), ..good() }));
    cases.push(("target", v1::RequestRecoveryRequest { target: "elsewhere/web".into(), ..good() }));
    for id in ["two words", "tab\t", "ümlaut", &"x".repeat(129), &huge()] {
        cases.push(("request_id", v1::RequestRecoveryRequest { request_id: id.into(), ..good() }));
    }
    for reason in bad_texts() {
        cases.push(("reason", v1::RequestRecoveryRequest { reason, ..good() }));
    }
    for (field, request) in cases {
        for dry_run in [false, true] {
            let request = v1::RequestRecoveryRequest { dry_run, ..request.clone() };
            assert_eq!(fields(&clients.request(&request).await.unwrap_err()), [field]);
        }
    }
    let nothing = clients.request(&v1::RequestRecoveryRequest::default()).await.unwrap_err();
    assert_eq!(fields(&nothing), ["target", "reason"], "all at once");
    untouched.still(&mut clients).await;
    assert_eq!(world.changes(), 0);
    // Not even the id was taken.
    clients.decided(&good(), v1::Decision::Opened).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grace_above_the_limit_is_refused_by_name_and_never_clamped() {
    let (world, _node, mut clients) = World::up([ContainerSpec::named("web")]).await;
    for seconds in [301, 86_400, i64::from(u32::MAX)] {
        let grace = Some(Duration { seconds, nanos: 0 });
        let request = v1::RequestRecoveryRequest { grace, ..ask("local/web") };
        let run = clients.decided(&request, v1::Decision::Refused).await;
        let [reason] = run.reasons.as_slice() else { panic!("one reason: {run:#?}") };
        assert_eq!(reason.code, "grace-above-limit");
        assert_eq!(reason.detail, format!("{seconds} s is above the limit of 300 s"));
        assert!(reason.ends_when.contains("asks for less"), "{reason:#?}");
    }
    assert_eq!(world.changes(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_other_method_names_the_field_that_breaks_a_rule_and_stores_nothing() {
    let (_world, _node, mut clients) = World::up([ContainerSpec::named("web")]).await;
    let untouched = Untouched::so_far(&mut clients).await;
    let run = clients.runs().await.remove(0).run_id;
    for target in ["", "web", "elsewhere/web", &format!("local/{}", huge())] {
        let request = v1::ExplainRequest { target: target.into(), grace: None };
        assert_eq!(fields(&status(clients.recovery.explain(request).await)), ["target"]);
    }
    let grace = Some(Duration { seconds: -1, nanos: 0 });
    let request = v1::ExplainRequest { target: "local/web".into(), grace };
    assert_eq!(fields(&status(clients.recovery.explain(request).await)), ["grace"]);

    for run_id in ["", "1234567", "ABCDEFAB", &format!("{run}0"), &huge()] {
        let request = v1::GetRunRequest { run_id: run_id.into() };
        assert_eq!(fields(&status(clients.recovery.get_run(request).await)), ["run_id"]);
        let request = v1::ResolveRunRequest {
            run_id: run_id.into(),
            operator: "kim".into(),
            reason: "r".into(),
            ..v1::ResolveRunRequest::default()
        };
        assert_eq!(fields(&status(clients.recovery.resolve_run(request).await)), ["run_id"]);
        let request = v1::ApproveStartRequest {
            run_id: run_id.into(),
            operator: "kim".into(),
            reason: "r".into(),
            start_id: String::new(),
        };
        assert_eq!(fields(&status(clients.recovery.approve_start(request).await)), ["run_id"]);
        if !run_id.is_empty() {
            let request = v1::WatchRunsRequest { run_id: run_id.into(), after_index: 0 };
            assert_eq!(fields(&status(clients.recovery.watch_runs(request).await)), ["run_id"]);
        }
    }
    for text in bad_texts() {
        let (operator, reason) = (text.clone(), text.clone());
        let both = ["operator", "reason"];
        let request = v1::ResolveRunRequest {
            run_id: run.clone(),
            operator: operator.clone(),
            reason: reason.clone(),
            ..v1::ResolveRunRequest::default()
        };
        assert_eq!(fields(&status(clients.recovery.resolve_run(request).await)), both);
        let request = v1::ApproveStartRequest {
            run_id: run.clone(),
            operator: operator.clone(),
            reason: reason.clone(),
            start_id: "1".into(),
        };
        let all = ["operator", "reason", "start_id"];
        assert_eq!(fields(&status(clients.recovery.approve_start(request).await)), all);
        let request = v1::PlaceHoldRequest { operator, reason, ..hold(Scope::Everything(true)) };
        assert_eq!(fields(&status(clients.holds.place_hold(request).await)), both);
        let request = v1::LiftHoldRequest { operator: text, ..v1::LiftHoldRequest::default() };
        assert_eq!(fields(&status(clients.holds.lift_hold(request).await)), ["scope", "operator"]);
    }
    let page = v1::ListRunsRequest::default;
    for (field, request) in [
        ("target", v1::ListRunsRequest { target: "web".into(), ..page() }),
        ("host", v1::ListRunsRequest { host: "Local".into(), ..page() }),
        ("statuses", v1::ListRunsRequest { statuses: vec![0], ..page() }),
        ("statuses", v1::ListRunsRequest { statuses: vec![1, 8], ..page() }),
        ("page_size", v1::ListRunsRequest { page_size: 1_001, ..page() }),
        ("page_token", v1::ListRunsRequest { page_token: "next".into(), ..page() }),
        ("page_token", v1::ListRunsRequest { page_token: huge(), ..page() }),
        ("request_id", v1::ListRunsRequest { request_id: "two words".into(), ..page() }),
    ] {
        assert_eq!(fields(&status(clients.recovery.list_runs(request).await)), [field]);
    }
    untouched.still(&mut clients).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_breaks_a_rule_names_the_field_and_stores_nothing() {
    let (_world, _node, mut clients) = World::up([]).await;
    let untouched = Untouched::so_far(&mut clients).await;
    let scope = |scope| v1::PlaceHoldRequest { ..hold(scope) };
    let lasting = |seconds, nanos| v1::PlaceHoldRequest {
        duration: Some(Duration { seconds, nanos }),
        ..hold(Scope::Everything(true))
    };
    for (field, request) in [
        ("scope", v1::PlaceHoldRequest { scope: None, ..scope(Scope::Everything(true)) }),
        (
            "scope",
            v1::PlaceHoldRequest { scope: Some(v1::HoldScope::default()), ..scope(Scope::Everything(true)) },
        ),
        ("scope", scope(Scope::Everything(false))),
        ("scope", scope(Scope::Host("Local".into()))),
        ("scope", scope(Scope::Host(huge()))),
        ("scope.host", scope(Scope::Host("elsewhere".into()))),
        ("scope", scope(Scope::Project("shop".into()))),
        ("scope", scope(Scope::Project("local/shop/web".into()))),
        ("scope", scope(Scope::Project(huge()))),
        ("scope.project", scope(Scope::Project("elsewhere/shop".into()))),
        ("scope", scope(Scope::Target("web".into()))),
        ("scope", scope(Scope::Target(format!("local/{}", huge())))),
        ("scope.target", scope(Scope::Target("elsewhere/web".into()))),
        ("duration", lasting(0, 0)),
        ("duration", lasting(-1, 0)),
        ("duration", lasting(0, -1)),
        ("duration", lasting(0, 1)),
        ("duration", lasting(i64::MAX, 0)),
        ("hold_id", v1::PlaceHoldRequest { hold_id: "1".into(), ..hold(Scope::Everything(true)) }),
        ("hold_id", v1::PlaceHoldRequest { hold_id: huge(), ..hold(Scope::Everything(true)) }),
    ] {
        assert_eq!(fields(&status(clients.holds.place_hold(request).await)), [field]);
    }
    let lift = v1::LiftHoldRequest { operator: "kim".into(), ..v1::LiftHoldRequest::default() };
    let everything = hold(Scope::Everything(true)).scope;
    for (field, request) in [
        ("scope", lift.clone()),
        ("hold_id", v1::LiftHoldRequest { hold_id: "1".into(), ..lift.clone() }),
        ("hold_id", v1::LiftHoldRequest { hold_id: "ab".repeat(16), scope: everything, ..lift }),
    ] {
        assert_eq!(fields(&status(clients.holds.lift_hold(request).await)), [field]);
    }
    untouched.still(&mut clients).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_long_is_refused_with_the_limit() {
    let (_world, _node, mut clients) = World::up([]).await;
    let untouched = Untouched::so_far(&mut clients).await;
    let long = "x".repeat(70_000);
    let request = v1::RequestRecoveryRequest { reason: long.clone(), ..ask("local/web") };
    let place = v1::PlaceHoldRequest { reason: long.clone(), ..hold(Scope::Everything(true)) };
    let resolve = v1::ResolveRunRequest { reason: long, ..v1::ResolveRunRequest::default() };
    for status in [
        clients.request(&request).await.unwrap_err(),
        status(clients.holds.place_hold(place).await),
        status(clients.recovery.resolve_run(resolve).await),
    ] {
        assert!(matches!(status.code(), Code::OutOfRange | Code::ResourceExhausted), "{status:?}");
        assert!(status.message().contains("limit is: 65536 bytes"), "{status:?}");
    }
    untouched.still(&mut clients).await;
}
