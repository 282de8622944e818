//! The world outside, behind small traits: clocks, randomness and sockets, so that simulation can take their
//! place, and the failpoints by which a test stops a process at an exact step.
//!
//! Nothing in relatch reads a clock or draws a random number except through this module.

mod clock;
pub mod failpoint;
mod hole;
mod randomness;
mod sockets;

pub use clock::{Clock, SystemClock};
pub use hole::holes;
pub use randomness::{OsRandomness, Randomness, RandomnessError, hex_id};
pub use sockets::{Connecting, OsSockets, Sockets, Stream, is_mount_point};
