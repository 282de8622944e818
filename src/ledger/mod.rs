//! The replicated recovery-run ledger: commands in, decisions and new state out.
//!
//! Everything that must be decided once is decided here, in [`Ledger::apply`], the same on every node.
//! Apply is closed: it reads the entry's index, term and command, and the state; nothing else. No I/O, no
//! clock, no randomness, no async, no float, no hash-order iteration. Time is the *cluster clock* that the
//! entries themselves carry.
//!
//! What this module keeps (the numbers are those of `ARCHITECTURE.md`):
//!
//! 1. The interlock's fence is the entry's own term and index; a command that was proposed in another term
//!    opens nothing.
//! 3. At most one open or quarantined run per target and per (engine id, container id).
//! 4. `not-applied` only on proof, and only from whom the interlock names (`judge`).
//! 5. `applied` only on a strictly later `StartedAt` of the same container on the same engine (`judge`).
//! 6. Nothing but evidence or an operator ends an open run, and nothing forgets it (`prune`).
//! 9. Attempts are charged when the interlock commits, to two keys, and given back only on proof.
//! 10. The client deadline fits the work; what does not fit is refused by name.
//! 11. Whatever is refused or uncertain says why, since when, and what would end it.
//!
//! There is no separate command that settles a run: evidence is recorded, and `judge` says what the
//! evidence now on record amounts to. So a settlement cannot name evidence that the ledger has not seen.

mod admission;
mod apply;
mod approval;
mod attempts;
mod checks;
mod command;
mod diagnosis;
mod entry;
mod evidence;
mod hold;
mod holding;
mod hosts;
mod index;
mod judge;
mod limits;
mod load;
mod memory;
mod moment;
mod order;
mod outcome;
mod prune;
mod reason;
mod record;
mod requests;
mod resolution;
mod resolve;
mod run;
mod start;
mod status;
mod verify;
mod words;

#[cfg(test)]
mod tests;

pub use admission::Weighed;
pub use apply::{Applied, ApplyError, Ledger, RULES_LEVEL};
pub use attempts::{AttemptKey, Attempts, Charge};
pub use checks::{Check, CheckName};
pub use command::{
    ANONYMOUS, Attest, Attestation, Baseline, BindHost, Command, DispatcherRef, Expectation, Guard, LiftHold,
    Observe, OpenInterlock, OpenStart, PlaceHold, Proposer, RecordExchange, RefuseRequest, Request, Resolve,
    Stamped, Verify,
};
pub use diagnosis::Diagnosis;
pub use entry::EntryPosition;
pub use hold::{Hold, HoldOwner, HoldScope};
pub use limits::{InvalidLimits, Limits, LimitsChange};
pub use load::{LoadError, Loading};
pub use moment::Moment;
pub use outcome::{Decision, DecisionKind, Exhausted, Outcome, Rejection, Share, StartDecision};
pub use reason::{Reason, ReasonCode};
pub use record::{Change, Host, Key, Meta, Record, Remembered};
pub use resolution::{Assertion, Resolution};
pub use run::{Event, EventKind, Interlock, Quarantine, Run};
pub use start::Start;
pub use status::{Disposition, Evidence, Proof, Status, SupersededBy, Verification};
