//! The way to the peers, over gRPC: package `relatch.raft.v1`.
//!
//! One long-lived channel leads to each node, whatever is sent to it. A log is streamed: one append follows the other
//! without waiting for the answer. A snapshot goes out of its file in pieces, each with a checksum, and is never whole
//! in memory.

mod client;
mod install;
mod serve;
mod wire;

pub use serve::PeerService;

pub(super) use client::Network;
pub(super) use install::Installer;
