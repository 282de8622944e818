//! Without a script the engine is a daemon like any other.

use serde_json::json;

use super::rig::{BOTH, Over, Rig};
use crate::sim::{Action, ContainerSpec, Engine, Health};

#[tokio::test]
async fn every_reply_carries_the_engines_headers() {
    let rig = Rig::new().await;
    for over in BOTH {
        for (method, target) in [
            ("GET", "/_ping"),
            ("HEAD", "/v1.41/_ping"),
            ("GET", "/v1.53/info"),
            ("POST", "/containers/web/restart?t=1"),
            ("GET", "/containers/none/json"),
        ] {
            let reply = rig.ask(over, method, target).await;
            assert_eq!(reply.header("server"), Some("Docker/29.3.1 (linux)"), "{reply:?}");
            assert_eq!(reply.header("api-version"), Some("1.53"), "{reply:?}");
            assert_eq!(reply.header("ostype"), Some("linux"), "{reply:?}");
            assert!(reply.header("date").is_some_and(|date| date.ends_with(" GMT")), "{reply:?}");
        }
    }
    rig.engine.shutdown().await.expect("an orderly end");
}

#[tokio::test]
async fn ping_answers_ok_and_its_head_alone() {
    let rig = Rig::new().await;
    let got = rig.get("/_ping").await;
    assert_eq!((got.status, got.body.as_slice()), (200, b"OK".as_slice()));
    let head = rig.ask(Over::Unix, "HEAD", "/_ping").await;
    assert_eq!((head.status, head.header("content-length")), (200, Some("0")));
}

#[tokio::test]
async fn version_and_info_name_the_engine() {
    let rig = Rig::new().await;
    let version = rig.get("/version").await.json();
    assert_eq!((&version["ApiVersion"], &version["MinAPIVersion"]), (&json!("1.53"), &json!("1.40")));
    let info = rig.get("/info").await.json();
    assert_eq!(info["ID"], json!(rig.engine.engine_id()));
    assert_eq!(info["ServerVersion"], json!("29.3.1"));
    assert_eq!(info["Swarm"]["LocalNodeState"], json!("inactive"));
    assert_eq!(info["ID"], rig.get("/info").await.json()["ID"], "the id is stable");
    rig.engine.act(None, Action::SetEngineId { id: "other".into() }).expect("an action");
    assert_eq!(rig.get("/info").await.json()["ID"], json!("other"));
}

#[tokio::test]
async fn versions_out_of_range_are_refused_in_dockerds_words() {
    let rig = Rig::new().await;
    let old = rig.get("/v1.24/info").await;
    assert_eq!(old.status, 400);
    assert!(
        old.message().starts_with("client version 1.24 is too old. Minimum supported API version is 1.40")
    );
    let new = rig.get("/v1.99/info").await;
    assert_eq!(new.message(), "client version 1.99 is too new. Maximum supported API version is 1.53");
    assert_eq!(rig.get("/images/json").await.message(), "page not found");
}

