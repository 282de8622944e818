//! relatch: a recovery coordinator for Docker.
//!
//! Start with [`model`] for the words, and [`ledger`] for every decision.

pub mod consensus;
pub mod env;
pub mod ledger;
pub mod model;
pub mod storage;
