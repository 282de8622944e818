//! How containers behave.

use std::time::{Duration, Instant};

use serde_json::json;

use super::rig::{Over, Rig};
use crate::sim::{Action, ContainerSpec, EffectKind, Event, Health, StopBehaviour};

fn did(history: &crate::sim::History, wanted: EffectKind) -> bool {
    history
        .entries
        .iter()
        .any(|entry| matches!(entry.event, Event::Effect { effect, .. } if effect == wanted))
}

#[tokio::test]
async fn who_ignores_sigterm_takes_the_whole_grace() {
    let rig = Rig::with(ContainerSpec::named("web").stop(StopBehaviour::IgnoresSigterm)).await;
    let begun = Instant::now();
    assert_eq!(rig.post("/containers/web/restart?t=1").await.status, 204);
    assert!(begun.elapsed() >= Duration::from_secs(1));
    let history = rig.engine.log().history();
    assert!(did(&history, EffectKind::Sigterm) && did(&history, EffectKind::Sigkill), "{history:#?}");
    let begun = Instant::now();
    rig.post("/containers/web/stop?t=0").await;
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(rig.container_state("web").await["ExitCode"], json!(137));
}

#[tokio::test]
async fn a_restart_goes_on_when_the_client_hangs_up() {
    let rig = Rig::with(ContainerSpec::named("web").stop(StopBehaviour::Polite { after_ms: 200 })).await;
    let (id, before) = (rig.id(), rig.started_at());
    let mut raw = rig.connect(Over::Tcp).await;
    raw.send_request("POST", "/containers/web/restart?t=10").await;
    rig.logged(|history| did(history, EffectKind::Sigterm)).await;
    drop(raw);
    let history =
        rig.logged(|history| history.starts(&id) == 1 && !super::rig::exchanges(history).is_empty()).await;
    assert!(rig.started_at() > before);
    let exchange = &super::rig::exchanges(&history)[0];
    assert!(matches!(exchange, Event::Exchanged { status: None, sent_bytes: 0, .. }), "{exchange:?}");
}

#[tokio::test]
async fn a_second_restart_during_the_stop_joins_the_first() {
    let rig = Rig::with(ContainerSpec::named("web").stop(StopBehaviour::Polite { after_ms: 600 })).await;
    let (first, second) = tokio::join!(
        rig.ask(Over::Unix, "POST", "/containers/web/restart?t=10"),
        rig.ask(Over::Tcp, "POST", "/containers/web/restart?t=10"),
    );
    assert_eq!((first.status, second.status), (204, 204));
    let history = rig.engine.log().history();
    assert_eq!((history.posts(&rig.id()).len(), history.starts(&rig.id())), (2, 1));
}

#[tokio::test]
async fn a_kill_that_outlasts_the_wait_is_a_500_and_leaves_it_down() {
    let stop = StopBehaviour::Unkillable { exits_after_ms: 2_000 };
    let rig = Rig::with(ContainerSpec::named("web").stop(stop)).await;
    let reply = rig.post("/containers/web/restart?t=0").await;
    assert_eq!(reply.status, 500);
    let expected = "Cannot restart container web: tried to kill container, but did not receive an exit event";
    assert_eq!(reply.message(), expected);
    assert_eq!(rig.container_state("web").await["Status"], json!("running"));
    rig.logged(|history| did(history, EffectKind::Exited)).await;
    assert_eq!(rig.container_state("web").await["Status"], json!("exited"));
}

#[tokio::test]
async fn a_saturated_container_is_unhealthy_until_it_is_restarted() {
    let rig = Rig::with(ContainerSpec::named("web").health(Health::Saturated)).await;
    assert_eq!(rig.container_state("web").await["Health"]["Status"], json!("unhealthy"));
    rig.post("/containers/web/restart?t=1").await;
    assert_eq!(rig.container_state("web").await["Health"]["Status"], json!("healthy"));
}

