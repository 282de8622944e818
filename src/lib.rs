//! relatch: a recovery coordinator for Docker.
//!
//! Start with [`model`] for the words, and [`ledger`] for every decision.

pub mod api;
pub mod cli;
pub mod consensus;
pub mod coordinator;
pub mod dispatch;
pub mod docker;
pub mod env;
pub mod ledger;
pub mod model;
pub mod node;
pub mod rpc;
pub mod sim;
pub mod storage;
