//! What the engine does to containers: stop, start, restart and the rest. It goes on whether or not a client waits.

use std::time::Duration;

use super::{
    container::Container,
    engine::Engine,
    error::ApiError,
    render::health_word,
    script::{HealthStatus, Status},
    spec::{Health, StopBehaviour},
    wire_log::EffectKind,
};

/// dockerd's grace where neither request nor container names one.
const DEFAULT_GRACE_S: i64 = 10;
const KILLED: i64 = 137;

impl Engine {
    /// Stops and starts a container. `grace_s` of `None` leaves the grace to the container. As in dockerd, every
    /// error after the lookup becomes a 500, even when the stop has already landed.
    pub(crate) async fn restart(
        &self,
        id: &str,
        grace_s: Option<i64>,
        request: Option<u64>,
    ) -> Result<(), ApiError> {
        self.state().get(id)?.restarts_at_work += 1;
        let result = match self.stop(id, grace_s, request).await {
            Ok(_) => self.start(id, request).await.map(|_| ()),
            Err(error) => Err(error),
        };
        let mut state = self.state();
        let name = match state.get(id) {
            Ok(container) => {
                container.restarts_at_work -= 1;
                if result.is_ok() {
                    self.emit(container, "restart", &[]);
                }
                container.name.clone()
            }
            Err(_) => id.to_owned(),
        };
        let cannot = |error: ApiError| format!("Cannot restart container {name}: {}", error.message);
        result.map_err(|error| ApiError::new(500, cannot(error)))
    }

    /// Stops a container; `false` if it was not running. A negative grace waits for ever.
    pub(crate) async fn stop(
        &self,
        id: &str,
        grace_s: Option<i64>,
        request: Option<u64>,
    ) -> Result<bool, ApiError> {
        let (run, mut ended, behaviour, grace_s) = {
            let mut state = self.state();
            let container = state.get(id)?;
            if !container.is_alive() {
                return Ok(false);
            }
            container.manually_stopped = true;
            if container.status == Status::Restarting {
                // Between two runs there is no process to signal.
                container.ended(self.inner.clock.next(), container.exit_code);
                self.note(container, request, EffectKind::Exited, Some("stop"));
                return Ok(true);
            }
            if container.status == Status::Paused {
                // The daemon signals a paused container and lets it go on, so that it can exit.
                container.status = Status::Running;
                self.note(container, request, EffectKind::Unpaused, Some("unpause"));
            }
            self.note(container, request, EffectKind::Sigterm, None);
            self.emit(container, "kill", &[("signal", "15".into())]);
            let grace = grace_s.or(container.spec.stop_timeout_s).unwrap_or(DEFAULT_GRACE_S);
            (container.run, container.ended_run.subscribe(), container.spec.stop, grace)
        };
        if let StopBehaviour::Polite { after_ms } = behaviour {
            self.exit_after_ms(after_ms, id, run, 0, request);
        }
        if !has_ended(&mut ended, run, u64::try_from(grace_s).ok().map(Duration::from_secs)).await {
            self.kill(id, run, behaviour, request);
            let wait = Duration::from_millis(self.inner.identity.kill_wait_ms);
            if !has_ended(&mut ended, run, Some(wait)).await {
                let message = "tried to kill container, but did not receive an exit event";
                return Err(ApiError::new(500, message));
            }
        }
        if let Ok(container) = self.state().get(id) {
            self.emit(container, "stop", &[]);
        }
        Ok(true)
    }

    fn kill(&self, id: &str, run: u64, behaviour: StopBehaviour, request: Option<u64>) {
        if let Ok(container) = self.state().get(id) {
            self.note(container, request, EffectKind::Sigkill, None);
            self.emit(container, "kill", &[("signal", "9".into())]);
        }
        let after_ms = match behaviour {
            StopBehaviour::Unkillable { exits_after_ms } => exits_after_ms,
            _ => 0,
        };
        self.exit_after_ms(after_ms, id, run, KILLED, request);
    }

