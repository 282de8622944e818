//! `relatch dev`: one node for this machine's Docker Engine.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::json;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::docker::DockerArgs;
use super::duration;
use super::exit::Exit;
use super::output::Output;
use super::telemetry;
use crate::node::{DevOptions, run_dev};

/// What is logged unless RELATCH_LOG says otherwise: a line per transition, and only trouble of what is below.
const LOG: &str = "info,openraft=warn";

/// Run a single node for this machine's Docker Engine, as the host `local`.
///
/// It serves until SIGINT or SIGTERM. Its log goes to stderr; RELATCH_LOG filters it.
#[derive(Debug, clap::Args)]
pub(super) struct Dev {
    /// Where clients reach it, on a loopback address; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7370")]
    listen: SocketAddr,
    /// Where it keeps its ledger and its journal [default: $XDG_STATE_HOME/relatch/dev]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    docker: DockerArgs,
    /// The longest grace that a restart may have, in whole seconds, as in 5m; 300s at first
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration::parse_whole_seconds)]
    grace_max: Option<u32>,
    /// What the deadline of a restart adds to its grace: at least 15s, 20s at first
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration::parse)]
    margin: Option<Duration>,
}

impl Dev {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<Exit> {
        let listen = self.listen;
        if !listen.ip().is_loopback() {
            bail!(
                "--listen {listen}: whoever reaches it could restart containers, since there is no TLS and no \
                 authentication yet: listen on a loopback address, such as 127.0.0.1:7370"
            );
        }
        let tcp = self.docker.tcp(|name| std::env::var_os(name))?;
        let docker = self.docker.endpoint().to_owned();
        telemetry::init(LOG)?;
        let data_dir = match self.data_dir {
            Some(dir) => dir,
            None => default_data_dir(
                std::env::var_os("XDG_STATE_HOME").map(PathBuf::from),
                std::env::var_os("HOME").map(PathBuf::from),
            )?,
        };
        let options = DevOptions {
            listen: self.listen,
            data_dir: data_dir.clone(),
            docker: docker.clone(),
            tcp,
            grace_max_s: self.grace_max,
            margin_ms: self.margin.map(|margin| u64::try_from(margin.as_millis()).unwrap_or(u64::MAX)),
        };
        // Both listen from now on, so that the second counts from the first on.
        let (stop, hurry) = (Signals::listen()?.times(1), Signals::listen()?.times(2));
        let ready = |bound: SocketAddr| {
            let text = if output.is_json() {
                format!(
                    "{}\n",
                    json!({ "addr": format!("http://{bound}"), "dataDir": data_dir, "docker": docker })
                )
            } else {
                welcome(bound, &docker, &data_dir)
            };
            // Whoever started it may have closed stdout; the node serves all the same.
            let _ = output.text(&text);
        };
        run_dev(options, ready, stop, hurry).await?;
        Ok(Exit::Done)
    }
}

/// The signals that ask a process to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).context("listening for SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("listening for SIGTERM")?,
        })
    }

    /// Resolves with the last of so many.
    async fn times(mut self, count: usize) {
        for _ in 0..count {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
        }
    }
}

/// What to type next.
fn welcome(bound: SocketAddr, docker: &str, data_dir: &std::path::Path) -> String {
    let addr = if bound.port() == 7370 && bound.ip().is_loopback() && bound.is_ipv4() {
        String::new()
    } else {
        format!(" --addr http://{bound}")
    };
    format!(
        "relatch serves the host `local` ({docker}) on http://{bound}; its data is in {}.\n\
         Next, in another terminal, with the name of a container of yours:\n\
         \n  relatch recover local/NAME --reason \"why\" --wait{addr}\n  relatch runs list{addr}\n\n\
         Ctrl-C ends it, once restarts that are under way have their answer. A second Ctrl-C ends it at once:\n\
         those are then uncertain, and their containers are closed to another restart for about 10 minutes.\n",
        data_dir.display()
    )
}

/// `$XDG_STATE_HOME/relatch/dev`, else `~/.local/state/relatch/dev`.
fn default_data_dir(state_home: Option<PathBuf>, home: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    // The XDG base directory specification: a relative path is invalid and to be ignored.
    let state_home = state_home.filter(|dir| dir.is_absolute());
    match (state_home, home.filter(|dir| dir.is_absolute())) {
        (Some(state), _) => Ok(state.join("relatch/dev")),
        (None, Some(home)) => Ok(home.join(".local/state/relatch/dev")),
        (None, None) => bail!("neither XDG_STATE_HOME nor HOME names a directory: say where with --data-dir"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_directory_follows_xdg() {
        let dir = |state: Option<&str>, home: Option<&str>| {
            default_data_dir(state.map(PathBuf::from), home.map(PathBuf::from)).ok()
        };
        assert_eq!(dir(Some("/s"), Some("/h")), Some("/s/relatch/dev".into()));
        assert_eq!(dir(Some("relative"), Some("/h")), Some("/h/.local/state/relatch/dev".into()));
        assert_eq!(dir(None, Some("/h")), Some("/h/.local/state/relatch/dev".into()));
        assert_eq!(dir(None, None), None);
    }

    #[test]
    fn what_to_type_next_names_an_unusual_address() {
        let at = |bound: &str| welcome(bound.parse().unwrap(), "unix:///x", std::path::Path::new("/d"));
        assert!(!at("127.0.0.1:7370").contains("--addr"));
        assert!(at("127.0.0.1:9999").contains("runs list --addr http://127.0.0.1:9999"));
    }
}
