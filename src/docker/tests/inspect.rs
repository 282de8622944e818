use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use serde_json::{Value, json};

use super::super::raw::{RawEngine, Visit, engine_at, engine_reply};
use super::super::{ApiVersion, EngineLimits, EventHint, ListFilter};
use super::*;
use crate::model::{EngineInstant, StartedAt};

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn id() -> ContainerId {
    ContainerId::new(ID).unwrap()
}

/// What dockerd 20.10 shows of a running container with a health check, cut to what matters.
fn container() -> Value {
    json!({
        "Id": ID,
        "Name": "/web",
        "State": {
            "Status": "running", "Running": true, "Pid": 4711, "ExitCode": 0,
            "StartedAt": "2024-05-01T10:20:30.123456789Z", "FinishedAt": "0001-01-01T00:00:00Z",
            "Health": { "Status": "unhealthy", "FailingStreak": 3, "Log": [] }
        },
        "Config": {
            "Hostname": "0123456789ab", "StopTimeout": 7,
            "Labels": { "com.docker.compose.project": "shop" },
            "Healthcheck": { "Test": ["CMD", "true"], "Interval": 5_000_000_000_i64, "StartPeriod": 1_500_000 }
        }
    })
}

const VERSION: &str = "\r\nApi-Version: 1.41";

/// An engine that answers `/_ping` and `/info`, and everything else by `reply`.
fn engine(reply: impl Fn(&str) -> String + Clone + Send + Sync + 'static) -> RawEngine {
    RawEngine::start(move |mut visit: Visit| {
        let reply = reply.clone();
        async move {
            visit
                .serve(|path| match path {
                    "/_ping" => engine_reply(200, "OK"),
                    "/info" => engine_reply(
                        200,
                        r#"{"ID":"ENGI:NE","Name":"edge","ServerVersion":"20.10.24","Swarm":{"LocalNodeState":"inactive"}}"#,
                    ),
                    path => reply(path),
                })
                .await;
        }
    })
}

fn showing(container: &Value) -> RawEngine {
    let body = container.to_string();
    engine(move |_| engine_reply(200, &body))
}

#[tokio::test]
async fn an_inspect_reads_engine_and_container_over_one_connection() {
    let raw = showing(&container());
    let seen = raw.engine().inspect("web").await.unwrap();
    let sighting = Sighting {
        engine_id: EngineId::new("ENGI:NE").unwrap(),
        container_id: id(),
        name: "web".to_owned(),
        started_at: StartedAt::At(EngineInstant::new(1_714_558_830, 123_456_789).unwrap()),
        finished_at: None,
        state: ContainerState::Running,
        health: Health::Unhealthy,
    };
    let expected = Inspection {
        sighting,
        labels: BTreeMap::from([("com.docker.compose.project".to_owned(), "shop".to_owned())]),
        health_check: Some(HealthCheck { interval_ms: 5_000, timeout_ms: 30_000, start_period_ms: 2 }),
        stop_timeout_s: Some(7),
        is_swarm_task: false,
        pid: Some(4711),
        hostname: "0123456789ab".to_owned(),
    };
    assert_eq!(seen, expected);
    let arrived = raw.after(1).await;
    assert_eq!(arrived.len(), 1, "more than one connection");
    let text = String::from_utf8(arrived[0].clone()).unwrap();
    let asked: Vec<&str> = text.lines().filter(|line| line.starts_with("GET ")).collect();
    assert_eq!(
        asked,
        ["GET /_ping HTTP/1.1", "GET /v1.41/info HTTP/1.1", "GET /v1.41/containers/web/json HTTP/1.1"]
    );
}

