//! The log is whole, in order, and the same in memory and in the file.

use std::io::Write;

use serde_json::json;

use super::rig::{Over, Rig};
use crate::sim::{ContainerSpec, EffectKind, End, Ended, Engine, EngineSpec, Event, History, Rule};

#[tokio::test]
async fn the_file_holds_what_happened_and_survives_a_torn_tail() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wire.jsonl");
    let engine = Engine::builder().container(ContainerSpec::named("web")).log_file(&path).build();
    let rig = Rig::of(engine.expect("an engine")).await;
    let id = rig.id();
    rig.script(super::rig::next_restart().named("lost").cut(End::Rst));
    let mut raw = rig.connect(Over::Tcp).await;
    raw.send_request("POST", "/v1.47/containers/web/restart?t=3").await;
    raw.read_to_end().await;
    rig.exchanged(1).await;
    rig.engine.shutdown().await.expect("a whole log");

    let read = History::read(&path).expect("a readable log");
    assert_eq!(read.entries, rig.engine.log().history().entries);
    assert!(read.entries.iter().zip(1..).all(|(entry, seq)| entry.seq == seq));
    let posts = read.posts(&id);
    assert_eq!(posts.len(), 1);
    let Event::Request { request, head, head_bytes, target, rule, .. } = &posts[0].event else {
        panic!("{posts:?}")
    };
    assert_eq!(target, "/v1.47/containers/web/restart?t=3");
    assert_eq!(head.len() as u64, *head_bytes);
    assert!(head.starts_with("POST /v1.47/containers/web/restart?t=3 HTTP/1.1\r\nHost: docker\r\n"));
    assert_eq!(rule.as_deref(), Some("lost"));
    assert_eq!(read.ended(*request), Some(Ended::Rst));
    let caused: Vec<EffectKind> = read
        .entries
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::Effect { request: cause, effect, .. } if *cause == Some(*request) => Some(*effect),
            _ => None,
        })
        .collect();
    assert_eq!(caused, [EffectKind::Sigterm, EffectKind::Exited, EffectKind::Started]);

    let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("the log");
    file.write_all(b"{\"seq\":99,\"ti").expect("half a line");
    assert_eq!(History::read(&path).expect("still readable").entries, read.entries);
}

#[tokio::test]
async fn a_shutdown_ends_what_is_going_on_and_says_so() {
    let rig = Rig::new().await;
    rig.script(super::rig::next_restart().never_answer());
    let mut raw = rig.connect(Over::Unix).await;
    raw.send_request("POST", "/containers/web/restart?t=1").await;
    let id = rig.id();
    rig.logged(|history| history.starts(&id) == 1).await;
    rig.engine.shutdown().await.expect("an orderly end");
    assert_eq!(raw.read_to_end().await.0.len(), 0);
    let history = rig.engine.log().history();
    let ended = super::rig::exchanges(&history);
    assert!(matches!(ended[0], Event::Exchanged { ended: Ended::Shutdown, .. }), "{ended:?}");
}

#[test]
fn a_specification_is_data_and_knows_its_words() {
    let text = r#"{
        "engine": { "id": "E", "min_api_version": "1.44" },
        "containers": [{
            "compose": { "project": "shop", "service": "web" },
            "stop": "ignores-sigterm",
            "health": "saturated",
            "stop_timeout_s": 5,
            "rules": [
                { "on": "restart", "delivery": { "nothing": { "end": "rst" } } },
                { "on": "restart", "effect": "stop-only", "reply": { "status": { "status": 500, "message": "x" } } },
                { "on": "inspect", "hold_reply": { "until": "go" }, "forever": true,
                  "then": [{ "after_ms": 5, "action": { "exit": { "code": 1 } } }] },
                { "cut_request": { "after_bytes": 60, "end": "stall" } }
            ]
        }],
        "script": {
            "connections": [
                { "method": "POST", "fault": { "cut-request": { "after_bytes": 7, "end": "rst" } } },
                { "times": 20, "fault": { "close-at-once": {} } }
            ],
            "timeline": [{ "after_ms": 100, "action": { "listen": { "mode": "refuse" } } }]
        }
    }"#;
    let spec: EngineSpec = serde_json::from_str(text).expect("a specification");
    let written = serde_json::to_string(&spec).expect("JSON");
    assert_eq!(serde_json::from_str::<EngineSpec>(&written).expect("the same"), spec);
    assert_eq!(spec.containers[0].rules[0], Rule::on(crate::sim::Endpoint::Restart).cut(End::Rst));
    for wrong in [
        json!({ "container": [] }),
        json!({ "containers": [{ "nmae": "web" }] }),
        json!({ "containers": [{ "rules": [{ "on": "restrat" }] }] }),
        json!({ "script": { "rules": [{ "hold_reply": { "ms": 1, "until": "x" } }] } }),
    ] {
        assert!(serde_json::from_value::<EngineSpec>(wrong.clone()).is_err(), "{wrong}");
    }
}
