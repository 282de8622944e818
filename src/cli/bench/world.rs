//! A scripted engine and a node that looks after it, as processes of their own, and what asks them.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::Pid;
use tokio::process::Command;
use tokio::time::sleep;
use tonic::Code;
use tonic::transport::Endpoint;

use super::super::client::{Client, Service};
use super::super::stage::{Folder, Process, utf8};
use super::super::view;
use super::waiting::Ends;
use super::workload::ATTEMPTS_WINDOW_MS;
use crate::rpc::v1::{Decision, ExplainRequest, RequestRecoveryRequest, Run};
use crate::sim::{ContainerSpec, EngineSpec, Identity};

/// How long a node may take until it admits requests.
const ADMITS_WITHIN: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(5);

/// A scripted engine and a node that looks after it.
#[derive(Debug)]
pub(super) struct World {
    pub(super) addr: String,
    node: Process,
    engine: Process,
    sockets: Folder,
}

/// How long a node took to start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Started {
    /// Until clients could connect.
    pub(super) serving: Duration,
    /// Until it answered one, which it does once what was open is replayed.
    pub(super) admitting: Duration,
}

impl World {
    /// Starts both, the node on data in `data_dir`.
    pub(super) async fn start(
        containers: Vec<ContainerSpec>,
        data_dir: &Path,
    ) -> anyhow::Result<(Self, Started)> {
        let sockets = Folder::make("relatch-bench")?;
        let engine = start_engine(&sockets, containers).await?;
        let (node, addr, started) = start_node(&sockets, data_dir).await?;
        Ok((Self { addr, node, engine, sockets }, started))
    }

    /// Ends the node in order and gives what is left, from which it can be started again.
    pub(super) async fn end_node(self) -> anyhow::Result<Alone> {
        self.node.end().await?;
        Ok(Alone { engine: self.engine, sockets: self.sockets })
    }

    /// Ends both in order.
    pub(super) async fn end(self) -> anyhow::Result<()> {
        self.end_node().await?.engine.end().await
    }

    pub(super) fn node_pid(&self) -> anyhow::Result<Pid> {
        self.node.pid().with_context(|| format!("the node ended by itself:\n{}", self.node.log()))
    }

    pub(super) fn engine_pid(&self) -> anyhow::Result<Pid> {
        self.engine.pid().with_context(|| format!("the engine ended by itself:\n{}", self.engine.log()))
    }
}

/// An engine whose node has ended.
#[derive(Debug)]
pub(super) struct Alone {
    engine: Process,
    sockets: Folder,
}

impl Alone {
    pub(super) async fn start_node(self, data_dir: &Path) -> anyhow::Result<(World, Started)> {
        let (node, addr, started) = start_node(&self.sockets, data_dir).await?;
        Ok((World { addr, node, engine: self.engine, sockets: self.sockets }, started))
    }
}

async fn start_engine(sockets: &Folder, containers: Vec<ContainerSpec>) -> anyhow::Result<Process> {
    // Every requester may connect at the same time.
    let engine = Identity { backlog: 4096, ..Identity::default() };
    let spec = EngineSpec { engine, containers, ..EngineSpec::default() };
    let file = sockets.file("engine.json");
    std::fs::write(&file, serde_json::to_vec(&spec)?)
        .with_context(|| format!("writing {}", file.display()))?;
    let socket = sockets.engine_socket();
    let arguments = ["sim-engine", "--socket", utf8(&socket)?, "--spec", utf8(&file)?];
    Process::start("the simulated engine", &arguments, sockets.file("engine.log")).await
}

async fn start_node(sockets: &Folder, data_dir: &Path) -> anyhow::Result<(Process, String, Started)> {
    let docker = format!("unix://{}", utf8(&sockets.engine_socket())?);
    let data_dir = utf8(data_dir)?;
    let arguments = [
        "-o",
        "json",
        "dev",
        "--ephemeral-data",
        "--listen",
        "127.0.0.1:0",
        "--docker",
        &docker,
        "--data-dir",
        data_dir,
    ];
    let begun = Instant::now();
    let node = Process::start("relatch", &arguments, sockets.file("node.log")).await?;
    let serving = begun.elapsed();
    let addr = node.said("/addr")?;
    admits(&addr).await?;
    Ok((node, addr, Started { serving, admitting: begun.elapsed() }))
}

/// Waits until the node answers, which it does once its host is bound and what was open is replayed.
pub(super) async fn admits(addr: &str) -> anyhow::Result<()> {
    let mut client = client(addr).await?;
    let begun = Instant::now();
    let explain = ExplainRequest { target: "local/nobody".to_owned(), grace: None };
    loop {
        match client.explain(explain.clone()).await {
            Ok(_) => return Ok(()),
            Err(status) if status.code() != Code::Unavailable || begun.elapsed() > ADMITS_WITHIN => {
                bail!("the node does not admit requests: {}", status.message());
            }
            Err(_) => sleep(POLL).await,
        }
    }
}

/// A client with a connection of its own.
pub(super) async fn client(addr: &str) -> anyhow::Result<Client> {
    let endpoint = Endpoint::from_shared(addr.to_owned())?.tcp_nodelay(true);
    let channel = endpoint.connect().await.with_context(|| format!("connecting to {addr}"))?;
    Ok(Client::at(channel))
}

/// The limits that a measurement needs, as they are typed.
pub(super) fn limits() -> Vec<String> {
    let window = format!("attempts_window_ms={ATTEMPTS_WINDOW_MS}ms");
    let many = ["attempts", "in_flight_cluster", "in_flight_host", "unresolved_host"];
    let many = many.iter().map(|name| format!("{name}=1000000"));
    // Where hundreds ask two cores at the same time, each waits its turn.
    let patient = ["connect_ms=60s", "inspect_ms=60s", "dispatch_by_ms=60s"].map(str::to_owned);
    many.chain([window, "backoff_first_ms=0s".to_owned()]).chain(patient).collect()
}

/// Raises the limits as a person does: by `relatch limits set`.
pub(super) async fn raise_limits(addr: &str) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("finding this program's own file")?;
    let ran =
        Command::new(program).args(["limits", "set"]).args(limits()).args(["--addr", addr]).output().await;
    let ran = ran.context("running relatch limits set")?;
    if !ran.status.success() {
        bail!("relatch limits set: {}", String::from_utf8_lossy(&ran.stderr).trim());
    }
    Ok(())
}

/// Asks for one restart, which is to be opened. Gives its run.
pub(super) async fn ask(client: &mut Client, target: &str) -> anyhow::Result<Run> {
    let request = RequestRecoveryRequest {
        target: target.to_owned(),
        reason: "its queue is saturated".to_owned(),
        ..RequestRecoveryRequest::default()
    };
    let answer = client.request_recovery(request).await.with_context(|| format!("asking for {target}"))?;
    let answer = answer.into_inner();
    let run = answer.run.clone().context("the answer has no run")?;
    if answer.decision() != Decision::Opened {
        bail!("the restart of {target} was not opened:{}", view::reasons(&run.reasons));
    }
    Ok(run)
}

/// Asks for one restart, and waits for its end.
pub(super) async fn recover(client: &mut Client, ends: &Ends, target: &str) -> anyhow::Result<Run> {
    let run = ask(client, target).await?;
    ends.of(&run.run_id).await
}
