//! What happens in the engine without a client's asking: the script's actions, now or later.

use std::time::Duration;

use super::{
    engine::Engine,
    error::{ApiError, SimError},
    script::{Action, Rule, Status, TimedAction},
    spec::ContainerSpec,
    wire_log::EffectKind,
};

impl Engine {
    /// Adds a container and sets its timeline going; gives its full id.
    pub fn add_container(&self, spec: ContainerSpec) -> Result<String, SimError> {
        let timeline = spec.timeline.clone();
        let id = self.insert(spec)?;
        for timed in timeline {
            self.schedule(Some(id.clone()), timed);
        }
        Ok(id)
    }

    /// Does `timed.action` when its time has come, to the container with this id or name, or to the engine.
    pub fn schedule(&self, container: Option<String>, timed: TimedAction) {
        if timed.after_ms == 0 {
            self.act_or_say(container.as_deref(), timed.action);
            return;
        }
        let engine = self.clone();
        self.inner.tasks.spawn(async move {
            tokio::time::sleep(Duration::from_millis(timed.after_ms)).await;
            engine.act_or_say(container.as_deref(), timed.action);
        });
    }

    fn act_or_say(&self, container: Option<&str>, action: Action) {
        // A script may speak of a container that a client has removed meanwhile.
        if let Err(error) = self.act(container, action.clone()) {
            tracing::warn!(?action, %error, "a scripted action could not be done");
        }
    }

    /// Does `action` now. Actions on a container need its id or name; engine-wide ones ignore it.
    pub fn act(&self, container: Option<&str>, action: Action) -> Result<(), SimError> {
        match action {
            Action::AddConnectionRules { rules } => self.script_connections(rules),
            Action::DropIdleConnections { end } => {
                self.inner.idle_drops.send_modify(|(count, how)| {
                    *count += 1;
                    *how = end;
                });
                Ok(())
            }
            Action::CutEventStreams => {
                self.inner.events.cut_streams();
                Ok(())
            }
            Action::Listen { mode } => {
                self.inner.listen.send_replace(mode);
                Ok(())
            }
            Action::SetEngineId { id } => {
                self.state().engine_id = id;
                Ok(())
            }
            Action::SetClockOffset { offset_ms } => {
                self.inner.clock.set_offset_ms(offset_ms);
                Ok(())
            }
            Action::Release { name } => {
                self.release(&name);
                Ok(())
            }
            _ => {
                let name = container.ok_or_else(|| SimError::Script {
                    problem: format!("this action needs a container: {action:?}"),
                })?;
                let id = self.container_id(name)?;
                self.act_on(&id, action).map_err(|error| match error {
                    Failed::Api(error) => SimError::Script { problem: error.message },
                    Failed::Sim(error) => error,
                })
            }
        }
    }

    fn act_on(&self, id: &str, action: Action) -> Result<(), Failed> {
        match action {
            Action::Start => {
                let (engine, id) = (self.clone(), id.to_owned());
                self.inner.tasks.spawn(async move {
                    if let Err(error) = engine.start(&id, None).await {
                        tracing::warn!(id, error = error.message, "a scripted start failed");
                    }
                });
            }
            Action::Exit { code } => self.exit(id, None, code, None),
            Action::Pause => self.pause(id, true, None)?,
            Action::Unpause => self.pause(id, false, None)?,
            Action::Remove => self.discard(id, None),
            Action::Rename { name } => self.rename(id, &name, None)?,
            Action::Replace { id: new_id, keep_old_as, rules } => {
                self.replace(id, new_id, keep_old_as.as_deref(), rules)?;
            }
            Action::AddRules { rules } => self.script(id, rules)?,
            _ => self.set(id, action)?,
        }
        Ok(())
    }

    /// The actions that only change fields.
    fn set(&self, id: &str, action: Action) -> Result<(), ApiError> {
        let mut state = self.state();
        let container = state.get(id)?;
        match action {
            Action::MoveStartedAt => {
                if container.is_alive() {
                    container.ended(self.inner.clock.next(), 1);
                    self.note(container, None, EffectKind::Exited, Some("die"));
                }
                container.restart_count += 1;
                self.begin(container, None);
                return Ok(());
            }
            Action::SetStartedAt { value } => container.started_at = value,
            Action::SetStatus { status } => {
                container.status = status;
                if !matches!(status, Status::Running | Status::Paused) {
                    container.pid = 0;
                }
            }
            Action::SetHealth { status } => {
                container.set_health(status);
                self.emit_health(container, status);
            }
            _ => return Ok(()),
        }
        self.note(container, None, EffectKind::Scripted, None);
        Ok(())
    }

    fn replace(
        &self,
        old: &str,
        new_id: Option<String>,
        keep_old_as: Option<&str>,
        rules: Vec<Rule>,
    ) -> Result<(), Failed> {
        let (name, mut spec) = {
            let mut state = self.state();
            let container = state.get(old)?;
            (container.name.clone(), container.spec.clone())
        };
        match keep_old_as {
            Some(other) => self.rename(old, other, None)?,
            None => self.discard(old, None),
        }
        spec.id = new_id;
        spec.name = name;
        spec.rules = rules;
        spec.timeline.clear();
        spec.status = Status::Running;
        let id = self.insert(spec)?;
        let mut state = self.state();
        let container = state.get(&id)?;
        // A new process is not saturated.
        if let Some(health) = container.settled_health() {
            container.set_health(health);
        }
        Ok(())
    }
}

/// Why an action on a container failed.
enum Failed {
    Api(ApiError),
    Sim(SimError),
}

impl From<ApiError> for Failed {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<SimError> for Failed {
    fn from(error: SimError) -> Self {
        Self::Sim(error)
    }
}
