//! The composition root: builds the parts, mounts the services, and ends them in order.
//!
//! `relatch dev` is one node with one host, called `local`, whose dispatcher runs in the same process.

mod beside;
mod binding;
mod dev;
mod error;
mod own_container;
mod panic;
mod parts;

pub use beside::{EngineTaken, server_of};
pub use binding::EngineWord;
pub use dev::{DevNotice, DevOptions, run_dev};
pub use error::NodeError;
pub use own_container::container_layer;
