//! Consensus: makes the ledger agreed and durable. It knows nothing of Docker.
//!
//! Everything of the Raft library stays in this module; the face is [`Consensus`].
//!
//! What this module keeps (the numbers are those of `ARCHITECTURE.md`):
//!
//! 1. A proposal is tied to a term, and answered only once its entry is committed by a quorum *and* applied.
//!    A leader that restarts never takes up its old term again.
//! 6. What is applied survives: the log is synced before it counts, the ledger's records are one write with
//!    the position of their entry, a snapshot holds every record, and a log that has lost its end is refused
//!    (`reached.rs`).
//! 7. [`Consensus::leadership`] names a term only after an entry of that term was applied here.
//! 9. Time is the cluster clock; elapsed time is counted once (`clock.rs`).
//!
//! A lost answer is [`ProposeError::Unknown`], never a "no". The first failed write or sync ends it all
//! ([`Consensus::fatal`]). Where to start reading: `node.rs`, then `proposal.rs`; the durable side is
//! `log_store.rs`, `state_machine.rs` and, for the forms on disk, `stored.rs` and `snapshot.rs`.

mod clock;
mod error;
#[cfg(feature = "failpoints")]
#[doc(hidden)]
pub mod fuzzing;
mod log_store;
mod members;
mod network;
mod node;
mod proposal;
mod reached;
mod settings;
mod snapshot;
mod snapshot_folder;
mod state;
mod state_machine;
mod stored;
mod type_config;
mod watcher;

#[cfg(test)]
mod tests;

pub use error::{AuthorityLost, ConsensusError, ProposeError};
pub use members::{MemberView, MembersError, MembersView, Role};
pub use network::PeerService;
pub use node::{Consensus, is_empty, require_owner};
pub use reached::require_reached;
pub use settings::{Settings, Tuning};
pub use state_machine::LoadLedgerError;
pub use stored::FAMILIES;
pub use type_config::Member;
pub use watcher::Leader;
