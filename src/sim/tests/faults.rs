//! What the script does to an exchange whose request arrived whole.

use std::{
    io::ErrorKind,
    time::{Duration, Instant},
};

use serde_json::json;

use super::rig::{BOTH, Over, Rig, next_restart};
use crate::sim::{
    Action, ContainerSpec, Delivery, Edit, Effect, End, Ended, Endpoint, Event, Hold, Reply, Rule,
};

const RESTART: &str = "/containers/web/restart?t=1";

/// How the last of `count` exchanges ended, and how many bytes of reply it had.
async fn last(rig: &Rig, count: usize) -> (Ended, u64, Option<u16>) {
    match rig.exchanged(count).await.last() {
        Some(Event::Exchanged { ended, sent_bytes, status, .. }) => (*ended, *sent_bytes, *status),
        other => panic!("no exchange: {other:?}"),
    }
}

#[tokio::test]
async fn the_effect_is_applied_and_the_reply_cut() {
    for over in BOTH {
        for end in [End::Fin, End::Rst] {
            let rig = Rig::new().await;
            let before = rig.started_at();
            rig.script(next_restart().named("cut").cut(end));
            let mut raw = rig.connect(over).await;
            raw.send_request("POST", RESTART).await;
            let (bytes, error) = raw.read_to_end().await;
            // A unix socket resets only when bytes of the request were left unread.
            let reset = (over == Over::Tcp && end == End::Rst).then_some(ErrorKind::ConnectionReset);
            assert_eq!((bytes.len(), error), (0, reset), "{over:?} {end:?}");
            assert!(rig.started_at() > before, "the restart was applied");
            let ended = if end == End::Fin { Ended::Fin } else { Ended::Rst };
            assert_eq!(last(&rig, 1).await, (ended, 0, None));
            let posts = rig.posts();
            assert!(matches!(&posts[0].event, Event::Request { rule: Some(rule), .. } if rule == "cut"));
            assert_eq!(rig.post(RESTART).await.status, 204, "the rule is spent");
        }
    }
}

#[tokio::test]
async fn an_early_cut_does_not_wait_for_the_effect() {
    let rig = Rig::new().await;
    let (id, before) = (rig.id(), rig.started_at());
    rig.script(next_restart().hold_effect(Hold::Until("later".into())).early_reply().cut(End::Fin));
    let mut raw = rig.connect(Over::Unix).await;
    raw.send_request("POST", RESTART).await;
    assert_eq!(raw.read_to_end().await.0.len(), 0);
    assert_eq!(rig.started_at(), before);
    rig.engine.release("later");
    rig.logged(|history| history.starts(&id) == 1).await;
    assert!(rig.started_at() > before);
}

#[tokio::test]
async fn a_held_reply_comes_when_it_is_released() {
    for over in BOTH {
        let rig = Rig::new().await;
        let before = rig.started_at();
        rig.script(next_restart().hold_reply(Hold::Until("go".into())));
        let mut raw = rig.connect(over).await;
        raw.send_request("POST", RESTART).await;
        rig.engine.reached("go", 1).await;
        assert!(rig.started_at() > before, "the effect comes first");
        assert!(raw.is_silent().await);
        rig.engine.release("go");
        assert_eq!(raw.reply().await.status, 204);
    }
}

#[tokio::test]
async fn a_held_reply_comes_after_its_time() {
    let rig = Rig::new().await;
    rig.script(Rule::on(Endpoint::Inspect).hold_reply(Hold::Ms(150)));
    let begun = Instant::now();
    assert_eq!(rig.get("/containers/web/json").await.status, 200);
    assert!(begun.elapsed() >= Duration::from_millis(150));
}

#[tokio::test]
async fn a_held_post_lands_after_its_client_has_left_and_the_container_moved_by_itself() {
    let rig = Rig::new().await;
    let (id, before) = (rig.id(), rig.started_at());
    rig.script(next_restart().hold_effect(Hold::Until("proxy".into())).then(Action::MoveStartedAt));
    let mut raw = rig.connect(Over::Tcp).await;
    raw.send_request("POST", RESTART).await;
    rig.engine.reached("proxy", 1).await;
    let by_itself = rig.started_at();
    assert!(by_itself > before);
    drop(raw);
    assert!(matches!(last(&rig, 1).await.0, Ended::ClientClosed | Ended::ClientReset));
    assert_eq!(rig.started_at(), by_itself);
    rig.engine.release("proxy");
    rig.logged(|history| history.starts(&id) == 2).await;
    assert!(rig.started_at() > by_itself);
    assert_eq!(rig.posts().len(), 1);
}

