//! One container's state, and the transitions between its states. Nothing here waits or writes.

use jiff::Timestamp;
use tokio::sync::watch;

use super::{
    clock::{ZERO_TIME, rfc3339},
    queue::Queue,
    script::{HealthStatus, Rule, Status},
    spec::{ContainerSpec, Health},
};

/// A container as the engine holds it.
#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) id: String,
    pub(crate) name: String,
    /// As given, with the labels of Compose added.
    pub(crate) spec: ContainerSpec,
    pub(crate) status: Status,
    pub(crate) pid: i64,
    pub(crate) exit_code: i64,
    pub(crate) error: String,
    pub(crate) created: Timestamp,
    pub(crate) started_at: String,
    pub(crate) finished_at: String,
    pub(crate) restart_count: i64,
    pub(crate) health: Option<HealthStatus>,
    pub(crate) failing_streak: i64,
    /// A stop was asked for, so the restart policy keeps still.
    pub(crate) manually_stopped: bool,
    /// Restart requests at work: an auto-remove container survives their stop.
    pub(crate) restarts_at_work: u32,
    /// Number of the current or last run of the process.
    pub(crate) run: u64,
    /// The highest run that has ended; `u64::MAX` once the container is gone.
    pub(crate) ended_run: watch::Sender<u64>,
    pub(crate) rules: Queue<Rule>,
}

impl Container {
    /// A container in the state that its specification names.
    pub(crate) fn new(id: String, mut spec: ContainerSpec, now: Timestamp) -> Self {
        add_compose_labels(&mut spec);
        let name = match (&spec.compose, spec.name.is_empty()) {
            (_, false) => spec.name.clone(),
            (Some(part), true) => format!("{}-{}-{}", part.project, part.service, part.number),
            (None, true) => format!("sim_{}", &id[..12]),
        };
        let mut rules = Queue::default();
        rules.add(spec.rules.clone());
        let mut container = Self {
            id,
            name,
            status: spec.status,
            pid: 0,
            exit_code: 0,
            error: String::new(),
            created: now,
            started_at: ZERO_TIME.into(),
            finished_at: ZERO_TIME.into(),
            restart_count: 0,
            health: None,
            failing_streak: 0,
            manually_stopped: false,
            restarts_at_work: 0,
            run: 0,
            ended_run: watch::Sender::new(0),
            rules,
            spec,
        };
        if container.status != Status::Created {
            container.began(now);
            container.settle_first_health();
            let status = container.spec.status;
            if !matches!(status, Status::Running | Status::Paused) {
                container.ended(now, 0);
            }
            container.status = status;
        }
        container
    }

    fn settle_first_health(&mut self) {
        match self.spec.health {
            Health::None => {}
            Health::Healthy => self.set_health(HealthStatus::Healthy),
            _ => self.set_health(HealthStatus::Unhealthy),
        }
    }

    /// Whether there is something to stop.
    pub(crate) fn is_alive(&self) -> bool {
        matches!(self.status, Status::Running | Status::Paused | Status::Restarting)
    }

    /// The process runs: a new run, a new `StartedAt`.
    pub(crate) fn began(&mut self, now: Timestamp) {
        self.run += 1;
        self.status = Status::Running;
        self.pid = 4_000 + i64::try_from(self.run).unwrap_or(0);
        self.exit_code = 0;
        self.error.clear();
        self.started_at = rfc3339(now);
        self.manually_stopped = false;
        self.health = None;
        self.failing_streak = 0;
        if self.spec.health != Health::None {
            self.set_health(HealthStatus::Starting);
        }
    }

    /// The process has ended. The last health is kept, as the daemon keeps it.
    pub(crate) fn ended(&mut self, now: Timestamp, code: i64) {
        self.status = Status::Exited;
        self.pid = 0;
        self.exit_code = code;
        self.finished_at = rfc3339(now);
        self.ended_run.send_replace(self.run);
    }

    /// A start did not succeed.
    pub(crate) fn failed_to_start(&mut self, error: &str) {
        self.status = Status::Exited;
        self.exit_code = 128;
        self.error = error.to_owned();
    }

    pub(crate) fn set_health(&mut self, status: HealthStatus) {
        self.health = Some(status);
        self.failing_streak = match status {
            HealthStatus::Unhealthy => {
                i64::from(self.spec.healthcheck.as_ref().map_or(3, |check| check.retries))
            }
            _ => 0,
        };
    }

    /// Health after a start has settled, if there is a health check.
    pub(crate) fn settled_health(&self) -> Option<HealthStatus> {
        match self.spec.health {
            Health::None => None,
            Health::Unhealthy => Some(HealthStatus::Unhealthy),
            _ => Some(HealthStatus::Healthy),
        }
    }

    /// Whether the restart policy starts it again after this exit.
    pub(crate) fn policy_restarts(&self) -> bool {
        !self.manually_stopped
            && match self.spec.restart_policy.as_str() {
                "always" | "unless-stopped" => true,
                "on-failure" => self.exit_code != 0,
                _ => false,
            }
    }
}

fn add_compose_labels(spec: &mut ContainerSpec) {
    let Some(part) = &spec.compose else { return };
    let labels = [
        ("com.docker.compose.project", part.project.clone()),
        ("com.docker.compose.service", part.service.clone()),
        ("com.docker.compose.container-number", part.number.to_string()),
        ("com.docker.compose.oneoff", "False".to_owned()),
        ("com.docker.compose.version", "2.40.3".to_owned()),
    ];
    for (key, value) in labels {
        spec.labels.entry(key.to_owned()).or_insert(value);
    }
}