#[tokio::test]
async fn an_engine_that_hangs_up_between_two_answers_is_not_asked_again_elsewhere() {
    let raw = RawEngine::start(|mut visit: Visit| async move {
        visit.read_head().await;
        visit.write(engine_reply(200, "OK").as_bytes()).await;
        visit.read_head().await;
        visit.write(engine_reply(200, r#"{"ID":"ENGI:NE"}"#).as_bytes()).await;
    });
    let error = raw.engine().inspect("web").await.unwrap_err();
    assert!(matches!(error, EngineError::Lost { .. }), "{error}");
    assert_eq!(raw.after(1).await.len(), 1, "more than one connection");
}

#[tokio::test]
async fn a_404_is_gone_only_if_an_engine_itself_wrote_it() {
    let proven = engine(|_| engine_reply(404, r#"{"message":"No such container: x"}"#));
    let gone = Observation::Gone { engine_id: EngineId::new("ENGI:NE").unwrap(), successor: None };
    assert_eq!(proven.engine().observe(&id()).await, gone);

    let proxy = engine(|_| "HTTP/1.1 404 X\r\nServer: nginx\r\nContent-Length: 2\r\n\r\nno".to_owned());
    let seen = proxy.engine().observe(&id()).await;
    assert!(matches!(&seen, Observation::Unreadable { detail } if detail.contains("404")), "{seen:?}");

    let failing = engine(|_| engine_reply(500, r#"{"message":"boom"}"#));
    let seen = failing.engine().observe(&id()).await;
    assert!(matches!(&seen, Observation::Unreadable { detail } if detail.contains("500: boom")), "{seen:?}");
}

#[tokio::test]
async fn an_engine_out_of_reach_says_nothing_of_a_container() {
    let dir = tempfile::tempdir().unwrap();
    let seen = engine_at(&dir).observe(&id()).await;
    assert!(matches!(&seen, Observation::Unreadable { detail } if detail.contains("os error 2")), "{seen:?}");
}

#[tokio::test]
async fn a_container_that_makes_its_own_inspect_hang_is_unreadable_at_the_limit() {
    let raw = RawEngine::start(|mut visit: Visit| async move {
        for body in ["OK", r#"{"ID":"ENGI:NE"}"#] {
            visit.read_head().await;
            visit.write(engine_reply(200, body).as_bytes()).await;
        }
        visit.read_to_end().await;
    });
    let limits = EngineLimits { inspect_ms: 50, ..EngineLimits::default() };
    let engine = Engine::new(raw.engine().endpoint().clone(), limits);
    let error = engine.inspect("web").await.unwrap_err();
    assert!(matches!(error, EngineError::TimedOut { limit_ms: 50, .. }), "{error}");
    // The connection went with the look.
    raw.after(1).await;
}

#[tokio::test]
async fn a_container_named_like_anothers_id_is_not_taken_for_it() {
    let mut other = container();
    other["Id"] = json!("f".repeat(64));
    let raw = showing(&other);
    let seen = raw.engine().observe(&id()).await;
    assert!(matches!(&seen, Observation::Unreadable { detail } if detail.contains("another")), "{seen:?}");
}

#[tokio::test]
async fn a_word_that_is_not_known_is_taken_for_nothing_else_and_spoils_nothing_beside_it() {
    let known = showing(&container()).engine().inspect(ID).await.unwrap();
    let odd_state = Sighting { state: ContainerState::Unknown, ..known.sighting.clone() };
    let odd_health = Sighting { health: Health::None, ..known.sighting.clone() };
    for (pointer, word, sighting) in [
        ("/State/Status", "hibernating", odd_state.clone()),
        ("/State/Status", "stopping", odd_state.clone()),
        ("/State/Status", "", odd_state),
        ("/State/Health/Status", "so-so", odd_health.clone()),
        ("/State/Health/Status", "none", odd_health),
        // A part that nobody here looks at.
        ("/HostConfig/RestartPolicy/Name", "perhaps", known.sighting.clone()),
    ] {
        let mut odd = container();
        odd["HostConfig"] = json!({ "RestartPolicy": { "Name": "no" } });
        *odd.pointer_mut(pointer).unwrap() = json!(word);
        let seen = showing(&odd).engine().inspect(ID).await.unwrap();
        assert_eq!(seen, Inspection { sighting, ..known.clone() }, "{pointer}: {word:?}");
    }
}

#[tokio::test]
async fn a_list_with_one_word_that_is_not_known_is_whole() {
    let other = "f".repeat(64);
    let body = json!([
        { "Id": ID, "Names": ["/web"], "Labels": { "a": "b" }, "State": "hibernating" },
        { "Id": other, "Names": ["/db"], "Labels": null, "State": "exited", "Mounts": [{ "Type": "cloud" }] },
    ])
    .to_string();
    let raw = engine(move |_| engine_reply(200, &body));
    let listed = raw.engine().list(&ListFilter::default()).await.unwrap();
    let shown: Vec<_> =
        listed.iter().map(|one| (one.id.as_str(), one.names[0].as_str(), one.state)).collect();
    let expected = [(ID, "web", ContainerState::Unknown), (other.as_str(), "db", ContainerState::Exited)];
    assert_eq!(shown, expected);
    assert_eq!(listed[0].labels, BTreeMap::from([("a".to_owned(), "b".to_owned())]));
}

#[tokio::test]
async fn a_list_with_one_entry_that_names_no_container_is_an_error_and_never_a_part() {
    let body = json!([{ "Id": ID, "State": "hibernating" }, "no container"]).to_string();
    let raw = engine(move |_| engine_reply(200, &body));
    let error = raw.engine().list(&ListFilter::default()).await.unwrap_err();
    assert!(matches!(error, EngineError::Unreadable { .. }), "{error}");
}

#[tokio::test]
async fn a_list_of_nothing_that_names_a_container_is_refused_at_its_first_entry() {
    let body = format!("[{}{{}}]", "{},".repeat(100_000));
    let raw = engine(move |_| engine_reply(200, &body));
    let error = raw.engine().list(&ListFilter::default()).await.unwrap_err();
    let EngineError::Unreadable { detail, .. } = &error else { panic!("{error}") };
    assert!(detail.contains("column 3"), "{detail}");
}

#[tokio::test]
async fn a_list_that_the_engine_refuses_has_its_status_and_its_text() {
    let raw = engine(|path| match path {
        "/_ping" => engine_reply(200, "OK"),
        _ => engine_reply(500, r#"{"message":"disk full"}"#),
    });
    let error = raw.engine().list(&ListFilter::default()).await.unwrap_err();
    assert!(
        matches!(&error, EngineError::Status { status: 500, message, .. } if message == "disk full"),
        "{error}"
    );
}

#[tokio::test]
async fn a_container_of_which_more_is_told_than_is_read_is_unreadable() {
    let mut shown = container();
    shown["Mounts"] = Value::Array(vec![json!({}); 1_000_000]);
    let error = showing(&shown).engine().inspect(ID).await.unwrap_err();
    assert!(matches!(error, EngineError::TooLong { .. }), "{error}");
    let text = error.to_string();
    for part in ["inspecting container 0123", " at unix://", "longer than the 2 MiB", "fewer labels"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let seen = showing(&shown).engine().observe(&id()).await;
    assert!(matches!(&seen, Observation::Unreadable { detail } if detail.contains("2 MiB")), "{seen:?}");
}

#[tokio::test]
async fn a_list_of_which_more_is_told_than_is_read_is_an_error_that_says_what_to_do() {
    let one = json!({ "Id": ID, "Labels": { "a": "b".repeat(100_000) } }).to_string();
    let body = format!("[{}{one}]", format!("{one},").repeat(170));
    let raw = engine(move |_| engine_reply(200, &body));
    let error = raw.engine().list(&ListFilter::default()).await.unwrap_err();
    assert!(matches!(error, EngineError::TooLong { .. }), "{error}");
    let text = error.to_string();
    for part in ["listing containers at unix://", "longer than the 16 MiB", "docker container prune"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

#[tokio::test]
async fn a_container_as_long_as_they_come_is_read() {
    let mut shown = container();
    let log = json!({ "Start": "2024-05-01T10:20:30Z", "ExitCode": 1, "Output": "x".repeat(4096) });
    shown["State"]["Health"]["Log"] = Value::Array(vec![log; 5]);
    shown["Config"]["Env"] = Value::Array(vec![json!(format!("A={}", "y".repeat(1000))); 1000]);
    let seen = showing(&shown).engine().inspect(ID).await.unwrap();
    assert_eq!(seen.sighting.health, Health::Unhealthy);
}

/// An engine whose `/info` is this, and whose replies have this `Server`.
fn informing(server: &'static str, info: impl Fn() -> Value + Send + Sync + 'static) -> RawEngine {
    let info = Arc::new(info);
    let body = container().to_string();
    RawEngine::start(move |mut visit: Visit| {
        let (info, body) = (Arc::clone(&info), body.clone());
        async move {
            let reply = |path: &str| match path {
                "/_ping" => engine_reply(200, "OK"),
                "/info" => engine_reply(200, &info().to_string()),
                _ => engine_reply(200, &body),
            };
            visit.serve(|path| reply(path).replace("Docker/20.10.24", server)).await;
        }
    })
}

#[tokio::test]
async fn an_engine_is_known_in_spite_of_words_that_are_not() {
    let raw = informing(
        "Docker/99",
        || json!({ "ID": "ENGI:NE", "Name": "edge", "CgroupDriver": "magic", "Swarm": { "LocalNodeState": "odd" } }),
    );
    let info = raw.engine().identify().await.unwrap();
    assert_eq!((info.engine_id.as_str(), info.name.as_str()), ("ENGI:NE", "edge"));
    assert!(!info.is_swarm_node);
}

#[tokio::test]
async fn an_engine_without_an_id_is_no_engine_to_speak_of() {
    for info in [json!({}), json!({ "ID": null }), json!({ "ID": "" }), json!({ "ID": "", "Isolation": "x" })]
    {
        let shown = info.clone();
        let raw = informing("Docker/27", move || shown.clone());
        let error = raw.engine().identify().await.unwrap_err();
        assert!(
            matches!(&error, EngineError::Unreadable { detail, .. } if detail.contains("/info")),
            "{error}"
        );
        let seen = raw.engine().observe(&id()).await;
        assert!(matches!(&seen, Observation::Unreadable { .. }), "{info}: {seen:?}");
    }
}

#[tokio::test]
async fn an_engine_with_another_id_at_each_call_is_told_apart() {
    let calls = AtomicUsize::new(0);
    let raw = informing(
        "Libpod/5.4.0",
        move || json!({ "ID": format!("id-{}", calls.fetch_add(1, Ordering::SeqCst)) }),
    );
    let (first, second) = (raw.engine().identify().await.unwrap(), raw.engine().identify().await.unwrap());
    assert!(first.is_podman && second.is_podman, "{first:?}");
    assert_ne!(first.engine_id, second.engine_id);
    // So that nothing of one look is ever taken for the same engine's as that of another.
    let (Observation::Seen(one), Observation::Seen(two)) =
        (raw.engine().observe(&id()).await, raw.engine().observe(&id()).await)
    else {
        panic!("it does not show its container")
    };
    assert_ne!(one.engine_id, two.engine_id);
}

#[tokio::test]
async fn nulls_and_fields_that_are_new_or_left_out_make_no_container_unreadable() {
    let mut odd = container();
    odd["State"]["Status"] = json!(null);
    odd["State"]["Health"] = json!(null);
    odd["State"]["FinishedAt"] = json!(null);
    odd["Config"] = json!({ "Labels": null, "Healthcheck": { "Test": ["NONE"] }, "New": [1, 2] });
    let seen = showing(&odd).engine().inspect(ID).await.unwrap();
    assert_eq!((seen.sighting.state, seen.sighting.health), (ContainerState::Unknown, Health::None));
    assert_eq!(seen.sighting.finished_at, None);
    assert_eq!((seen.labels.len(), seen.health_check, seen.stop_timeout_s), (0, None, None));
}

#[tokio::test]
async fn a_start_is_read_as_the_engine_wrote_it() {
    let at = |seconds, nanos| StartedAt::At(EngineInstant::new(seconds, nanos).unwrap());
    for (text, started_at) in [
        (json!("2024-05-01T10:20:30.000000001Z"), at(1_714_558_830, 1)),
        (json!("2024-05-01T12:20:30.5+02:00"), at(1_714_558_830, 500_000_000)),
        (json!("0001-01-01T00:00:00Z"), StartedAt::Zero),
        (json!(""), StartedAt::Empty),
        (json!(null), StartedAt::Empty),
        (json!("yesterday"), StartedAt::Unreadable("yesterday".to_owned())),
    ] {
        let mut odd = container();
        odd["State"]["StartedAt"] = text.clone();
        let seen = showing(&odd).engine().inspect(ID).await.unwrap();
        assert_eq!(seen.sighting.started_at, started_at, "{text}");
    }
}

#[tokio::test]
async fn an_answer_without_end_is_cut_off_and_said_to_be_too_long() {
    let raw = RawEngine::start(|mut visit: Visit| async move {
        visit.read_head().await;
        visit.write(engine_reply(200, "OK").as_bytes()).await;
        visit.read_head().await;
        visit.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        while visit.write(chunk.as_bytes()).await {}
    });
    let error = raw.engine().identify().await.unwrap_err();
    assert!(matches!(error, EngineError::TooLong { .. }), "{error}");
    raw.after(1).await;
}

#[tokio::test]
async fn an_answer_that_is_no_container_is_unreadable() {
    for body in ["", "null", "[]", "{}", r#"{"Id":"abc","State":{},"Config":{}}"#, "<html>"] {
        let raw = engine(move |_| engine_reply(200, body));
        let error = raw.engine().inspect("web").await.unwrap_err();
        assert!(matches!(error, EngineError::Unreadable { .. }), "{body:?}: {error}");
    }
}

#[tokio::test]
async fn a_text_that_could_leave_its_place_in_the_path_is_never_sent() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let raw = engine(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        engine_reply(200, "{}")
    });
    for bad in ["", "../info", "a/b", "a?b", "a b", "a\r\nX: y", "ä", "/web", &"a".repeat(600)] {
        let error = raw.engine().inspect(bad).await.unwrap_err();
        assert!(matches!(error, EngineError::InvalidReference(_)), "{bad:?}: {error}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_engine_tells_who_it_is() {
    let raw = engine(|_| engine_reply(500, ""));
    let engine = raw.engine();
    let info = tokio::spawn(async move { engine.identify().await }).await.unwrap().unwrap();
    assert_eq!(
        (info.engine_id.as_str(), info.name.as_str(), info.server_version.as_str()),
        ("ENGI:NE", "edge", "20.10.24")
    );
    assert_eq!(info.api_version, ApiVersion { major: 1, minor: 41 });
    assert!(!info.is_podman && !info.is_swarm_node);
}

#[tokio::test]
async fn an_engine_below_the_floor_gives_one_clear_error() {
    let raw = RawEngine::start(|mut visit: Visit| async move {
        visit.serve(|_| engine_reply(200, "OK").replace(VERSION, "\r\nApi-Version: 1.24")).await;
    });
    let error = raw.engine().identify().await.unwrap_err();
    assert_eq!(
        error.to_string().split_once(": ").unwrap().1,
        "the engine speaks API 1.24 at most, relatch needs 1.40 or newer (Docker 19.03); update the engine"
    );
    let arrived = raw.after(1).await;
    assert_eq!(String::from_utf8_lossy(&arrived[0]).matches("GET ").count(), 1);
}

#[tokio::test]
async fn an_engine_that_refuses_every_version_gives_one_clear_error() {
    let refusal = r#"{"message":"client version 1.41 is too old. Minimum supported API version is 1.44"}"#;
    let raw = RawEngine::start(move |mut visit: Visit| async move {
        visit.serve(|_| engine_reply(400, refusal)).await;
    });
    let error = raw.engine().inspect("web").await.unwrap_err().to_string();
    assert!(error.contains("400") && error.contains("Minimum supported API version is 1.44"), "{error}");
}

#[tokio::test]
async fn what_is_no_engine_is_told_apart() {
    let raw = RawEngine::start(|mut visit: Visit| async move {
        visit.serve(|_| "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned()).await;
    });
    let error = raw.engine().identify().await.unwrap_err();
    assert!(matches!(error, EngineError::NotAnEngine { .. }), "{error}");
}

#[tokio::test]
async fn a_list_has_own_names_alone_and_asks_for_the_labels_named() {
    let body = json!([
        { "Id": ID, "Names": ["/web", "/other/alias"], "Labels": { "a": "b" }, "State": "running" },
        { "Id": "f".repeat(64), "Names": null, "Labels": null, "State": "exited" },
    ])
    .to_string();
    let raw = engine(move |_| engine_reply(200, &body));
    let filter = ListFilter { labels: vec!["a=b c".to_owned()], ..ListFilter::default() };
    let listed = raw.engine().list(&filter).await.unwrap();
    assert_eq!(listed.len(), 2);
    assert_eq!((listed[0].id.as_str(), &listed[0].names[..]), (ID, &["web".to_owned()][..]));
    assert_eq!((listed[0].state, listed[1].state), (ContainerState::Running, ContainerState::Exited));
    let arrived = raw.after(1).await;
    let text = String::from_utf8_lossy(&arrived[0]);
    let expected =
        "GET /v1.41/containers/json?all=true&filters=%7B%22label%22%3A%5B%22a%3Db%20c%22%5D%7D HTTP/1.1";
    assert!(text.contains(expected), "{text}");
}

#[tokio::test]
async fn events_are_hints_and_their_stream_ends_with_the_connection() {
    let raw = RawEngine::start(|mut visit: Visit| async move {
        visit.read_head().await;
        visit.write(engine_reply(200, "OK").as_bytes()).await;
        visit.read_head().await;
        visit.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        let first = format!(
            "{{\"Type\":\"container\",\"Action\":\"start\",\"Actor\":{{\"ID\":\"{ID}\"}}}}\nno JSON\n{{\"Ac"
        );
        let rest = format!("tion\":\"health_status: healthy\",\"Actor\":{{\"ID\":\"{ID}\"}}}}\n");
        for part in [first, rest] {
            visit.write(format!("{:x}\r\n{part}\r\n", part.len()).as_bytes()).await;
        }
    });
    let hints: Vec<EventHint> = raw.engine().events().await.unwrap().collect().await;
    let hint = |action: &str| EventHint { container_id: id(), action: action.to_owned() };
    assert_eq!(hints, [hint("start"), hint("health_status: healthy")]);
    let arrived = raw.after(1).await;
    assert_eq!(arrived.len(), 1, "more than one connection");
    let text = String::from_utf8_lossy(&arrived[0]);
    assert!(text.contains("GET /v1.41/events?filters=%7B%22type%22%3A%5B%22container%22%5D%2C"), "{text}");
}

#[tokio::test]
async fn a_list_asks_for_a_plain_name_and_for_none_that_an_engine_may_read_otherwise() {
    let raw = engine(|_| engine_reply(200, "[]"));
    for name in ["shop-web.1_x", "a|b"] {
        let filter = ListFilter { name: Some(name.to_owned()), ..ListFilter::default() };
        raw.engine().list(&filter).await.unwrap();
    }
    let arrived = raw.after(2).await;
    let asked = |at: usize, expected: &str| {
        let text = String::from_utf8_lossy(&arrived[at]);
        assert!(text.contains(expected), "{expected} is not in {text}");
    };
    asked(
        0,
        "/containers/json?all=true&filters=%7B%22name%22%3A%5B%22%5E%2Fshop-web.1_x%24%22%5D%7D HTTP/1.1",
    );
    asked(1, "/containers/json?all=true HTTP/1.1");
}
