//! One engine: where it listens, how long it may take, and who it says it is.

use std::sync::{Arc, PoisonError, RwLock};

use serde::Deserialize;

use super::endpoint::Endpoint;
use super::error::EngineError;
use super::session::{Extent, Look, Session, Wire};
use super::time::parse_instant;
use super::version::ApiVersion;
use crate::env::{OsSockets, Sockets};
use crate::model::{EngineId, EngineInstant, Holes};

/// How long an engine may take. Every look has one limit over its connection and all its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLimits {
    /// To connect, in milliseconds: its own limit, which takes nothing from the work's (invariant 10).
    pub connect_ms: u64,
    /// For an identify or an inspect, in milliseconds.
    pub inspect_ms: u64,
    /// For a list of all containers, in milliseconds. An engine with many containers takes seconds.
    pub list_ms: u64,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self { connect_ms: 3_000, inspect_ms: 2_000, list_ms: 10_000 }
    }
}

/// A Docker engine, or Podman behind its Docker API. Cheap to clone; holds no connection.
#[derive(Debug, Clone)]
pub struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    endpoint: Endpoint,
    limits: RwLock<EngineLimits>,
    holes: Holes,
    sockets: Arc<dyn Sockets>,
}

/// Who an engine says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineInfo {
    /// `/info` `ID`. Podman makes a new one at each call.
    pub engine_id: EngineId,
    /// Its host's name.
    pub name: String,
    /// As in `20.10.24+dfsg1`.
    pub server_version: String,
    /// The API version that was agreed on.
    pub api_version: ApiVersion,
    /// True for Podman: its engine id is then no identity.
    pub is_podman: bool,
    /// True if it is part of a swarm, whose tasks the swarm itself replaces.
    pub is_swarm_node: bool,
    /// The time on its own clock when it answered; none if it gave none that can be read.
    pub system_time: Option<EngineInstant>,
}

/// What is read of `/info`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "an engine")]
struct Info {
    #[serde(rename = "ID")]
    id: Option<String>,
    name: Option<String>,
    server_version: Option<String>,
    system_time: Option<String>,
    swarm: Option<Swarm>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Swarm {
    local_node_state: Option<String>,
}

impl Engine {
    /// An engine at that endpoint, reached over the machine's own sockets. Nothing is asked or opened yet.
    #[must_use]
    pub fn new(endpoint: Endpoint, limits: EngineLimits) -> Self {
        Self::over(Arc::new(OsSockets), endpoint, limits, Holes::none())
    }

    /// An engine that is reached otherwise, or with a guard taken out for the test that shows what it holds.
    #[must_use]
    pub fn over(sockets: Arc<dyn Sockets>, endpoint: Endpoint, limits: EngineLimits, holes: Holes) -> Self {
        Self(Arc::new(Inner { endpoint, limits: RwLock::new(limits), holes, sockets }))
    }

    /// The same engine with a guard taken out, for the test that shows what the guard holds.
    #[must_use]
    pub fn with_holes(&self, holes: Holes) -> Self {
        let Inner { endpoint, sockets, .. } = &*self.0;
        Self::over(Arc::clone(sockets), endpoint.clone(), self.limits(), holes)
    }

    pub(super) fn sockets(&self) -> &dyn Sockets {
        self.0.sockets.as_ref()
    }

    /// Where it listens.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.endpoint
    }

    /// How long it may take.
    #[must_use]
    pub fn limits(&self) -> EngineLimits {
        *self.0.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long it may take from now on; what is under way keeps the limit that it began with.
    pub fn set_limits(&self, limits: EngineLimits) {
        *self.0.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// The guards that are taken out: none, outside of tests.
    #[must_use]
    pub fn holes(&self) -> Holes {
        self.0.holes
    }

    /// Who the engine is, over one connection, within the inspect limit.
    ///
    /// # Errors
    ///
    /// [`EngineError`]; one that is too old, or no engine at all, is told apart from one that is out of reach.
    pub async fn identify(&self) -> Result<EngineInfo, EngineError> {
        let doing = "identifying the engine".to_owned();
        self.look(doing, self.limits().inspect_ms, Extent::One, |session| async move {
            let info = ask_info(&session).await?;
            let swarm = info.swarm.and_then(|swarm| swarm.local_node_state);
            Ok(EngineInfo {
                engine_id: engine_id(&session, info.id)?,
                name: info.name.unwrap_or_default(),
                server_version: info.server_version.unwrap_or_default(),
                api_version: session.version(),
                is_podman: session.is_podman(),
                is_swarm_node: swarm.as_deref() == Some("active"),
                system_time: info.system_time.and_then(|time| parse_instant(&time).ok()),
            })
        })
        .await
    }

    /// One look: opens one connection, agrees on the API version, and lets `work` ask over it; then drops it.
    /// One limit is over all of that, and one bound over all that is read.
    ///
    /// If the connection ends in the middle, that is an error: what was asked on one engine is never completed
    /// by what may be another.
    pub(super) async fn look<T, F>(
        &self,
        doing: String,
        limit_ms: u64,
        extent: Extent,
        work: impl FnOnce(Session) -> F,
    ) -> Result<T, EngineError>
    where
        F: Future<Output = Result<T, EngineError>>,
    {
        let look = Look { doing, connect_ms: self.limits().connect_ms, limit_ms, extent };
        let whole = async {
            let (wire, connection) = Wire::open(self.sockets(), &self.0.endpoint, &look).await?;
            let asked = async { work(Session::agree(wire, look.of(&self.0.endpoint)).await?).await };
            look.over(&self.0.endpoint, &mut Some(connection), asked).await
        };
        look.within_limit(&self.0.endpoint, whole).await
    }
}

/// Asks for the engine id over the connection of a look.
pub(super) async fn ask_engine_id(session: &Session) -> Result<EngineId, EngineError> {
    let info = ask_info(session).await?;
    engine_id(session, info.id)
}

async fn ask_info(session: &Session) -> Result<Info, EngineError> {
    session.ask("/info").await
}

fn engine_id(session: &Session, id: Option<String>) -> Result<EngineId, EngineError> {
    let id = id.unwrap_or_default();
    EngineId::new(id).map_err(|error| session.unreadable(format!("/info: {error}")))
}
