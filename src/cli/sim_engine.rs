//! `relatch sim-engine`: a scripted Docker Engine, for the demo and for tests.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::exit::Exit;
use super::telemetry;
use crate::sim::{ControlAddress, RunOptions, run};

/// Run a scripted Docker Engine. It restarts nothing real.
///
/// Once it serves, it prints one line of JSON with its addresses and the ids of its containers.
#[derive(Debug, clap::Args)]
pub(super) struct SimEngine {
    /// Serve the Engine API on this unix socket
    #[arg(long, value_name = "PATH", required_unless_present = "tcp")]
    socket: Option<PathBuf>,
    /// Serve the Engine API on this TCP address
    #[arg(long, value_name = "ADDR")]
    tcp: Option<SocketAddr>,
    /// Take commands on this address: a path, or a loopback IP:PORT
    #[arg(long, value_name = "ADDR")]
    control: Option<ControlAddress>,
    /// What the engine and its containers are, as a JSON file
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Append what arrives, and what is done about it, to this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

impl SimEngine {
    pub(super) async fn run(self) -> anyhow::Result<Exit> {
        telemetry::init("warn")?;
        let Self { socket, tcp, control, spec, log } = self;
        run(RunOptions { socket, tcp, control, spec, log }).await?;
        Ok(Exit::Done)
    }
}
