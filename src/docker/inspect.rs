//! One look at one container.
//!
//! The engine id and the container are read over one connection (DESIGN §2, *incarnation*): the socket may be
//! replaced by another engine's between two connections, never within one.
//!
//! Only the fields that are used are read, and a word that is not known is kept apart instead of failing the
//! whole look: an engine that learned a new state must not make all its containers unreadable.

use std::collections::BTreeMap;

use http::StatusCode;
use serde::{Deserialize, Deserializer};

use super::engine::{Engine, ask_engine_id};
use super::error::EngineError;
use super::reply::{harmless, message_of};
use super::session::Session;
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
        self.look(doing, self.limits().inspect_ms, |mut session| async move {
            let engine_id = ask_engine_id(&mut session).await?;
            let answer = session.get(&format!("/containers/{reference}/json")).await?;
            if answer.status == StatusCode::NOT_FOUND && answer.proof() == EngineProof::Proven {
                let message = message_of(&answer.body);
                return Err(EngineError::NoSuchContainer { engine_id, reference, message });
            }
            let raw: RawContainer = session.json(&answer)?;
            raw.inspection(&session, engine_id)
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

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawContainer {
    id: String,
    #[serde(default)]
    name: String,
    state: RawState,
    config: RawConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawState {
    #[serde(default, deserialize_with = "null_as_default")]
    status: String,
    #[serde(default, deserialize_with = "null_as_default")]
    started_at: String,
    #[serde(default, deserialize_with = "null_as_default")]
    finished_at: String,
    #[serde(default)]
    pid: Option<i64>,
    #[serde(default)]
    health: Option<RawHealth>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawHealth {
    #[serde(default, deserialize_with = "null_as_default")]
    status: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawConfig {
    #[serde(default, deserialize_with = "null_as_default")]
    hostname: String,
    #[serde(default, deserialize_with = "null_as_default")]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    stop_timeout: Option<i64>,
    #[serde(default)]
    healthcheck: Option<RawHealthCheck>,
}

/// Times in nanoseconds; 0 stands for the default.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawHealthCheck {
    #[serde(default, deserialize_with = "null_as_default")]
    test: Vec<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    interval: i64,
    #[serde(default, deserialize_with = "null_as_default")]
    timeout: i64,
    #[serde(default, deserialize_with = "null_as_default")]
    start_period: i64,
}

impl RawContainer {
    fn inspection(self, session: &Session, engine_id: EngineId) -> Result<Inspection, EngineError> {
        let container_id =
            ContainerId::new(self.id).map_err(|error| session.unreadable(error.to_string()))?;
        Ok(Inspection {
            sighting: Sighting {
                engine_id,
                container_id,
                name: self.name.trim_start_matches('/').to_owned(),
                started_at: parse_started_at(&self.state.started_at),
                finished_at: parse_started_at(&self.state.finished_at).instant(),
                state: container_state(&self.state.status),
                health: self.state.health.map_or(Health::None, |health| health_word(&health.status)),
            },
            is_swarm_task: self.config.labels.contains_key(SWARM_TASK_LABEL),
            labels: self.config.labels,
            health_check: self.config.healthcheck.and_then(RawHealthCheck::times),
            stop_timeout_s: self.config.stop_timeout,
            pid: self.state.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0),
            hostname: self.config.hostname,
        })
    }
}

impl RawHealthCheck {
    fn times(self) -> Option<HealthCheck> {
        // An empty test means none was set; `NONE` takes out the one of the image.
        let kind = self.test.first().map(String::as_str)?;
        if kind == "NONE" || kind.is_empty() {
            return None;
        }
        let ms = |nanos: i64, default_ms| match u64::try_from(nanos) {
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

/// Go writes `null` for an empty map or list.
pub(super) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
#[path = "tests/inspect.rs"]
mod tests;
