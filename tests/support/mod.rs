//! What several groups of tests share. Include it with `#[path = "../support/mod.rs"] mod support;`.

// Each group uses a part of this; what one leaves out is not dead.
#![allow(dead_code)]

pub mod certificates;
pub mod disk;
pub mod dockerd;
pub mod node;
pub mod pending;
pub mod proxy;
pub mod scripted;
