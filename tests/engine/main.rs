//! What holds against a real Docker Engine: the tests' own dockerd.

#[path = "../support/mod.rs"]
mod support;

mod crash;
mod demo;
mod fixture;
mod lost;
mod restart;
mod start;
mod tls;
mod world;
