//! What one look at a container showed.

use serde::{Deserialize, Serialize};

use super::ids::{ContainerId, EngineId};
use super::incarnation::{EngineInstant, StartedAt};

/// `State.Status` of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContainerState {
    /// Created and never started.
    Created,
    /// Running.
    Running,
    /// Paused.
    Paused,
    /// Between two starts of the engine's own restart policy.
    Restarting,
    /// Being removed.
    Removing,
    /// Ended.
    Exited,
    /// A removal that failed half way.
    Dead,
    /// A word that this version does not know.
    Unknown,
}

impl ContainerState {
    /// The engine's word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Restarting => "restarting",
            Self::Removing => "removing",
            Self::Exited => "exited",
            Self::Dead => "dead",
            Self::Unknown => "unknown",
        }
    }
}

/// `State.Health.Status` of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// It has no health check.
    None,
    /// Within its start period.
    Starting,
    /// Healthy.
    Healthy,
    /// Unhealthy.
    Unhealthy,
}

impl Health {
    /// The engine's word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Starting => "starting",
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// The times of a container's health check, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthCheck {
    /// Between two probes.
    pub interval_ms: u64,
    /// The longest that one probe may take.
    pub timeout_ms: u64,
    /// How long failures do not count after a start.
    pub start_period_ms: u64,
}

/// A container as one inspect showed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sighting {
    /// The engine that answered, asked over the same connection.
    pub engine_id: EngineId,
    /// The full id.
    pub container_id: ContainerId,
    /// The name that it has now, without the leading slash.
    pub name: String,
    /// When its current or last life began.
    pub started_at: StartedAt,
    /// When its last life ended, if it did.
    pub finished_at: Option<EngineInstant>,
    /// What it is doing.
    pub state: ContainerState,
    /// What its health check says.
    pub health: Health,
}

/// What one look at a container by its full id showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Observation {
    /// It is there.
    Seen(Sighting),
    /// The engine, proven to be one, answered 404 for the full id.
    Gone {
        /// The engine that answered, asked over the same connection.
        engine_id: EngineId,
        /// The container that answers to the target now, if there is one.
        successor: Option<ContainerId>,
    },
    /// No answer that could be read.
    Unreadable {
        /// Why, in one line.
        detail: String,
    },
}
