//! The ticket: the container was looked at a moment ago, and found as the interlock says.

use super::order::Order;
use crate::env::Clock;
use crate::model::{NotWritten, NotWrittenCause};

/// Good for one order, for a short time, in the process that minted it.
///
/// Its time has passed if *either* the boot-time clock or the wall clock says so: a machine that was
/// suspended between check and send, or whose clock was set, holds no ticket any more. It is never stored, so
/// a restart of the dispatcher voids it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    order: Order,
    /// What the container was called when it was looked at.
    name: String,
    minted_boottime_ms: u64,
    minted_wall_ms: u64,
}

impl Ticket {
    pub(super) fn mint(order: &Order, clock: &dyn Clock) -> Self {
        Self {
            order: order.clone(),
            name: String::new(),
            minted_boottime_ms: clock.boottime_ms(),
            minted_wall_ms: clock.wall_ms(),
        }
    }

    /// The same, once the container was looked at.
    pub(super) fn seen_as(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// What the container was called when it was looked at, which may be another name than at the decision.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks that it is for this order, and still good.
    pub(super) fn check(&self, order: &Order, clock: &dyn Clock) -> Result<(), NotWritten> {
        let void = |detail: String| Err(NotWritten { cause: NotWrittenCause::TicketExpired, detail });
        if self.order != *order {
            return void(format!("the ticket is for run {}, not for this order", self.order.run));
        }
        let good_ms = self.order.dispatch_by_ms;
        let boottime_ms = clock.boottime_ms().saturating_sub(self.minted_boottime_ms);
        // A wall clock that stepped back says nothing about how long it has been: the ticket is void.
        let Some(wall_ms) = clock.wall_ms().checked_sub(self.minted_wall_ms) else {
            return void("the wall clock stepped back since the container was looked at".to_owned());
        };
        let age_ms = boottime_ms.max(wall_ms);
        if age_ms > good_ms {
            return void(format!("the container was looked at {age_ms} ms ago; {good_ms} ms is the most"));
        }
        Ok(())
    }
}
