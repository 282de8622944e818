//! Compiles the protobuf files, without a system `protoc`.

use std::env;
use std::error::Error;
use std::path::PathBuf;

use prost::Message;

/// What clients may call.
const FILES: [&str; 3] = ["relatch/v1/recovery.proto", "relatch/v1/holds.proto", "relatch/v1/limits.proto"];

/// What nodes say to each other. Not told to whoever asks by reflection.
const BETWEEN_NODES: [&str; 1] = ["relatch/raft/v1/raft.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"])?;
    // Reflection, and the JSON form of every message, read the same descriptors at run time.
    let stored = PathBuf::from(env::var("OUT_DIR")?).join("descriptors.bin");
    std::fs::write(stored, descriptors.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    tonic_prost_build::configure().compile_fds(protox::compile(BETWEEN_NODES, ["proto"])?)?;
    Ok(())
}
