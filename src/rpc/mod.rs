//! The wire forms: generated protobuf messages and services, protobuf's own JSON form of them, and the channels
//! between nodes.

mod caller_check;
#[cfg(feature = "failpoints")]
#[doc(hidden)]
pub mod fuzzing;
mod json;
mod peers;

pub use caller_check::CallerCheck;
pub use json::{NoJsonForm, to_json};
pub use peers::{Caller, InvalidAddress, Link, Peers, channel, introduced};

/// Package `relatch.v1`.
#[allow(missing_docs, clippy::all, reason = "generated; documented in proto/relatch/v1")]
pub mod v1 {
    tonic::include_proto!("relatch.v1");
}

/// Package `relatch.raft.v1`: what nodes say to each other, and to nobody else.
#[allow(missing_docs, clippy::all, reason = "generated; documented in proto/relatch/raft/v1")]
pub mod raft {
    tonic::include_proto!("relatch.raft.v1");
}

/// The descriptors of every message and service, for reflection and for JSON.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