#[tokio::test]
async fn half_a_head_and_then_nothing() {
    for over in BOTH {
        let rig = Rig::new().await;
        let before = rig.started_at();
        rig.script(next_restart().delivery(Delivery::HalfHead { end: End::Fin }));
        rig.script(next_restart().delivery(Delivery::HalfHead { end: End::Stall }));
        let mut raw = rig.connect(over).await;
        raw.send_request("POST", RESTART).await;
        let (bytes, _) = raw.read_to_end().await;
        assert!(bytes.starts_with(b"HTTP/1.1 204") && !bytes.ends_with(b"\r\n\r\n"), "{bytes:?}");
        assert_eq!(last(&rig, 1).await, (Ended::Fin, bytes.len() as u64, Some(204)));
        assert!(rig.started_at() > before);

        let mut raw = rig.connect(over).await;
        raw.send_request("POST", RESTART).await;
        assert_eq!(raw.read_exactly(bytes.len()).await, bytes[..]);
        assert!(raw.is_silent().await);
        drop(raw);
        assert_eq!(last(&rig, 2).await, (Ended::ClientClosed, bytes.len() as u64, Some(204)));
    }
}

#[tokio::test]
async fn a_500_stalls_in_its_body() {
    for over in BOTH {
        let rig = Rig::new().await;
        rig.script(
            next_restart().no_effect().status(500, "boom").delivery(Delivery::HalfBody { end: End::Stall }),
        );
        let before = rig.started_at();
        let mut raw = rig.connect(over).await;
        raw.send_request("POST", RESTART).await;
        let head = String::from_utf8(raw.read_until(b"\r\n\r\n").await).expect("a head");
        let body = "{\"message\":\"boom\"}\n";
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        assert_eq!(raw.read_exactly(body.len() / 2).await, body.as_bytes()[..body.len() / 2]);
        assert!(raw.is_silent().await);
        assert_eq!(rig.started_at(), before, "nothing was applied");
    }
}

#[tokio::test]
async fn exactly_so_many_bytes_of_a_reply() {
    for (end, ended) in [(End::Fin, Ended::Fin), (End::Rst, Ended::Rst)] {
        let rig = Rig::new().await;
        rig.script(next_restart().delivery(Delivery::Bytes { count: 5, end }));
        let mut raw = rig.connect(Over::Unix).await;
        raw.send_request("POST", RESTART).await;
        assert_eq!(raw.read_to_end().await.0, b"HTTP/");
        assert_eq!(last(&rig, 1).await, (ended, 5, Some(204)));
    }
}

#[tokio::test]
async fn bytes_drip_one_by_one() {
    let rig = Rig::new().await;
    rig.script(next_restart().delivery(Delivery::Drip { interval_ms: 2, bytes: 1 }));
    let begun = Instant::now();
    let reply = rig.ask(Over::Tcp, "POST", RESTART).await;
    assert_eq!(reply.status, 204);
    let at_least = Duration::from_millis(2 * reply.head.len() as u64);
    assert!(begun.elapsed() >= at_least, "{} bytes in {:?}", reply.head.len(), begun.elapsed());
}

#[tokio::test]
async fn a_500_after_the_stop_leaves_the_container_down() {
    let rig = Rig::new().await;
    let before = rig.started_at();
    rig.script(next_restart().effect(Effect::StopOnly).status(500, "did not receive an exit event"));
    let reply = rig.post(RESTART).await;
    assert_eq!((reply.status, reply.message().as_str()), (500, "did not receive an exit event"));
    assert!(reply.header("server").is_some());
    assert_eq!(rig.container_state("web").await["Status"], json!("exited"));
    assert_eq!(rig.started_at(), before);
}

