//! A scripted Docker Engine.
//!
//! It speaks real HTTP/1.1 over unix sockets and TCP, keeps containers that behave as their specifications say, and
//! is faithful to dockerd until its script says otherwise. Then it does what no daemon can be made to do at a chosen
//! moment: it applies a restart and cuts the connection before the reply, stalls in the middle of a body, resets
//! after seven bytes of a request, or starts a container that nobody asked for.
//!
//! Three things are kept apart: what happens to containers, which goes on when a client hangs up; what a client sees
//! of it; and the [`WireLog`], which records both at the level of bytes, so that a judge needs nothing else.

mod actions;
mod answers;
mod builder;
mod clock;
mod conn;
mod container;
mod control;
mod engine;
mod error;
mod events;
mod exchange;
mod gates;
mod http;
mod intake;
mod ops;
mod queue;
mod render;
mod routes;
mod rule;
mod run;
mod script;
mod serve;
mod spec;
mod tasks;
mod wire;
mod wire_log;

pub use builder::EngineBuilder;
pub use control::{ActionRequest, ControlAddress, ScriptChange};
pub use engine::Engine;
pub use error::SimError;
pub use run::{RunOptions, read_spec, run};
pub use script::{
    Action, Effect, Endpoint, EngineScript, HealthStatus, ListenMode, Rule, Status, TimedAction,
};
pub use spec::{Compose, ContainerSpec, EngineSpec, Health, Healthcheck, Identity, StopBehaviour};
pub use wire::{ConnectionFault, ConnectionRule, CutRequest, Delivery, Edit, End, Hold, Reply, StatusReply};
pub use wire_log::{EffectKind, Ended, Entry, Event, History, WireLog};

#[cfg(test)]
mod tests;
