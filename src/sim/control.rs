//! The control listener: another process reads and changes the script of a running engine over it.
//!
//! Plain HTTP with JSON, on an address of its own, so that no fault of the engine's wire touches it:
//!
//! | request | does |
//! | --- | --- |
//! | `GET /state` | the engine, its containers, the rules that are left, the gates, the listeners |
//! | `GET /log?since=SEQ` | the entries of the wire log after `SEQ` |
//! | `GET /posts?container=NAME` | the restart requests that arrived for a container |
//! | `POST /containers` | adds the [`ContainerSpec`] in the body; answers `{"id": …}` |
//! | `POST /script` | adds the rules of a [`ScriptChange`] |
//! | `DELETE /script?container=NAME` | takes back the rules of a container, or the engine-wide ones |
//! | `POST /actions` | does the [`ActionRequest`] in the body |
//! | `POST /release` | releases the gate `{"name": …}` |
//! | `POST /reached` | waits until `{"name": …, "count": …}` requests came to a gate |
//! | `POST /listen` | sets `{"mode": …}` and answers when it is carried out |
//! | `POST /shutdown` | asks for the end of the engine |
//!
//! Success is 200 with JSON; what cannot be done is 4xx with `{"message": …}`.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, UnixListener},
};

use super::{
    engine::Engine,
    error::SimError,
    http::{BodyLength, Head, Response},
    render,
    script::{ListenMode, Rule, TimedAction},
    spec::ContainerSpec,
    wire::ConnectionRule,
};

/// A body of the control listener may be a long script, but not a runaway one.
const BODY_LIMIT: u64 = 16 * 1024 * 1024;

/// The body of `POST /script`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptChange {
    /// Whose rules these are; the engine's if absent.
    #[serde(default)]
    pub container: Option<String>,
    /// Rules for requests.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Engine-wide rules for connections.
    #[serde(default)]
    pub connections: Vec<ConnectionRule>,
}

/// The body of `POST /actions`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionRequest {
    /// To which container; not needed for engine-wide actions.
    #[serde(default)]
    pub container: Option<String>,
    /// What, and after how long.
    pub timed: TimedAction,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GateName {
    name: String,
    #[serde(default)]
    count: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listening {
    mode: ListenMode,
}

/// Where the control listener is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlAddress {
    /// A unix socket.
    Unix(std::path::PathBuf),
    /// A loopback address.
    Tcp(SocketAddr),
}

impl std::str::FromStr for ControlAddress {
    type Err = SimError;

    /// Reads `IP:PORT`, or else a path, with or without `unix:`.
    fn from_str(text: &str) -> Result<Self, SimError> {
        match text.parse() {
            Ok(addr) => Ok(Self::Tcp(addr)),
            Err(_) => {
                let path = text.strip_prefix("unix:").unwrap_or(text);
                Ok(Self::Unix(path.strip_prefix("//").unwrap_or(path).into()))
            }
        }
    }
}

impl std::fmt::Display for ControlAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp(addr) => write!(f, "{addr}"),
        }
    }
}

impl Engine {
    /// Opens the control listener; gives its address, in which a port 0 is replaced by the real one. Whoever reaches
    /// it commands the engine, so a TCP address that is not loopback is refused.
    pub async fn control(&self, address: ControlAddress) -> Result<ControlAddress, SimError> {
        let failed = |source| SimError::Listen { address: address.to_string(), source };
        match &address {
            ControlAddress::Unix(path) => {
                if path.exists() {
                    std::fs::remove_file(path).map_err(failed)?;
                }
                let listener = UnixListener::bind(path).map_err(failed)?;
                let engine = self.clone();
                self.inner.tasks.spawn(async move {
                    while let Ok((stream, _)) = listener.accept().await {
                        engine.inner.tasks.spawn(serve(engine.clone(), stream));
                    }
                });
                Ok(address)
            }
            ControlAddress::Tcp(addr) => {
                if !addr.ip().is_loopback() {
                    let problem = format!("the control address {addr} is not loopback");
                    return Err(SimError::Script { problem });
                }
                let listener = TcpListener::bind(addr).await.map_err(failed)?;
                let bound = listener.local_addr().map_err(failed)?;
                let engine = self.clone();
                self.inner.tasks.spawn(async move {
                    while let Ok((stream, _)) = listener.accept().await {
                        engine.inner.tasks.spawn(serve(engine.clone(), stream));
                    }
                });
                Ok(ControlAddress::Tcp(bound))
            }
        }
    }
}