#[tokio::test]
async fn a_500_first_and_the_exit_later() {
    let rig = Rig::new().await;
    rig.script(next_restart().no_effect().status(500, "x").then_after_ms(50, Action::Exit { code: 137 }));
    assert_eq!(rig.post(RESTART).await.status, 500);
    let exited = |event: &Event| {
        matches!(event, Event::Effect { effect: crate::sim::EffectKind::Exited, request: None, .. })
    };
    rig.logged(|history| history.entries.iter().any(|entry| exited(&entry.event))).await;
    assert_eq!(rig.container_state("web").await["Status"], json!("exited"));
}

#[tokio::test]
async fn any_status_with_and_without_the_effect() {
    for status in [400, 403, 404, 409, 500, 503] {
        let rig = Rig::new().await;
        let before = rig.started_at();
        rig.script(next_restart().no_effect().status(status, "no"));
        rig.script(next_restart().status(status, "denied afterwards"));
        let reply = rig.post(RESTART).await;
        assert_eq!((reply.status, reply.message().as_str()), (status, "no"));
        assert_eq!(rig.started_at(), before);
        assert_eq!(rig.post(RESTART).await.status, status);
        assert!(rig.started_at() > before, "the second was applied all the same");
    }
}

#[tokio::test]
async fn a_proxy_has_none_of_the_engines_headers() {
    let rig = Rig::new().await;
    rig.script(next_restart().no_effect().proxy_status(502, "<html>Bad Gateway</html>"));
    let reply = rig.ask(Over::Tcp, "POST", RESTART).await;
    assert_eq!((reply.status, reply.body.as_slice()), (502, b"<html>Bad Gateway</html>".as_slice()));
    for header in ["server", "api-version", "ostype"] {
        assert_eq!(reply.header(header), None, "{reply:?}");
    }
}

#[tokio::test]
async fn a_success_that_did_nothing() {
    let rig = Rig::new().await;
    let before = rig.started_at();
    rig.script(next_restart().no_effect());
    assert_eq!(rig.post(RESTART).await.status, 204);
    assert_eq!(rig.started_at(), before);
}

#[tokio::test]
async fn garbage_instead_of_a_reply() {
    let rig = Rig::new().await;
    rig.script(next_restart().reply(Reply::Raw { text: "\u{0}\u{ff}SSH-2.0\r\n".into() }));
    let mut raw = rig.connect(Over::Unix).await;
    raw.send_request("POST", RESTART).await;
    assert_eq!(raw.read_to_end().await.0, b"\x00\xffSSH-2.0\r\n");
}

#[tokio::test]
async fn one_container_never_answers_and_the_others_do() {
    let rig = Rig::new().await;
    rig.engine.add_container(ContainerSpec::named("db")).expect("a second container");
    rig.script(Rule::on(Endpoint::Inspect).forever().never_answer());
    let mut stuck = rig.connect(Over::Unix).await;
    stuck.send_request("GET", "/containers/web/json").await;
    assert_eq!(rig.get("/containers/db/json").await.status, 200);
    assert!(stuck.is_silent().await);
    drop(stuck);
    rig.engine.clear_script(Some("web")).expect("the container exists");
    assert_eq!(rig.get("/containers/web/json").await.status, 200);
}

#[tokio::test]
async fn an_edited_reply_lies_about_one_thing() {
    let rig = Rig::new().await;
    let edit = Edit {
        without_headers: vec!["server".into()],
        set: [("/State/StartedAt".to_owned(), json!(""))].into(),
        unset: vec!["/State/Health".into()],
        ..Edit::default()
    };
    rig.script(Rule::on(Endpoint::Inspect).reply(Reply::Edited(edit)));
    let reply = rig.get("/containers/web/json").await;
    assert_eq!((&reply.json()["State"]["StartedAt"], reply.header("server")), (&json!(""), None));
    assert!(reply.header("api-version").is_some());
}

#[tokio::test]
async fn the_version_is_refused_from_the_post_on() {
    let rig = Rig::new().await;
    let refused = Reply::VersionRefused { minimum: "1.44".into() };
    let post = next_restart().no_effect().reply(refused.clone());
    rig.script(post.then(Action::AddRules {
        rules: vec![Rule::on(Endpoint::Any).no_effect().forever().reply(refused)],
    }));
    assert_eq!(rig.get("/v1.41/containers/web/json").await.status, 200);
    let before = rig.started_at();
    let reply = rig.post("/v1.41/containers/web/restart?t=1").await;
    assert_eq!(reply.status, 400);
    assert!(
        reply.message().starts_with("client version 1.41 is too old. Minimum supported API version is 1.44")
    );
    assert_eq!(rig.get("/v1.41/containers/web/json").await.status, 400);
    assert_eq!(rig.started_at(), before);
}

