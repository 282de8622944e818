//! The gRPC services, one file each, and the server that carries them.
//!
//! A request has one way: it is [validated](self) here, handed to the coordinator, and what the coordinator
//! answers is put into the public form. Nothing is decided here, and nothing is remembered: a run is always
//! told as the applied ledger has it now.

mod backend;
mod convert;
mod forward;
#[cfg(feature = "failpoints")]
#[doc(hidden)]
pub mod fuzzing;
mod health;
mod holds;
mod limits;
mod recovery;
mod serve;
mod status;
mod validate;
mod watch;
mod words;

#[cfg(test)]
mod tests;

pub use forward::WayToLeader;
pub use serve::{ServeError, serve};
