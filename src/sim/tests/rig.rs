//! An engine under test, and how to wait for what it does.

use std::{net::SocketAddr, path::PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use super::raw::{self, PATIENCE, Raw};
use crate::sim::{ContainerSpec, Endpoint, Engine, Entry, Event, History, Rule};

/// An engine that serves on both kinds of socket.
pub(crate) struct Rig {
    pub(crate) engine: Engine,
    pub(crate) socket: PathBuf,
    pub(crate) tcp: SocketAddr,
    _folder: TempDir,
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Unix,
    Tcp,
}

pub(crate) const BOTH: [Over; 2] = [Over::Unix, Over::Tcp];

impl Rig {
    /// An engine with one container, `web`.
    pub(crate) async fn with(web: ContainerSpec) -> Self {
        let engine = Engine::builder().kill_wait_ms(300).container(web).build().expect("an engine");
        Self::of(engine).await
    }

    pub(crate) async fn new() -> Self {
        Self::with(ContainerSpec::named("web")).await
    }

    pub(crate) async fn of(engine: Engine) -> Self {
        let folder = TempDir::new().expect("a folder");
        let socket = folder.path().join("docker.sock");
        engine.serve_unix(&socket).await.expect("a unix listener");
        let tcp = engine.serve_tcp(([127, 0, 0, 1], 0).into()).await.expect("a TCP listener");
        Self { engine, socket, tcp, _folder: folder }
    }

    pub(crate) async fn connect(&self, over: Over) -> Raw {
        match over {
            Over::Unix => Raw::unix(&self.socket).await.expect("a connection"),
            Over::Tcp => Raw::tcp(self.tcp).await.expect("a connection"),
        }
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(&self, over: Over, method: &str, target: &str) -> raw::Reply {
        self.connect(over).await.ask(method, target).await
    }

    pub(crate) async fn get(&self, target: &str) -> raw::Reply {
        self.ask(Over::Unix, "GET", target).await
    }

    pub(crate) async fn post(&self, target: &str) -> raw::Reply {
        self.ask(Over::Unix, "POST", target).await
    }

    /// `State` of a container, from an inspect.
    pub(crate) async fn container_state(&self, name: &str) -> Value {
        self.get(&format!("/containers/{name}/json")).await.json()["State"].clone()
    }

    pub(crate) fn script(&self, rule: Rule) {
        self.engine.script("web", [rule]).expect("the container exists");
    }

    pub(crate) fn id(&self) -> String {
        self.engine.container_id("web").expect("the container exists")
    }

    pub(crate) fn started_at(&self) -> String {
        self.engine.started_at("web").expect("the container exists")
    }

    /// The log, once it satisfies `condition`.
    pub(crate) async fn logged(&self, condition: impl Fn(&History) -> bool) -> History {
        let waited = tokio::time::timeout(PATIENCE, self.engine.log().wait_until(condition)).await;
        waited.unwrap_or_else(|_| panic!("not logged: {:#?}", self.engine.log().history()))
    }

    /// The log, once this many exchanges have ended.
    pub(crate) async fn exchanged(&self, count: usize) -> Vec<Event> {
        let history = self.logged(|history| exchanges(history).len() >= count).await;
        exchanges(&history)
    }

    pub(crate) fn posts(&self) -> Vec<Entry> {
        self.engine.log().posts(&self.id())
    }
}

pub(crate) fn exchanges(history: &History) -> Vec<Event> {
    let events = history.entries.iter().map(|entry| entry.event.clone());
    events.filter(|event| matches!(event, Event::Exchanged { .. })).collect()
}

/// A rule for the next restart.
pub(crate) fn next_restart() -> Rule {
    Rule::on(Endpoint::Restart)
}