#[tokio::test]
async fn health_takes_its_time_and_may_not_last() {
    let health = Health::SaturatesAgain { after_ms: 150 };
    let spec = ContainerSpec { health_delay_ms: 600, ..ContainerSpec::named("web").health(health) };
    let rig = Rig::with(spec).await;
    let mut events = rig.connect(Over::Unix).await;
    events.send_request("GET", "/events?filters={%22event%22:[%22health_status%22]}").await;
    events.read_until(b"\r\n\r\n").await;
    rig.post("/containers/web/restart?t=1").await;
    assert_eq!(rig.container_state("web").await["Health"]["Status"], json!("starting"));
    events.read_until(b"\"Action\":\"health_status: healthy\"").await;
    events.read_until(b"\"Action\":\"health_status: unhealthy\"").await;
    assert_eq!(rig.container_state("web").await["Health"]["Status"], json!("unhealthy"));
}

#[tokio::test]
async fn dockers_own_policy_starts_a_crashed_container_again() {
    let spec = ContainerSpec {
        restart_policy: "always".into(),
        restart_policy_delay_ms: 600,
        ..ContainerSpec::named("web")
    };
    let rig = Rig::with(spec).await;
    let (id, before) = (rig.id(), rig.started_at());
    rig.engine.act(Some("web"), Action::Exit { code: 1 }).expect("an action");
    let state = rig.container_state("web").await;
    assert_eq!((&state["Status"], &state["Running"]), (&json!("restarting"), &json!(true)));
    rig.logged(|history| history.starts(&id) == 1).await;
    let found = rig.get("/containers/web/json").await.json();
    assert_eq!(found["RestartCount"], json!(1));
    assert!(found["State"]["StartedAt"].as_str() > Some(before.as_str()));
    // A stop that was asked for is no crash.
    rig.post("/containers/web/stop?t=1").await;
    assert_eq!(rig.container_state("web").await["Status"], json!("exited"));
}

#[tokio::test]
async fn a_start_that_fails_is_a_500_after_the_stop() {
    let error = "failed to initialize logging driver: lookup logs: no such host";
    let spec = ContainerSpec { start_error: Some(error.into()), ..ContainerSpec::named("web") };
    let rig = Rig::with(spec).await;
    let reply = rig.post("/containers/web/restart?t=1").await;
    assert_eq!((reply.status, reply.message()), (500, format!("Cannot restart container web: {error}")));
    let state = rig.container_state("web").await;
    assert_eq!((&state["Status"], &state["Error"]), (&json!("exited"), &json!(error)));
}

#[tokio::test]
async fn an_auto_remove_container_is_gone_when_its_start_fails() {
    let spec = ContainerSpec {
        start_error: Some("no such device".into()),
        auto_remove: true,
        ..ContainerSpec::named("web")
    };
    let rig = Rig::with(spec).await;
    let id = rig.id();
    assert_eq!(rig.post("/containers/web/restart?t=1").await.status, 500);
    assert_eq!(rig.get(&format!("/containers/{id}/json")).await.status, 404);
}

#[tokio::test]
async fn a_timeline_needs_no_request() {
    let text = r#"{ "name": "web", "timeline": [{ "after_ms": 50, "action": "move-started-at" }] }"#;
    let rig = Rig::with(serde_json::from_str(text).expect("a specification")).await;
    let (id, before) = (rig.id(), rig.started_at());
    rig.logged(|history| history.starts(&id) == 1).await;
    assert!(rig.started_at() > before);
    assert!(rig.posts().is_empty());
}

#[tokio::test]
async fn the_engines_clock_can_be_moved() {
    let rig = Rig::new().await;
    let before = rig.started_at();
    rig.engine.act(None, Action::SetClockOffset { offset_ms: -3_600_000 }).expect("an action");
    let reply = rig.post("/containers/web/restart?t=1").await;
    assert!(rig.started_at() < before, "a step back shows in StartedAt");
    let date = reply.header("date").expect("a date").to_owned();
    let date = jiff::fmt::strtime::parse("%a, %d %b %Y %H:%M:%S GMT", &date).expect("a date");
    let date = date.to_datetime().expect("a date");
    let date = jiff::tz::Offset::UTC.to_timestamp(date).expect("in UTC");
    assert!(date < before.parse::<jiff::Timestamp>().expect("a time"));
}
