//! The order: what a dispatcher is asked to do.

use crate::model::{Fence, Grace, Incarnation, RunId};

/// What is to be restarted, under which authority, and within which time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The run.
    pub run: RunId,
    /// Its interlock's fence.
    pub fence: Fence,
    /// The one life that may be ended.
    pub incarnation: Incarnation,
    /// How long the engine shall let it stop by itself.
    pub grace: Grace,
    /// How long the whole exchange may take, from its first byte.
    pub client_deadline_ms: u64,
    /// How long the ticket is good.
    pub dispatch_by_ms: u64,
}
