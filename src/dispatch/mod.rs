//! The dispatcher: the one process that may write a run's restart or start request, and the only one that can say
//! whether it did.
//!
//! - [`Journal`] is its durable record. An *intent* is on disk before the first byte (invariant 2), and the
//!   highest term and, per container, the highest interlock that it acted for or revoked are kept for ever.
//! - The guard is the journal's state in memory, under one lock. The write gate asks it inside the first
//!   write call, so that between "may still be sent" and "sent" nothing can change.
//! - A [`Ticket`] says that the container was looked at a moment ago, on clocks of this process alone.
//! - [`Dispatcher`] walks one order through them: connect, intent, compare once more, gate, journal.
//!
//! What it answers is fact, not judgement: an exchange, or what the journal says of a run.

mod dispatcher;
#[cfg(feature = "failpoints")]
#[doc(hidden)]
pub mod fuzzing;
mod guard;
mod journal;
mod order;
mod record;
mod ticket;

#[cfg(test)]
mod tests;

pub use dispatcher::{DispatchError, Dispatched, Dispatcher, Known};
pub use journal::{Journal, JournalError};
pub use order::{Action, Order};
pub use ticket::Ticket;
