//! What holds against a real Docker Engine: the tests' own dockerd.

#[path = "../support/mod.rs"]
mod support;

mod away;
mod commit;
mod crash;
mod demo;
mod exits;
mod fixture;
mod holds;
mod left_down;
mod lost;
mod names;
mod refused;
mod resolved;
mod restart;
mod start;
mod tls;
mod world;