#[tokio::test]
async fn rules_are_consumed_in_order() {
    let rig = Rig::new().await;
    rig.script(Rule::on(Endpoint::Inspect).skip(1).times(2).status(500, "second and third"));
    rig.script(Rule::on(Endpoint::Inspect).status(503, "first"));
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(rig.get("/containers/web/json").await.status);
    }
    assert_eq!(seen, [503, 500, 500, 200]);
    rig.script(Rule::on(Endpoint::Inspect).after_ms(3_600_000).status(500, "in an hour"));
    assert_eq!(rig.get("/containers/web/json").await.status, 200);
}

#[tokio::test]
async fn engine_wide_rules_reach_every_endpoint() {
    let rig = Rig::new().await;
    rig.engine.script_engine([Rule::default().forever().never_answer()]);
    for target in ["/_ping", "/info", "/containers/json", "/containers/web/json"] {
        let mut raw = rig.connect(Over::Tcp).await;
        raw.send_request("GET", target).await;
        assert!(raw.is_silent().await, "{target}");
    }
    rig.engine.clear_script(None).expect("nothing to look up");
    assert_eq!(rig.get("/_ping").await.status, 200);
}

#[tokio::test]
async fn started_at_moves_between_two_inspects() {
    let rig = Rig::new().await;
    rig.script(Rule::on(Endpoint::Inspect).after_effect_ms(0, Action::MoveStartedAt));
    let first = rig.container_state("web").await["StartedAt"].clone();
    let second = rig.container_state("web").await["StartedAt"].clone();
    assert!(second.as_str() > first.as_str(), "{first} then {second}");
    rig.engine.act(Some("web"), Action::SetStartedAt { value: "yesterday".into() }).expect("an action");
    assert_eq!(rig.container_state("web").await["StartedAt"], json!("yesterday"));
}

#[tokio::test]
async fn a_container_is_replaced_under_its_name() {
    for keep in [None, Some("old_web".to_owned())] {
        let rig = Rig::new().await;
        let (old, before) = (rig.id(), rig.started_at());
        let replace = Action::Replace { id: None, keep_old_as: keep.clone(), rules: Vec::new() };
        rig.script(next_restart().no_effect().cut(End::Fin).then(replace));
        let mut raw = rig.connect(Over::Unix).await;
        raw.send_request("POST", RESTART).await;
        raw.read_to_end().await;
        assert!(rig.id() != old && rig.started_at() > before);
        let kept = rig.get(&format!("/containers/{old}/json")).await;
        match keep {
            None => assert_eq!(kept.status, 404),
            Some(name) => assert_eq!(kept.json()["Name"], json!(format!("/{name}"))),
        }
        assert_eq!(rig.engine.log().posts(&old).len(), 1, "the POST was for the old id");
        assert!(rig.posts().is_empty());
    }
}

#[tokio::test]
async fn a_container_is_paused_between_two_requests() {
    let rig = Rig::new().await;
    rig.script(Rule::on(Endpoint::Inspect).after_effect_ms(0, Action::Pause));
    assert_eq!(rig.container_state("web").await["Status"], json!("running"));
    assert_eq!(rig.container_state("web").await["Status"], json!("paused"));
    for (action, status) in [
        (Action::SetStatus { status: crate::sim::Status::Restarting }, "restarting"),
        (Action::SetStatus { status: crate::sim::Status::Dead }, "dead"),
    ] {
        rig.engine.act(Some("web"), action).expect("an action");
        assert_eq!(rig.container_state("web").await["Status"], json!(status));
    }
    assert_eq!(rig.post(RESTART).await.status, 500, "marked for removal, as a restart says it");
    rig.engine.act(Some("web"), Action::Remove).expect("an action");
    assert_eq!(rig.get("/containers/web/json").await.status, 404);
}
