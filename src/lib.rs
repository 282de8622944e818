//! relatch: a recovery coordinator for Docker.

pub mod sim;
