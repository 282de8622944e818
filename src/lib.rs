//! relatch: a recovery coordinator for Docker.
//!
//! Start with [`model`] for the words, and [`ledger`] for every decision.

pub mod api;
pub mod cli;
pub mod coordinator;
pub mod docker;
pub mod ledger;
pub mod model;
pub mod node;
pub mod rpc;
pub mod sim;
