//! Another process changes the script of a running engine.

use serde_json::{Value, json};

use super::{
    raw::Raw,
    rig::{Over, Rig},
};
use crate::sim::{
    Action, ActionRequest, ControlAddress, History, Rule, RunOptions, ScriptChange, TimedAction, run,
};

struct Control(Raw);

impl Control {
    async fn open(rig: &Rig) -> Self {
        let any: ControlAddress = "127.0.0.1:0".parse().expect("an address");
        match rig.engine.control(any).await.expect("a control listener") {
            ControlAddress::Tcp(addr) => Self(Raw::tcp(addr).await.expect("a connection")),
            other => panic!("{other}"),
        }
    }

    async fn send(&mut self, method: &str, target: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        let head = format!("{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
        self.0.send((head + &body).as_bytes()).await;
        let reply = self.0.reply().await;
        (reply.status, reply.json())
    }

    async fn get(&mut self, target: &str) -> Value {
        let (status, value) = self.send("GET", target, &Value::Null).await;
        assert_eq!(status, 200, "{target}: {value}");
        value
    }

    async fn post(&mut self, target: &str, body: &Value) -> Value {
        let (status, value) = self.send("POST", target, body).await;
        assert_eq!(status, 200, "{target}: {value}");
        value
    }
}

#[tokio::test]
async fn a_script_is_changed_while_the_engine_runs() {
    let rig = Rig::new().await;
    let mut control = Control::open(&rig).await;
    let added = control.post("/containers", &json!({ "name": "db", "health": "unhealthy" })).await;
    assert_eq!(added["id"], json!(rig.engine.container_id("db").expect("it was added")));

    let change = json!({
        "container": "db",
        "rules": [{ "on": "restart", "hold_reply": { "until": "go" }, "name": "held" }],
    });
    control.post("/script", &change).await;
    let state = control.get("/state").await;
    let db = state["containers"].as_array().expect("a list").iter().find(|entry| entry["name"] == "db");
    assert_eq!(db.expect("db")["rules"][0]["times_left"], json!(1));
    assert_eq!(state["engine_id"], json!(rig.engine.engine_id()));

    let mut raw = rig.connect(Over::Unix).await;
    raw.send_request("POST", "/containers/db/restart?t=1").await;
    control.post("/reached", &json!({ "name": "go" })).await;
    assert!(raw.is_silent().await);
    control.post("/release", &json!({ "name": "go" })).await;
    assert_eq!(raw.reply().await.status, 204);

    let posts = control.get("/posts?container=db").await;
    assert_eq!(posts["count"], json!(1));
    assert_eq!(posts["posts"][0]["event"]["request"]["rule"], json!("held"));
    let log = control.get("/log").await;
    let length = log.as_array().expect("a list").len();
    assert_eq!(control.get(&format!("/log?since={}", length - 1)).await[0]["seq"], json!(length));
    rig.engine.shutdown().await.expect("an orderly end");
}

#[tokio::test]
async fn actions_and_listeners_obey() {
    let rig = Rig::new().await;
    let mut control = Control::open(&rig).await;
    let timed = TimedAction { after_ms: 0, after_effect: false, action: Action::Pause };
    let action = ActionRequest { container: Some("web".into()), timed };
    control.post("/actions", &serde_json::to_value(action).expect("JSON")).await;
    assert_eq!(rig.container_state("web").await["Status"], json!("paused"));
    control.post("/listen", &json!({ "mode": "refuse" })).await;
    assert!(Raw::tcp(rig.tcp).await.is_err());
    control.post("/listen", &json!({ "mode": "open" })).await;
    assert_eq!(rig.get("/_ping").await.status, 200);
    let change =
        ScriptChange { rules: vec![Rule::default().forever().status(500, "x")], ..Default::default() };
    control.post("/script", &serde_json::to_value(change).expect("JSON")).await;
    assert_eq!(rig.get("/_ping").await.status, 500);
    assert_eq!(control.send("DELETE", "/script", &Value::Null).await.0, 200);
    assert_eq!(rig.get("/_ping").await.status, 200);
    control.post("/shutdown", &Value::Null).await;
    rig.engine.end_asked().await;
}

#[tokio::test]
async fn what_cannot_be_done_is_named() {
    let rig = Rig::new().await;
    let mut control = Control::open(&rig).await;
    let (status, said) = control.send("POST", "/script", &json!({ "container": "none", "rules": [] })).await;
    assert_eq!(status, 409);
    assert!(said["message"].as_str().is_some_and(|text| text.contains("no container answers to \"none\"")));
    assert_eq!(control.send("POST", "/script", &json!({ "rule": [] })).await.0, 400);
    assert_eq!(control.send("GET", "/nothing", &Value::Null).await.0, 404);
    let public: ControlAddress = "0.0.0.0:0".parse().expect("an address");
    assert!(rig.engine.control(public).await.is_err(), "whoever reaches it commands the engine");
}

#[tokio::test]
async fn the_control_listener_may_be_a_unix_socket() {
    let rig = Rig::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("control.sock");
    let address: ControlAddress = format!("unix://{}", path.display()).parse().expect("an address");
    rig.engine.control(address).await.expect("a control listener");
    let mut control = Control(Raw::unix(&path).await.expect("a connection"));
    assert_eq!(control.get("/state").await["containers"][0]["name"], json!("web"));
}

#[tokio::test]
async fn a_process_serves_a_file_until_it_is_asked_to_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("spec.json"), r#"{ "containers": [{ "name": "web" }] }"#).expect("a file");
    let options = RunOptions {
        socket: Some(path("docker.sock")),
        tcp: None,
        control: Some(ControlAddress::Unix(path("control.sock"))),
        spec: Some(path("spec.json")),
        log: Some(path("wire.jsonl")),
    };
    let client = async {
        // Both sockets are there before the first await of `run` that can wait.
        let mut raw = Raw::unix(&path("docker.sock")).await.expect("a connection");
        assert_eq!(raw.ask("POST", "/containers/web/restart?t=1").await.status, 204);
        let mut control = Control(Raw::unix(&path("control.sock")).await.expect("a connection"));
        let posts = control.get("/posts?container=web").await;
        control.post("/shutdown", &Value::Null).await;
        posts["container"].as_str().expect("an id").to_owned()
    };
    let (ran, id) = tokio::join!(run(options), client);
    ran.expect("an orderly end");
    let history = History::read(&path("wire.jsonl")).expect("a log");
    assert_eq!((history.posts(&id).len(), history.starts(&id)), (1, 1));
}
