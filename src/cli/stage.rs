//! The processes that the demo and the benchmark start, and the folders that they work in. All of it is gone
//! afterwards.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::time::timeout;

use crate::env::{OsRandomness, hex_id};

/// How long a process may take until it serves. The first start makes a database, a late one reads a large one.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// How long a process may take to end in order.
const END_WITHIN: Duration = Duration::from_secs(30);

/// How much of a process's log is shown when something went wrong.
const LOG_LINES: usize = 20;

/// A folder of this process's own.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder where temporary files go, for this user alone; `name` is the beginning of its own.
    pub(super) fn make(name: &str) -> anyhow::Result<Self> {
        Self::make_in(&std::env::temp_dir(), name).context("TMPDIR says where")
    }

    /// Makes the folder below `parent`.
    pub(super) fn make_in(parent: &Path, name: &str) -> anyhow::Result<Self> {
        // Short: the path of a unix socket has at most 107 bytes.
        let path = parent.join(format!("{name}-{}", &hex_id(&OsRandomness)?[..8]));
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("making {}", path.display()))?;
        Ok(Self { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where a node reaches the engine.
    pub(super) fn engine_socket(&self) -> PathBuf {
        self.file("engine.sock")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A path as an argument.
pub(super) fn utf8(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8: set TMPDIR to a folder that is", path.display()))
}

/// SIGINT or SIGTERM, as often as one comes.
#[derive(Debug)]
pub(super) struct Interrupt {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Interrupt {
    pub(super) fn listen() -> anyhow::Result<Self> {
        let interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
        let terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
        Ok(Self { interrupt, terminate })
    }

    /// Waits for the next one.
    pub(super) async fn raised(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// A process of ours. If it is dropped, it is killed.
#[derive(Debug)]
pub(super) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
    /// The line of JSON that it printed once it served.
    pub(super) ready: Value,
}

impl Process {
    /// Starts this program with other arguments, and waits until it says that it serves.
    pub(super) async fn start(name: &'static str, arguments: &[&str], log: PathBuf) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("finding this program's own file")?;
        let stderr = fs::File::create(&log).with_context(|| format!("making {}", log.display()))?;
        let mut child = Command::new(program)
            .args(arguments)
            // What is set for this process is not meant for those.
            .env_remove("RELATCH_ADDR")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        let stdout = child.stdout.take().context("a process has a stdout")?;
        let mut lines = BufReader::new(stdout).lines();
        let first = timeout(READY_WITHIN, lines.next_line()).await;
        let ready = match first {
            Ok(Ok(Some(line))) => serde_json::from_str(&line)
                .with_context(|| format!("{name} printed {line:?} where its addresses were expected"))?,
            Ok(Ok(None)) => bail!("{name} ended before it served:\n{}", tail(&log)),
            Ok(Err(error)) => bail!("{name}: reading its output: {error}"),
            Err(_) => bail!("{name} does not serve after {} s:\n{}", READY_WITHIN.as_secs(), tail(&log)),
        };
        Ok(Self { name, child, log, ready })
    }

    /// A text of what it printed once it served.
    pub(super) fn said(&self, pointer: &str) -> anyhow::Result<String> {
        let text = self.ready.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        text.with_context(|| format!("{} said no {pointer} in {}", self.name, self.ready))
    }

    /// Kills it with SIGKILL, which leaves it no time for anything, and gives its process id.
    pub(super) async fn kill_9(mut self) -> anyhow::Result<u32> {
        let pid =
            self.child.id().with_context(|| format!("{} ended by itself:\n{}", self.name, self.log()))?;
        self.child.kill().await.with_context(|| format!("killing {}", self.name))?;
        Ok(pid)
    }

    /// Ends it in order.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        if let Some(pid) = self.pid() {
            kill_process(pid, Signal::TERM).with_context(|| format!("sending SIGTERM to {}", self.name))?;
        }
        let ended = timeout(END_WITHIN, self.child.wait()).await;
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => bail!("{} ended with {status}:\n{}", self.name, self.log()),
            Ok(Err(error)) => bail!("waiting for the end of {}: {error}", self.name),
            Err(_) => bail!("{} did not end within {} s after SIGTERM", self.name, END_WITHIN.as_secs()),
        }
    }

    /// The last lines of its log.
    pub(super) fn log(&self) -> String {
        tail(&self.log)
    }

    /// Its process id, while it runs.
    pub(super) fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.id()?).ok()?)
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(LOG_LINES)..];
    if last.is_empty() { "(its log is empty)".into() } else { last.join("\n") }
}
