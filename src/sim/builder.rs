//! Making an engine.

use std::path::PathBuf;

use super::{
    engine::Engine,
    error::SimError,
    script::Rule,
    spec::{ContainerSpec, EngineSpec},
    wire_log::WireLog,
};

/// Collects what an engine is at the start.
#[derive(Debug, Default)]
pub struct EngineBuilder {
    spec: EngineSpec,
    log_file: Option<PathBuf>,
}

impl Engine {
    /// Begins with an engine of default identity and no container.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }
}

impl EngineBuilder {
    /// Takes everything from a specification; later calls add to it.
    pub fn spec(self, spec: EngineSpec) -> Self {
        Self { spec, ..self }
    }

    /// Sets the id that `/info` gives.
    pub fn engine_id(mut self, id: impl Into<String>) -> Self {
        self.spec.engine.id = Some(id.into());
        self
    }

    /// Sets how long the engine waits for an exit after SIGKILL.
    pub fn kill_wait_ms(mut self, kill_wait_ms: u64) -> Self {
        self.spec.engine.kill_wait_ms = kill_wait_ms;
        self
    }

    /// Adds a container.
    pub fn container(mut self, spec: ContainerSpec) -> Self {
        self.spec.containers.push(spec);
        self
    }

    /// Adds an engine-wide rule.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.spec.script.rules.push(rule);
        self
    }

    /// Writes the wire log to this file too: one JSON object per line, flushed per entry, appended.
    pub fn log_file(self, path: impl Into<PathBuf>) -> Self {
        Self { log_file: Some(path.into()), ..self }
    }

    /// Makes the engine. It serves nobody yet. Must be called within a tokio runtime.
    pub fn build(self) -> Result<Engine, SimError> {
        let log = WireLog::open(self.log_file.as_deref())?;
        let engine = Engine::new(self.spec.engine, log)?;
        for container in self.spec.containers {
            engine.add_container(container)?;
        }
        engine.script_engine(self.spec.script.rules);
        engine.script_connections(self.spec.script.connections)?;
        for timed in self.spec.script.timeline {
            engine.schedule(None, timed);
        }
        Ok(engine)
    }
}
