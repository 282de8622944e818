//! What holds against a real Docker Engine: the tests' own dockerd.

#[path = "../support/mod.rs"]
mod support;

mod fixture;
