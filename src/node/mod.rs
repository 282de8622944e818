//! STAND-IN: what `relatch dev` calls, until the node is there.
#![allow(clippy::unimplemented, clippy::unused_async, missing_docs)]
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug)]
pub struct DevOptions {
    pub listen: SocketAddr,
    pub data_dir: PathBuf,
    pub docker: String,
    pub grace_max_s: Option<u32>,
    pub margin_ms: Option<u64>,
}

#[derive(Debug, thiserror::Error)]
#[error("stand-in")]
pub struct NodeError;

pub async fn run_dev(
    _: DevOptions,
    _ready: impl FnOnce(SocketAddr),
    _shutdown: impl Future<Output = ()>,
) -> Result<(), NodeError> {
    unimplemented!()
}