    fn exit_after_ms(&self, after_ms: u64, id: &str, run: u64, code: i64, request: Option<u64>) {
        if after_ms == 0 {
            self.exit(id, Some(run), code, request);
            return;
        }
        let (engine, id) = (self.clone(), id.to_owned());
        self.inner.tasks.spawn(async move {
            tokio::time::sleep(Duration::from_millis(after_ms)).await;
            engine.exit(&id, Some(run), code, request);
        });
    }

    /// The process ends, if `run` (any, without one) is still the current one. The restart policy and auto-remove
    /// follow from it.
    pub(crate) fn exit(&self, id: &str, run: Option<u64>, code: i64, request: Option<u64>) {
        let mut state = self.state();
        let Ok(container) = state.get(id) else { return };
        let runs = matches!(container.status, Status::Running | Status::Paused);
        if !runs || run.is_some_and(|run| run != container.run) {
            return;
        }
        container.ended(self.inner.clock.next(), code);
        self.note(container, request, EffectKind::Exited, None);
        self.emit(container, "die", &[("exitCode", code.to_string())]);
        if container.policy_restarts() {
            container.status = Status::Restarting;
            let (delay_ms, run) = (container.spec.restart_policy_delay_ms, container.run);
            let (engine, id) = (self.clone(), id.to_owned());
            self.inner.tasks.spawn(async move {
                tokio::time::sleep(Duration::from_millis(delay_ms)).await;
                engine.restart_by_policy(&id, run);
            });
        } else if container.spec.auto_remove && container.restarts_at_work == 0 {
            drop(state);
            self.discard(id, request);
        }
    }

    fn restart_by_policy(&self, id: &str, run: u64) {
        let mut state = self.state();
        let Ok(container) = state.get(id) else { return };
        if container.status == Status::Restarting && container.run == run {
            container.restart_count += 1;
            self.begin(container, None);
        }
    }

