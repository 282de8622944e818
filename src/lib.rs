//! relatch: a recovery coordinator for Docker.
//!
//! Start with [`model`] for the words, and [`ledger`] for every decision.

pub mod docker;
pub mod model;