/// Serves requests until the client leaves or sends what is none.
async fn serve(engine: Engine, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut buffered = Vec::new();
    while let Some((head, body)) = read(&mut stream, &mut buffered).await {
        let response = match command(&engine, &head, &body).await {
            Ok(value) => Response::json(200, &value),
            Err(Refused::Unknown) => {
                Response::message(404, "no such command; see the documentation of sim::control")
            }
            Err(Refused::Body(error)) => Response::message(400, &format!("the body: {error}")),
            Err(Refused::Engine(error)) => Response::message(409, &error.to_string()),
        };
        let bytes = [response.head_bytes(), response.body].concat();
        if stream.write_all(&bytes).await.is_err() || !head.keeps_alive() {
            return;
        }
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin), buffered: &mut Vec<u8>) -> Option<(Head, Vec<u8>)> {
    let end = loop {
        if let Some(end) = buffered.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(buffered).await.ok()? == 0 {
            return None;
        }
    };
    let head = Head::parse(&buffered[..end]).ok()?;
    let BodyLength::Known(length @ ..=BODY_LIMIT) = head.body_length().ok()? else { return None };
    let whole = end + usize::try_from(length).ok()?;
    while buffered.len() < whole {
        if stream.read_buf(buffered).await.ok()? == 0 {
            return None;
        }
    }
    let rest = buffered.split_off(whole);
    let request = std::mem::replace(buffered, rest);
    Some((head, request[end..].to_vec()))
}

enum Refused {
    Unknown,
    Body(serde_json::Error),
    Engine(SimError),
}

impl From<SimError> for Refused {
    fn from(error: SimError) -> Self {
        Self::Engine(error)
    }
}

impl From<serde_json::Error> for Refused {
    fn from(error: serde_json::Error) -> Self {
        Self::Body(error)
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    Ok(serde_json::from_slice(body)?)
}

async fn command(engine: &Engine, head: &Head, body: &[u8]) -> Result<Value, Refused> {
    let done = || json!({ "done": true });
    match (head.method.as_str(), head.path.as_str()) {
        ("GET", "/state") => Ok(state(engine)),
        ("GET", "/log") => {
            let since = head.query("since").and_then(|text| text.parse().ok()).unwrap_or(0);
            Ok(serde_json::to_value(engine.log().since(since))?)
        }
        ("GET", "/posts") => {
            let name = head.query("container").unwrap_or_default();
            // A full id is asked for as it is: the container may be gone.
            let id = engine.container_id(name).unwrap_or_else(|_| name.to_owned());
            let posts = engine.log().posts(&id);
            Ok(json!({ "container": id, "count": posts.len(), "posts": posts }))
        }
        ("POST", "/containers") => {
            let id = engine.add_container(parse::<ContainerSpec>(body)?)?;
            Ok(json!({ "id": id }))
        }
        ("POST", "/script") => {
            let change: ScriptChange = parse(body)?;
            match &change.container {
                Some(name) => engine.script(name, change.rules)?,
                None => engine.script_engine(change.rules),
            }
            engine.script_connections(change.connections)?;
            Ok(done())
        }
        ("DELETE", "/script") => {
            engine.clear_script(head.query("container"))?;
            Ok(done())
        }
        ("POST", "/actions") => {
            let ActionRequest { container, timed } = parse(body)?;
            match timed.after_ms {
                0 => engine.act(container.as_deref(), timed.action)?,
                _ => engine.schedule(container, timed),
            }
            Ok(done())
        }
        ("POST", "/release") => {
            engine.release(&parse::<GateName>(body)?.name);
            Ok(done())
        }
        ("POST", "/reached") => {
            let gate: GateName = parse(body)?;
            engine.reached(&gate.name, gate.count.unwrap_or(1)).await;
            Ok(done())
        }
        ("POST", "/listen") => {
            engine.listen(parse::<Listening>(body)?.mode).await;
            Ok(done())
        }
        ("POST", "/shutdown") => {
            engine.inner.end_asked.send_replace(true);
            Ok(done())
        }
        _ => Err(Refused::Unknown),
    }
}

fn state(engine: &Engine) -> Value {
    let now = engine.inner.clock.next();
    let gates: Vec<Value> = engine
        .inner
        .gates
        .list()
        .into_iter()
        .map(|(name, open, reached)| json!({ "name": name, "open": open, "reached": reached }))
        .collect();
    let state = engine.state();
    let rules_left = |rules: &mut dyn Iterator<Item = (&Rule, Option<u32>)>| -> Vec<Value> {
        rules.map(|(rule, times)| json!({ "rule": rule, "times_left": times })).collect()
    };
    let containers: Vec<Value> = state
        .containers
        .iter()
        .map(|container| {
            json!({
                "id": container.id,
                "name": container.name,
                "started_at": container.started_at,
                "inspect": render::inspect(container, now),
                "rules": rules_left(&mut container.rules.left()),
            })
        })
        .collect();
    let connections: Vec<Value> = state
        .connection_rules
        .left()
        .map(|(rule, times)| json!({ "rule": rule, "times_left": times }))
        .collect();
    let listeners: Vec<Value> = state
        .listeners
        .iter()
        .map(|(address, mode)| json!({ "address": address, "mode": *mode.borrow() }))
        .collect();
    json!({
        "engine_id": state.engine_id,
        "containers": containers,
        "rules": rules_left(&mut state.rules.left()),
        "connections": connections,
        "gates": gates,
        "listeners": listeners,
    })
}
