//! The order: what a dispatcher is asked to do.

use crate::model::{ContainerState, Fence, Grace, Incarnation, RunId};

/// What an order asks of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// To end the container's life, and begin its next. The grace is how long the engine shall let it stop by
    /// itself.
    Restart(Grace),
    /// To begin the next life of a container that was left down.
    Start,
}

impl Action {
    /// What the container must be doing, for the action to be what was decided.
    pub(super) fn wants(self) -> ContainerState {
        match self {
            Self::Restart(_) => ContainerState::Running,
            Self::Start => ContainerState::Exited,
        }
    }
}

/// What is to be done, under which authority, and within which time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The run. The start of a container that a run left down has an id of its own.
    pub run: RunId,
    /// Its interlock's fence; that of a start is its own, and higher than its restart's.
    pub fence: Fence,
    /// The one life that may be ended, or that has ended and is to have a next.
    pub incarnation: Incarnation,
    /// What to ask of the engine.
    pub action: Action,
    /// Only while the container's health check says unhealthy.
    pub if_unhealthy: bool,
    /// How long the whole exchange may take, from its first byte.
    pub client_deadline_ms: u64,
    /// How long the ticket is good.
    pub dispatch_by_ms: u64,
}
