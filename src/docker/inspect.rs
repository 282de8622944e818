//! One look at one container.
//!
//! The engine id and the container are read over one connection (DESIGN §2, *incarnation*): the socket may be
//! replaced by another engine's between two connections, never within one.
//!
//! A word that is not known, for a state say, is never taken for something that it is not; what dates the
//! container's life is read all the same.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::engine::{Engine, ask_engine_id};
use super::error::EngineError;
use super::reply::harmless;
use super::session::Extent;
use super::time::parse_started_at;
use crate::model::{
    ContainerId, ContainerState, EngineId, EngineProof, Health, HealthCheck, Observation, Sighting,
};

/// The labels that swarm puts on the containers of its tasks.
const SWARM_TASK_LABEL: &str = "com.docker.swarm.task.id";

/// What an engine does where a health check leaves a time out (`docker run --help`), in milliseconds.
const DEFAULT_INTERVAL_MS: u64 = 30_000;
const DEFAULT_TIMEOUT_MS: u64 = 30_000;

/// What one inspect showed of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// What the ledger keeps of it.
    pub sighting: Sighting,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// The times of its health check, if it has one.
    pub health_check: Option<HealthCheck>,
    /// Its own `StopTimeout` in seconds, if it has one. Docker reads -1 as "without end".
    pub stop_timeout_s: Option<i64>,
    /// True if a swarm runs it, and would replace it by itself.
    pub is_swarm_task: bool,
    /// Its main process as the engine's machine counts it; none while it does not run.
    pub pid: Option<u32>,
    /// The host name inside; by default the first 12 digits of its id.
    pub hostname: String,
}

impl Engine {
    /// Inspects a container by its full id, or by its exact name without the slash.
    ///
    /// An engine also takes the beginning of an id for a name that it does not know: whoever asks by name
    /// compares the name in the answer.
    ///
    /// # Errors
    ///
    /// [`EngineError::NoSuchContainer`] only if the engine itself said so; every other error says nothing
    /// about the container.
    pub async fn inspect(&self, id_or_name: &str) -> Result<Inspection, EngineError> {
        let reference = checked_reference(id_or_name)?;
        let doing = format!("inspecting container {reference}");
        self.look(doing, self.limits().inspect_ms, Extent::One, |session| async move {
            let engine_id = ask_engine_id(&session).await?;
            match session.ask::<Shown>(&format!("/containers/{reference}/json")).await {
                Ok(shown) => Ok(shown.inspection(engine_id)),
                Err(EngineError::Status { status: 404, message, .. })
                    if session.proof() == EngineProof::Proven =>
                {
                    Err(EngineError::NoSuchContainer { engine_id, reference, message })
                }
                Err(other) => Err(other),
            }
        })
        .await
    }

    /// Looks at a container by its full id, and tells what was seen in the ledger's words.
    ///
    /// `Gone` has no successor: which container answers to a target is for the caller to find out.
    pub async fn observe(&self, id: &ContainerId) -> Observation {
        match self.inspect(id.as_str()).await {
            Ok(seen) if seen.sighting.container_id == *id => Observation::Seen(seen.sighting),
            // A container may bear another's id as its name.
            Ok(seen) => Observation::Unreadable {
                detail: format!(
                    "inspecting container {id}: the engine showed another, {}",
                    seen.sighting.container_id
                ),
            },
            Err(EngineError::NoSuchContainer { engine_id, .. }) => {
                Observation::Gone { engine_id, successor: None }
            }
            Err(error) => Observation::Unreadable { detail: error.to_string() },
        }
    }
}

/// Names and ids as Docker allows them, so that the text can stand in a path as it is.
fn checked_reference(text: &str) -> Result<String, EngineError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    let valid = text.len() <= 512
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        && text.bytes().all(plain);
    if valid { Ok(text.to_owned()) } else { Err(EngineError::InvalidReference(harmless(text, 128))) }
}

/// What is read of a container. A word that is not known, for a state say, spoils nothing beside it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "a container")]
struct Shown {
    id: ContainerId,
    name: Option<String>,
    state: ShownState,
    config: ShownConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ShownState {
    status: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
    pid: Option<i64>,
    health: Option<ShownHealth>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ShownHealth {
    status: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ShownConfig {
    hostname: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    healthcheck: Option<ShownCheck>,
    stop_timeout: Option<i64>,
}

/// Its times are in nanoseconds; 0 stands for the default.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ShownCheck {
    test: Option<Vec<String>>,
    interval: Option<i64>,
    timeout: Option<i64>,
    start_period: Option<i64>,
}

impl Shown {
    fn inspection(self, engine_id: EngineId) -> Inspection {
        let Self { id, name, state, config } = self;
        let health = state.health.and_then(|health| health.status);
        let labels = config.labels.unwrap_or_default();
        Inspection {
            sighting: Sighting {
                engine_id,
                container_id: id,
                name: name.unwrap_or_default().trim_start_matches('/').to_owned(),
                started_at: parse_started_at(&state.started_at.unwrap_or_default()),
                finished_at: parse_started_at(&state.finished_at.unwrap_or_default()).instant(),
                state: state.status.map_or(ContainerState::Unknown, |word| container_state(&word)),
                health: health.map_or(Health::None, |word| health_word(&word)),
            },
            is_swarm_task: labels.contains_key(SWARM_TASK_LABEL),
            labels,
            health_check: config.healthcheck.and_then(ShownCheck::health_check),
            stop_timeout_s: config.stop_timeout,
            pid: state.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0),
            hostname: config.hostname.unwrap_or_default(),
        }
    }
}

impl ShownCheck {
    fn health_check(self) -> Option<HealthCheck> {
        // An empty test means none was set; `NONE` takes out the one of the image.
        let kind = self.test?.into_iter().next()?;
        if kind == "NONE" || kind.is_empty() {
            return None;
        }
        let ms = |nanos: Option<i64>, default_ms| match u64::try_from(nanos.unwrap_or(0)) {
            Ok(nanos) if nanos > 0 => nanos.div_ceil(1_000_000),
            _ => default_ms,
        };
        Some(HealthCheck {
            interval_ms: ms(self.interval, DEFAULT_INTERVAL_MS),
            timeout_ms: ms(self.timeout, DEFAULT_TIMEOUT_MS),
            start_period_ms: ms(self.start_period, 0),
        })
    }
}

/// The engine's word for a state.
pub(super) fn container_state(word: &str) -> ContainerState {
    match word {
        "created" => ContainerState::Created,
        "running" => ContainerState::Running,
        "paused" => ContainerState::Paused,
        "restarting" => ContainerState::Restarting,
        "removing" => ContainerState::Removing,
        "exited" => ContainerState::Exited,
        "dead" => ContainerState::Dead,
        _ => ContainerState::Unknown,
    }
}

/// The engine's word for a health. A word that is not known is never a diagnosis.
fn health_word(word: &str) -> Health {
    match word {
        "starting" => Health::Starting,
        "healthy" => Health::Healthy,
        "unhealthy" => Health::Unhealthy,
        _ => Health::None,
    }
}

#[cfg(test)]
#[path = "tests/inspect.rs"]
mod tests;
