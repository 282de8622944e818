//! What an engine and its containers are at the start, as data.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::script::{EngineScript, Rule, Status, TimedAction};

/// A whole engine: a specification file holds one of these.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineSpec {
    /// What the engine says of itself.
    #[serde(default)]
    pub engine: Identity,
    /// Its containers.
    #[serde(default)]
    pub containers: Vec<ContainerSpec>,
    /// The engine-wide script.
    #[serde(default)]
    pub script: EngineScript,
}

/// What the engine says of itself, and its fixed times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Identity {
    /// `/info` ID; random if absent.
    pub id: Option<String>,
    /// `/info` makes a new ID at each call, as Podman's does.
    pub new_id_each_time: bool,
    /// The engine's own version.
    pub version: String,
    /// The newest API version served.
    pub api_version: String,
    /// The oldest API version served.
    pub min_api_version: String,
    /// The `Server` header; `Docker/<version> (linux)` if absent.
    pub server: Option<String>,
    /// The host's name.
    pub name: String,
    /// How long the engine waits for an exit after SIGKILL before it gives up with a 500.
    pub kill_wait_ms: u64,
    /// Length of the listen queue.
    pub backlog: u32,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            id: None,
            new_id_each_time: false,
            version: "29.3.1".into(),
            api_version: "1.53".into(),
            min_api_version: "1.40".into(),
            server: None,
            name: "sim".into(),
            kill_wait_ms: 10_000,
            backlog: 128,
        }
    }
}

/// A container at the start: a running one that stops at once, unless said otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContainerSpec {
    /// 64 hexadecimal digits; random if absent.
    pub id: Option<String>,
    /// The name, without a slash; for a Compose container made from its labels if empty, else from the id.
    pub name: String,
    /// The image's name.
    pub image: String,
    /// The host name inside; the short id if absent.
    pub hostname: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Adds the labels that Compose sets.
    pub compose: Option<Compose>,
    /// The state at the start.
    pub status: Status,
    /// How the process takes a stop.
    pub stop: StopBehaviour,
    /// `Config.StopTimeout` in seconds.
    pub stop_timeout_s: Option<i64>,
    /// How long a start takes.
    pub start_delay_ms: u64,
    /// Every start fails with this text.
    pub start_error: Option<String>,
    /// What the health check finds.
    pub health: Health,
    /// How the health check is configured; a default one if it finds anything.
    pub healthcheck: Option<Healthcheck>,
    /// How long after a start the health check reports.
    pub health_delay_ms: u64,
    /// `HostConfig.RestartPolicy.Name`, which also governs what follows an exit: `no`, `always`, `unless-stopped`
    /// or `on-failure`.
    pub restart_policy: String,
    /// How long the restart policy waits before it starts the container again.
    pub restart_policy_delay_ms: u64,
    /// `HostConfig.AutoRemove`.
    pub auto_remove: bool,
    /// `HostConfig.NetworkMode`.
    pub network_mode: String,
    /// The script for requests to this container.
    pub rules: Vec<Rule>,
    /// What happens by itself, counted from when the container is added.
    pub timeline: Vec<TimedAction>,
}

impl Default for ContainerSpec {
    fn default() -> Self {
        Self {
            id: None,
            name: String::new(),
            image: "sim:latest".into(),
            hostname: None,
            labels: BTreeMap::new(),
            compose: None,
            status: Status::Running,
            stop: StopBehaviour::default(),
            stop_timeout_s: None,
            start_delay_ms: 0,
            start_error: None,
            health: Health::None,
            healthcheck: None,
            health_delay_ms: 0,
            restart_policy: "no".into(),
            restart_policy_delay_ms: 100,
            auto_remove: false,
            network_mode: "bridge".into(),
            rules: Vec::new(),
            timeline: Vec::new(),
        }
    }
}

impl ContainerSpec {
    /// A running container of this name that stops at once and has no health check.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// A container of a Compose project, named as Compose names it.
    pub fn compose(project: impl Into<String>, service: impl Into<String>, number: u32) -> Self {
        let compose = Compose { project: project.into(), service: service.into(), number };
        Self { compose: Some(compose), ..Self::default() }
    }

    /// Says what the health check finds.
    pub fn health(self, health: Health) -> Self {
        Self { health, ..self }
    }

    /// Says how the process takes a stop.
    pub fn stop(self, stop: StopBehaviour) -> Self {
        Self { stop, ..self }
    }

    /// Adds a label.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// Adds a rule.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }
}

/// Where a container belongs in Compose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compose {
    /// The project.
    pub project: String,
    /// The service.
    pub service: String,
    /// The container's number within the service.
    #[serde(default = "first")]
    pub number: u32,
}

fn first() -> u32 {
    1
}

/// How the process takes a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum StopBehaviour {
    /// It exits so long after SIGTERM.
    Polite {
        /// 0 for at once.
        after_ms: u64,
    },
    /// It runs until SIGKILL, which comes when the grace is over.
    IgnoresSigterm,
    /// SIGKILL too takes effect only after this time.
    Unkillable {
        /// Counted from SIGKILL.
        exits_after_ms: u64,
    },
}

impl Default for StopBehaviour {
    fn default() -> Self {
        Self::Polite { after_ms: 0 }
    }
}

/// What the health check finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Health {
    /// There is no health check.
    #[default]
    None,
    /// Healthy.
    Healthy,
    /// Unhealthy, whatever is done.
    Unhealthy,
    /// Unhealthy until it is restarted.
    Saturated,
    /// As saturated, and unhealthy again some time after each start.
    SaturatesAgain {
        /// Counted from when it is healthy.
        after_ms: u64,
    },
}

/// `Config.Healthcheck`, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Healthcheck {
    /// The command.
    pub test: Vec<String>,
    /// Time between probes.
    pub interval_ms: u64,
    /// Time for one probe.
    pub timeout_ms: u64,
    /// Time after a start in which failures do not count.
    pub start_period_ms: u64,
    /// Failures until unhealthy.
    pub retries: u32,
}

impl Default for Healthcheck {
    fn default() -> Self {
        Self {
            test: vec!["CMD".into(), "true".into()],
            interval_ms: 30_000,
            timeout_ms: 30_000,
            start_period_ms: 0,
            retries: 3,
        }
    }
}
