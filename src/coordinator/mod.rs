//! The leader's work: resolve a request to one container, have it decided, drive what was decided, and
//! settle it by evidence.
//!
//! **Runs are driven from applied state, not from the request that opened them.** A request only proposes;
//! the [`supervisor`](self) sees an open interlock in the applied ledger and drives it. One that this
//! process did not propose, or gave up on, is never dispatched: it is revoked at its dispatcher, and what
//! the journal says settles it or leaves it to observation.

mod request;

pub use request::{Answer, RecoveryRequest, RequestError};

mod stand_in;
pub use stand_in::Coordinator;
