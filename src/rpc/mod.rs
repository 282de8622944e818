//! The wire forms: generated protobuf messages and services, and protobuf's own JSON form of them.

#[cfg(feature = "failpoints")]
#[doc(hidden)]
pub mod fuzzing;
mod json;

pub use json::{NoJsonForm, to_json};

/// Package `relatch.v1`.
#[allow(missing_docs, clippy::all, reason = "generated; documented in proto/relatch/v1")]
pub mod v1 {
    tonic::include_proto!("relatch.v1");
}

/// The descriptors of every message and service, for reflection and for JSON.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
