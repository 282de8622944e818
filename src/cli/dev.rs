//! `relatch dev`: one node for this machine's Docker Engine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::docker::DockerArgs;
use super::duration;
use super::exit::{Exit, WrongUsage};
use super::output::Output;
use super::telemetry;
use super::text::plain;
use crate::docker::TcpOptions;
use crate::node::{DevNotice, DevOptions, EngineWord, NodeError, run_dev};

/// What is logged unless RELATCH_LOG says otherwise: a line per transition, and only trouble of what is below. That
/// nobody waits for an answer any more is none: a node that ends tells them so.
const LOG: &str = "info,openraft=warn,openraft::raft::responder=error";

/// Run a single node for this machine's Docker Engine, as the host `local`.
///
/// It serves until SIGINT or SIGTERM. Its log goes to stderr; RELATCH_LOG filters it. With -o json, each line on
/// stdout is one document: first where it serves, then what is heard of the engine.
#[derive(Debug, clap::Args)]
pub(super) struct Dev {
    #[command(flatten)]
    setup: Setup,
    /// The longest grace that a restart may have, in whole seconds, as in 5m; 300s at first
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration::parse_whole_seconds)]
    grace_max: Option<u32>,
    /// What the deadline of a restart adds to its grace: at least 15s, 20s at first
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration::parse)]
    margin: Option<Duration>,
}

// What a node and the doctor both have to know of the machine. (A doc comment here would take the place of the
// command's own.)
#[derive(Debug, clap::Args)]
pub(super) struct Setup {
    /// Where clients reach it, on a loopback address; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7370")]
    pub(super) listen: SocketAddr,
    /// Where it keeps its ledger and its journal [default: $XDG_STATE_HOME/relatch/dev]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The data directory may lie in a container's own writable layer, and go away with the container
    #[arg(long)]
    pub(super) ephemeral_data: bool,
    #[command(flatten)]
    docker: DockerArgs,
}

impl Setup {
    /// Refuses an address that others than this machine could reach.
    pub(super) fn require_loopback(&self) -> anyhow::Result<()> {
        let listen = self.listen;
        if !listen.ip().is_loopback() {
            let error = format!(
                "--listen {listen}: whoever reaches it could restart containers, since there is no TLS and no \
                 authentication yet: listen on a loopback address, such as 127.0.0.1:7370"
            );
            return Err(WrongUsage(error).into());
        }
        Ok(())
    }

    /// Where the engine is, as it was written.
    pub(super) fn docker(&self) -> &str {
        self.docker.endpoint()
    }

    /// How the engine is reached, if that is over TCP.
    pub(super) fn tcp(&self) -> anyhow::Result<TcpOptions> {
        self.docker.tcp(|name| std::env::var_os(name))
    }

    /// The data directory, as given or by default.
    pub(super) fn data_dir(&self) -> anyhow::Result<PathBuf> {
        match &self.data_dir {
            Some(dir) => Ok(dir.clone()),
            None => default_data_dir(
                std::env::var_os("XDG_STATE_HOME").map(PathBuf::from),
                std::env::var_os("HOME").map(PathBuf::from),
            ),
        }
    }
}

impl Dev {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<Exit> {
        let Self { setup, grace_max, margin } = self;
        setup.require_loopback()?;
        let tcp = setup.tcp()?;
        telemetry::init(LOG)?;
        let data_dir = setup.data_dir()?;
        let options = DevOptions {
            listen: setup.listen,
            data_dir: data_dir.clone(),
            ephemeral_data: setup.ephemeral_data,
            docker: setup.docker().to_owned(),
            tcp,
            grace_max_s: grace_max,
            margin_ms: margin.map(|margin| u64::try_from(margin.as_millis()).unwrap_or(u64::MAX)),
        };
        // Both listen from now on, so that the second counts from the first on.
        let (stop, hurry) = (Signals::listen()?.times(1), Signals::listen()?.times(2));
        let tell = |notice: DevNotice| {
            let text = if output.is_json() {
                format!("{}\n", document(&notice, setup.docker(), &data_dir))
            } else {
                told(&notice, setup.docker(), &data_dir)
            };
            // Whoever started it may have closed stdout; the node serves all the same.
            let _ = output.text(&text);
        };
        match run_dev(options, tell, stop, hurry).await {
            Ok(()) => Ok(Exit::Done),
            Err(error @ (NodeError::Endpoint(_) | NodeError::Limits(_))) => {
                Err(WrongUsage(error.to_string()).into())
            }
            Err(error) => Err(error.into()),
        }
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

/// A notice for programs, on a line of its own: first the address, then what is heard of the engine.
fn document(notice: &DevNotice, docker: &str, data_dir: &Path) -> Value {
    match notice {
        DevNotice::Serving(bound) => {
            json!({ "addr": format!("http://{bound}"), "dataDir": data_dir, "docker": docker })
        }
        DevNotice::Engine(EngineWord::Answered { server_version }) => {
            json!({ "engine": { "answers": true, "version": server_version } })
        }
        DevNotice::Engine(EngineWord::Silent { why }) => {
            json!({ "engine": { "answers": false, "why": why } })
        }
    }
}

/// A notice for people. Nothing is said to work that was not seen to.
fn told(notice: &DevNotice, docker: &str, data_dir: &Path) -> String {
    match notice {
        DevNotice::Serving(bound) => welcome(*bound, docker, data_dir),
        DevNotice::Engine(EngineWord::Answered { server_version }) => {
            format!("Docker Engine {} answered.\n", plain(server_version))
        }
        DevNotice::Engine(EngineWord::Silent { why }) => format!(
            "No container can be restarted now, and the engine is asked again until it answers:\n  {}\n",
            plain(why)
        ),
    }
}

/// What to type next.
fn welcome(bound: SocketAddr, docker: &str, data_dir: &Path) -> String {
    let addr = if bound.port() == 7370 && bound.ip().is_loopback() && bound.is_ipv4() {
        String::new()
    } else {
        format!(" --addr http://{bound}")
    };
    format!(
        "relatch serves clients on http://{bound}; its data is in {}.\n\
         Its one host is `local` ({docker}); whether that answers is said below.\n\
         Next, in another terminal, with the name of a container of yours:\n\
         \n  relatch recover local/NAME --reason \"why\" --wait{addr}\n  relatch runs list{addr}\n\n\
         Ctrl-C ends it, once restarts that are under way have their answer. A second Ctrl-C ends it at once:\n\
         those are then uncertain, and their containers are closed to another restart for about 10 minutes.\n\n",
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
        let at = |bound: &str| welcome(bound.parse().unwrap(), "unix:///x", Path::new("/d"));
        assert!(!at("127.0.0.1:7370").contains("--addr"));
        assert!(at("127.0.0.1:9999").contains("runs list --addr http://127.0.0.1:9999"));
    }

    #[test]
    fn nothing_is_said_of_an_engine_before_it_was_heard() {
        let say = |notice| told(&notice, "unix:///x", Path::new("/d"));
        let serving = say(DevNotice::Serving("127.0.0.1:1".parse().unwrap()));
        assert!(serving.contains("serves clients on") && !serving.contains("answered"), "{serving}");
        let answered = say(DevNotice::Engine(EngineWord::Answered { server_version: "20.10.24".into() }));
        assert!(answered.contains("Docker Engine 20.10.24 answered"), "{answered}");
        let silent = say(DevNotice::Engine(EngineWord::Silent { why: "connecting: refused".into() }));
        assert!(silent.contains("connecting: refused") && silent.contains("asked again"), "{silent}");
    }
}