    /// Starts a container; `false` if it runs already.
    pub(crate) async fn start(&self, id: &str, request: Option<u64>) -> Result<bool, ApiError> {
        let delay_ms = {
            let mut state = self.state();
            let container = state.get(id)?;
            match container.status {
                Status::Running | Status::Restarting => return Ok(false),
                Status::Paused => {
                    let message = "cannot start a paused container, try unpause instead";
                    return Err(ApiError::new(409, message));
                }
                Status::Dead | Status::Removing => {
                    let message = "container is marked for removal and cannot be started";
                    return Err(ApiError::new(409, message));
                }
                Status::Created | Status::Exited => container.spec.start_delay_ms,
            }
        };
        if delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        }
        let mut state = self.state();
        let container = state.get(id)?;
        if container.is_alive() {
            // Another request started it meanwhile.
            return Ok(false);
        }
        if let Some(error) = container.spec.start_error.clone() {
            container.failed_to_start(&error);
            self.note(container, request, EffectKind::StartFailed, None);
            if container.spec.auto_remove {
                drop(state);
                self.discard(id, request);
            }
            return Err(ApiError::new(500, error));
        }
        self.begin(container, request);
        Ok(true)
    }

    /// A new run begins, and with it the health check.
    pub(crate) fn begin(&self, container: &mut Container, request: Option<u64>) {
        container.began(self.inner.clock.next());
        self.note(container, request, EffectKind::Started, Some("start"));
        let Some(settled) = container.settled_health() else { return };
        let (id, run, delay_ms) = (container.id.clone(), container.run, container.spec.health_delay_ms);
        if delay_ms == 0 {
            container.set_health(settled);
            self.emit_health(container, settled);
        }
        let again_ms = match container.spec.health {
            Health::SaturatesAgain { after_ms } => Some(after_ms),
            _ => None,
        };
        if delay_ms == 0 && again_ms.is_none() {
            return;
        }
        let engine = self.clone();
        self.inner.tasks.spawn(async move {
            if delay_ms > 0 {
                tokio::time::sleep(Duration::from_millis(delay_ms)).await;
                engine.set_health(&id, run, settled);
            }
            if let Some(again_ms) = again_ms {
                tokio::time::sleep(Duration::from_millis(again_ms)).await;
                engine.set_health(&id, run, HealthStatus::Unhealthy);
            }
        });
    }

    fn set_health(&self, id: &str, run: u64, status: HealthStatus) {
        let mut state = self.state();
        let Ok(container) = state.get(id) else { return };
        if container.run == run && container.status == Status::Running {
            container.set_health(status);
            self.emit_health(container, status);
        }
    }

    pub(crate) fn emit_health(&self, container: &Container, status: HealthStatus) {
        self.emit(container, &format!("health_status: {}", health_word(status)), &[]);
    }

    /// Freezes or thaws a container.
    pub(crate) fn pause(&self, id: &str, paused: bool, request: Option<u64>) -> Result<(), ApiError> {
        let mut state = self.state();
        let container = state.get(id)?;
        let problem = match (paused, container.status) {
            (true, Status::Running) => None,
            (true, Status::Paused) => Some("is already paused"),
            (true, _) => Some("is not running"),
            (false, Status::Paused) => None,
            (false, _) => Some("is not paused"),
        };
        if let Some(problem) = problem {
            return Err(ApiError::new(409, format!("Container {} {problem}", container.id)));
        }
        let (status, effect, event) = match paused {
            true => (Status::Paused, EffectKind::Paused, "pause"),
            false => (Status::Running, EffectKind::Unpaused, "unpause"),
        };
        container.status = status;
        self.note(container, request, effect, Some(event));
        Ok(())
    }

    /// Gives a container another name.
    pub(crate) fn rename(&self, id: &str, name: &str, request: Option<u64>) -> Result<(), ApiError> {
        let name = name.strip_prefix('/').unwrap_or(name);
        if name.is_empty() {
            return Err(ApiError::new(400, "Neither old nor new names may be empty"));
        }
        let mut state = self.state();
        let at = state.find(id)?;
        if state.containers[at].name == name {
            return Err(ApiError::new(400, "Renaming a container with the same name as its current name"));
        }
        if let Some(other) = state.containers.iter().find(|container| container.name == name) {
            let message = format!(
                "Conflict. The container name \"/{name}\" is already in use by container \"{}\". You have to remove \
                 (or rename) that container to be able to reuse that name.",
                other.id
            );
            return Err(ApiError::new(409, message));
        }
        let container = &mut state.containers[at];
        let old = std::mem::replace(&mut container.name, name.to_owned());
        self.note(container, request, EffectKind::Renamed, None);
        self.emit(container, "rename", &[("oldName", format!("/{old}"))]);
        Ok(())
    }

    /// Removes a container as a client may.
    pub(crate) fn remove(&self, id: &str, force: bool, request: Option<u64>) -> Result<(), ApiError> {
        {
            let mut state = self.state();
            let container = state.get(id)?;
            if container.is_alive() && !force {
                let message = format!(
                    "cannot remove container \"/{}\": container is running: stop the container before removing or \
                     force remove",
                    container.name
                );
                return Err(ApiError::new(409, message));
            }
        }
        self.discard(id, request);
        Ok(())
    }

    /// Takes a container out of the engine, whatever its state.
    pub(crate) fn discard(&self, id: &str, request: Option<u64>) {
        let mut state = self.state();
        let Ok(at) = state.find(id) else { return };
        let container = state.containers.remove(at);
        self.note(&container, request, EffectKind::Removed, Some("destroy"));
        // Whoever waits for the process to end waits no longer.
        container.ended_run.send_replace(u64::MAX);
    }
}

/// Whether `run` ends within `limit`; without a limit, waits until it does.
async fn has_ended(ended: &mut tokio::sync::watch::Receiver<u64>, run: u64, limit: Option<Duration>) -> bool {
    let end = ended.wait_for(|ended| *ended >= run);
    match limit {
        // An error means that the container is gone, and its process with it.
        Some(limit) => tokio::time::timeout(limit, end).await.is_ok(),
        None => {
            let _ = end.await;
            true
        }
    }
}
