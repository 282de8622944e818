//! The engine from outside: every test speaks to it over a real socket.

mod bollard_client;
mod connections;
mod controlled;
mod endpoints;
mod faults;
mod logged;
mod model;
mod raw;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use serde_json::Value;
use tempfile::TempDir;

use self::raw::Raw;
use super::{ContainerSpec, Endpoint, Engine, Entry, Event, History, Rule};

/// No test waits longer for what must happen.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// An engine that serves on both kinds of socket.
pub(super) struct Rig {
    pub(super) engine: Engine,
    pub(super) socket: PathBuf,
    pub(super) tcp: SocketAddr,
    _folder: TempDir,
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Unix,
    Tcp,
}

pub(super) const BOTH: [Over; 2] = [Over::Unix, Over::Tcp];

impl Rig {
    /// An engine with one container, `web`.
    pub(super) async fn with(web: ContainerSpec) -> Self {
        let engine = Engine::builder().kill_wait_ms(300).container(web).build().expect("an engine");
        Self::of(engine).await
    }

    pub(super) async fn new() -> Self {
        Self::with(ContainerSpec::named("web")).await
    }

    pub(super) async fn of(engine: Engine) -> Self {
        let folder = TempDir::new().expect("a folder");
        let socket = folder.path().join("docker.sock");
        engine.serve_unix(&socket).await.expect("a unix listener");
        let tcp = engine.serve_tcp(([127, 0, 0, 1], 0).into()).await.expect("a TCP listener");
        Self { engine, socket, tcp, _folder: folder }
    }

    pub(super) async fn connect(&self, over: Over) -> Raw {
        match over {
            Over::Unix => Raw::unix(&self.socket).await.expect("a connection"),
            Over::Tcp => Raw::tcp(self.tcp).await.expect("a connection"),
        }
    }

    /// One request on a connection of its own.
    pub(super) async fn ask(&self, over: Over, method: &str, target: &str) -> raw::Reply {
        self.connect(over).await.ask(method, target).await
    }

    pub(super) async fn get(&self, target: &str) -> raw::Reply {
        self.ask(Over::Unix, "GET", target).await
    }

    pub(super) async fn post(&self, target: &str) -> raw::Reply {
        self.ask(Over::Unix, "POST", target).await
    }

    /// `State` of a container, from an inspect.
    pub(super) async fn container_state(&self, name: &str) -> Value {
        self.get(&format!("/containers/{name}/json")).await.json()["State"].clone()
    }

    pub(super) fn script(&self, rule: Rule) {
        self.engine.script("web", [rule]).expect("the container exists");
    }

    pub(super) fn id(&self) -> String {
        self.engine.container_id("web").expect("the container exists")
    }

    pub(super) fn started_at(&self) -> String {
        self.engine.started_at("web").expect("the container exists")
    }

    /// The log, once it satisfies `condition`.
    pub(super) async fn logged(&self, condition: impl Fn(&History) -> bool) -> History {
        let waited = tokio::time::timeout(PATIENCE, self.engine.log().wait_until(condition)).await;
        waited.unwrap_or_else(|_| panic!("not logged: {:#?}", self.engine.log().history()))
    }

    /// The log, once this many exchanges have ended.
    pub(super) async fn exchanged(&self, count: usize) -> Vec<Event> {
        let history = self.logged(|history| exchanges(history).len() >= count).await;
        exchanges(&history)
    }

    pub(super) fn posts(&self) -> Vec<Entry> {
        self.engine.log().posts(&self.id())
    }
}

pub(super) fn exchanges(history: &History) -> Vec<Event> {
    let events = history.entries.iter().map(|entry| entry.event.clone());
    events.filter(|event| matches!(event, Event::Exchanged { .. })).collect()
}

/// A rule for the next restart.
pub(super) fn next_restart() -> Rule {
    Rule::on(Endpoint::Restart)
}