#[tokio::test]
async fn lists_show_running_ones_and_filter() {
    let engine = Engine::builder()
        .container(ContainerSpec::compose("shop", "web", 1).health(Health::Saturated))
        .container(ContainerSpec::named("db").label("tier", "data"))
        .container(ContainerSpec { status: crate::sim::Status::Exited, ..ContainerSpec::named("job") })
        .build()
        .expect("an engine");
    let rig = Rig::of(engine).await;
    let names = |list: serde_json::Value| -> Vec<String> {
        let list = list.as_array().expect("a list").clone();
        list.iter().map(|entry| entry["Names"][0].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(rig.get("/containers/json").await.json()), ["/db", "/shop-web-1"]);
    assert_eq!(names(rig.get("/containers/json?all=1").await.json()), ["/job", "/db", "/shop-web-1"]);
    let by_label =
        "/containers/json?filters=%7B%22label%22%3A%5B%22com.docker.compose.project%3Dshop%22%5D%7D";
    let listed = rig.get(by_label).await.json();
    assert_eq!(listed[0]["State"], json!("running"));
    assert_eq!(listed[0]["Status"], json!("Up Less than a second (unhealthy)"));
    assert_eq!(listed[0]["Labels"]["com.docker.compose.service"], json!("web"));
    assert_eq!(names(listed), ["/shop-web-1"]);
    let by_health = "/containers/json?filters={%22health%22:{%22unhealthy%22:true}}";
    assert_eq!(names(rig.get(by_health).await.json()), ["/shop-web-1"]);
    assert_eq!(rig.get("/containers/json?filters=x").await.status, 400);
}

#[tokio::test]
async fn inspect_finds_by_id_name_and_prefix() {
    let (one, two) = ("ab".repeat(32), format!("ac{}", "0".repeat(62)));
    let spec = |id: &str, name: &str| ContainerSpec { id: Some(id.into()), ..ContainerSpec::named(name) };
    let first = ContainerSpec { stop_timeout_s: Some(7), ..spec(&one, "web") }.health(Health::Unhealthy);
    let engine = Engine::builder().container(first).container(spec(&two, "db")).build().expect("an engine");
    let rig = Rig::of(engine).await;
    for name in [one.as_str(), "web", "abab"] {
        let found = rig.get(&format!("/v1.47/containers/{name}/json")).await.json();
        assert_eq!((&found["Id"], &found["Name"]), (&json!(one), &json!("/web")), "{name}");
    }
    let found = rig.get("/containers/web/json").await.json();
    assert_eq!(found["Config"]["StopTimeout"], json!(7));
    assert_eq!(found["Config"]["Hostname"], json!("abababababab"));
    assert_eq!(found["Config"]["Healthcheck"]["Interval"], json!(30_000_000_000_i64));
    assert_eq!(found["HostConfig"]["RestartPolicy"]["Name"], json!("no"));
    assert_eq!(found["HostConfig"]["NetworkMode"], json!("bridge"));
    let state = &found["State"];
    assert_eq!((&state["Status"], &state["Running"]), (&json!("running"), &json!(true)));
    assert_eq!(
        (&state["Health"]["Status"], &state["Health"]["FailingStreak"]),
        (&json!("unhealthy"), &json!(3))
    );
    let started = state["StartedAt"].as_str().expect("a time");
    assert_eq!(started.len(), "2026-01-01T00:00:00.123456789Z".len(), "{started}");
    assert_eq!(rig.get("/containers/a/json").await.status, 400, "two ids begin with a");
    let missing = rig.get("/containers/none/json").await;
    assert_eq!((missing.status, missing.message()), (404, "No such container: none".into()));
}

#[tokio::test]
async fn a_restart_moves_started_at_and_nothing_else_does() {
    let rig = Rig::new().await;
    let mut before = rig.started_at();
    for over in BOTH {
        let reply = rig.ask(over, "POST", &format!("/v1.47/containers/{}/restart?t=1", rig.id())).await;
        assert_eq!((reply.status, reply.body.len()), (204, 0));
        assert!(rig.started_at() > before, "{} after {before}", rig.started_at());
        before = rig.started_at();
    }
    assert_eq!(rig.post("/containers/none/restart").await.status, 404);
    assert_eq!(rig.post("/containers/web/restart?t=x").await.status, 400);
    rig.get("/containers/web/json").await;
    assert_eq!(rig.started_at(), before);
    assert_eq!(rig.posts().len(), 3, "two that did it, and one with a bad t");
}

#[tokio::test]
async fn start_and_stop_say_304_when_there_is_nothing_to_do() {
    let rig = Rig::new().await;
    assert_eq!(rig.post("/containers/web/start").await.status, 304);
    assert_eq!(rig.post("/containers/web/stop?t=1").await.status, 204);
    let state = rig.container_state("web").await;
    assert_eq!(
        (&state["Status"], &state["Running"], &state["Pid"]),
        (&json!("exited"), &json!(false), &json!(0))
    );
    assert!(state["FinishedAt"].as_str() > state["StartedAt"].as_str());
    assert_eq!(rig.post("/containers/web/stop").await.status, 304);
    assert_eq!(rig.post("/containers/web/start").await.status, 204);
    assert_eq!(rig.container_state("web").await["Status"], json!("running"));
}

#[tokio::test]
async fn renames_and_removals_follow_dockerds_rules() {
    let rig = Rig::new().await;
    rig.engine.add_container(ContainerSpec::named("db")).expect("a second container");
    let id = rig.id();
    let conflict = rig.post("/containers/web/rename?name=db").await;
    assert_eq!(conflict.status, 409);
    assert!(conflict.message().starts_with("Conflict. The container name \"/db\" is already in use"));
    assert_eq!(rig.post("/containers/web/rename?name=old_web").await.status, 204);
    assert_eq!(rig.get(&format!("/containers/{id}/json")).await.json()["Name"], json!("/old_web"));
    let running = rig.ask(Over::Unix, "DELETE", "/containers/old_web").await;
    assert_eq!(running.status, 409);
    assert_eq!(rig.ask(Over::Unix, "DELETE", "/containers/old_web?force=true").await.status, 204);
    assert_eq!(rig.get(&format!("/containers/{id}/json")).await.status, 404);
}

#[tokio::test]
async fn a_restart_undoes_a_pause() {
    let rig = Rig::new().await;
    assert_eq!(rig.post("/containers/web/pause").await.status, 204);
    let state = rig.container_state("web").await;
    assert_eq!(
        (&state["Status"], &state["Paused"], &state["Running"]),
        (&json!("paused"), &json!(true), &json!(true))
    );
    assert_eq!(rig.post("/containers/web/pause").await.status, 409);
    assert_eq!(rig.post("/containers/web/start").await.status, 409);
    assert_eq!(rig.post("/containers/web/restart?t=1").await.status, 204);
    assert_eq!(rig.container_state("web").await["Status"], json!("running"));
    assert_eq!(rig.post("/containers/web/unpause").await.status, 409);
}

#[tokio::test]
async fn connections_are_kept_alive_and_bodies_are_read() {
    let rig = Rig::new().await;
    let mut raw = rig.connect(Over::Tcp).await;
    assert_eq!(raw.ask("GET", "/_ping").await.status, 200);
    raw.send(b"POST /containers/web/stop HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}").await;
    assert_eq!(raw.reply().await.status, 204);
    raw.send(
        b"POST /containers/web/start HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    )
    .await;
    assert_eq!(raw.reply().await.status, 204);
    raw.send(b"GET /_ping HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    let (last, error) = raw.read_to_end().await;
    assert!(last.ends_with(b"OK") && error.is_none(), "{error:?}");
    assert_eq!(rig.engine.log().history().connections(), 1);
}

#[tokio::test]
async fn what_is_no_request_is_answered_400() {
    let rig = Rig::new().await;
    let mut raw = rig.connect(Over::Unix).await;
    raw.send(b"\x16\x03\x01 hello\r\n\r\n").await;
    let (reply, _) = raw.read_to_end().await;
    assert!(reply.starts_with(b"HTTP/1.1 400 Bad Request\r\n"));
}

#[tokio::test]
async fn events_stream_live_and_from_the_past() {
    let rig = Rig::new().await;
    let mut live = rig.connect(Over::Unix).await;
    live.send_request("GET", "/v1.47/events?filters={%22event%22:[%22start%22]}").await;
    let head = live.read_until(b"\r\n\r\n").await;
    assert!(String::from_utf8_lossy(&head).contains("Transfer-Encoding: chunked"));
    rig.post("/containers/web/restart?t=1").await;
    let size = String::from_utf8(live.read_until(b"\r\n").await).expect("a chunk's size");
    let size = usize::from_str_radix(size.trim(), 16).expect("hexadecimal");
    let event: serde_json::Value = serde_json::from_slice(&live.read_exactly(size).await).expect("JSON");
    assert_eq!((&event["Type"], &event["Action"]), (&json!("container"), &json!("start")));
    assert_eq!(event["Actor"]["ID"], json!(rig.id()));
    assert_eq!(event["Actor"]["Attributes"]["name"], json!("web"));

    rig.engine.act(None, Action::CutEventStreams).expect("an action");
    assert!(live.read_to_end_of_chunks().await, "the stream ends in order");

    let mut past = rig.connect(Over::Tcp).await;
    past.send_request("GET", "/events?since=1700000000&until=1700000001").await;
    let nothing = past.read_until(b"0\r\n\r\n").await;
    assert!(!String::from_utf8_lossy(&nothing).contains("Action"));
    past.send_request("GET", "/events?since=2020-01-01T00:00:00Z&until=9999999999").await;
    let actions = past.read_until(b"\"status\":\"restart\"").await;
    let actions = String::from_utf8_lossy(&actions);
    for action in ["create", "kill", "die", "stop", "start", "restart"] {
        assert!(actions.contains(&format!("\"Action\":\"{action}\"")), "{action} in {actions}");
    }
}

#[tokio::test]
async fn another_engine_makes_a_new_id_at_each_call() {
    let mut spec = crate::sim::EngineSpec::default();
    spec.engine.new_id_each_time = true;
    spec.engine.server = Some("Libpod/5.4.0 (linux)".into());
    let rig = Rig::of(Engine::builder().spec(spec).build().expect("an engine")).await;
    let (first, second) = (rig.get("/info").await, rig.get("/info").await);
    assert_ne!(first.json()["ID"], second.json()["ID"]);
    assert_eq!(first.header("server"), Some("Libpod/5.4.0 (linux)"));
}
