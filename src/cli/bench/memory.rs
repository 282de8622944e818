//! How much memory a node needs, and how long it takes to start again on a large ledger.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::super::output::Output;
use super::cost::{self, Resident};
use super::disk::Disk;
use super::fill::add_ended_runs;
use super::plan::Plan;
use super::recoveries::{is_settled, name};
use super::waiting::Ends;
use super::world::{Started, World, client, raise_limits, recover};
use crate::rpc::v1::{ListRunsRequest, Run, RunStatus};
use crate::sim::{ContainerSpec, End, Endpoint, Rule};

/// How many ask at the same time for the runs that stay open.
const REQUESTERS: usize = 16;

/// Memory counts as settled once it has stayed within a hundredth for so long.
const STEADY_FOR: Duration = Duration::from_secs(2);
const STEADY_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What a node needs.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Needs {
    /// On an empty ledger, with nothing to do.
    pub(super) idle: Node,
    /// On the large ledger, after a start, with nothing to do but to look after what is open.
    pub(super) large: Node,
    /// What the large ledger holds.
    pub(super) open_runs: usize,
    pub(super) ended_runs: usize,
    /// What lies on the disk then.
    pub(super) data_mib: f64,
}

/// One node.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    /// From the start of the process until clients could connect.
    pub(super) serving_s: f64,
    /// Until it answered one.
    pub(super) admitting_s: f64,
    /// Resident memory once it is steady, and the most until then.
    pub(super) resident_mib: f64,
    pub(super) peak_mib: f64,
}

/// Measures an idle node, gives it a large ledger, and starts it again on that.
pub(super) async fn measure(disk: &mut Disk, plan: &Plan, output: &Output) -> anyhow::Result<Needs> {
    let data_dir = disk.folder().join("memory");
    let containers = (0..plan.open_runs).map(|nth| ContainerSpec::named(name(nth)).rule(lost())).collect();
    let (world, started) = World::start(containers, &data_dir).await?;
    let idle = node(&world, started).await?;
    raise_limits(&world.addr).await?;
    output.note(format!("{} runs whose answer is lost", plan.open_runs));
    lose(&world, plan.open_runs).await?;
    let engine = world.end_node().await?;
    output.note(format!("{} runs that have ended", plan.ended_runs));
    add_ended_runs(&data_dir, plan.ended_runs).await?;
    let data_mib = size(&data_dir)? as f64 / f64::from(1 << 20);
    let (world, started) = engine.start_node(&data_dir).await?;
    let large = node(&world, started).await?;
    let Counted { open_runs, ended_runs } = count(&world).await?;
    world.end().await?;
    if (open_runs, ended_runs) != (plan.open_runs, plan.ended_runs) {
        bail!("the node has {open_runs} open and {ended_runs} ended runs where others were written");
    }
    disk.probe("after the large ledger").await?;
    Ok(Needs { idle, large, open_runs, ended_runs, data_mib })
}

/// The engine takes every restart, does nothing, and hangs up.
fn lost() -> Rule {
    Rule::on(Endpoint::Restart).no_effect().cut(End::Fin).forever()
}

/// Has so many runs opened of which the answer is lost: they stay open.
async fn lose(world: &World, count: usize) -> anyhow::Result<()> {
    let is_lost = |run: &Run| run.status() == RunStatus::Unresolved;
    let ends = Arc::new(Ends::listen(client(&world.addr).await?, is_lost).await?);
    let mut asking = JoinSet::new();
    for nth in 0..REQUESTERS.min(count) {
        let (mut client, ends) = (client(&world.addr).await?, Arc::clone(&ends));
        asking.spawn(async move {
            for nth in (nth..count).step_by(REQUESTERS) {
                recover(&mut client, &ends, &format!("local/{}", name(nth))).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(asked) = asking.join_next().await {
        asked??;
    }
    Ok(())
}

async fn node(world: &World, started: Started) -> anyhow::Result<Node> {
    let resident = steady(world).await?;
    let mib = |kib: u64| kib as f64 / 1024.0;
    Ok(Node {
        serving_s: started.serving.as_secs_f64(),
        admitting_s: started.admitting.as_secs_f64(),
        resident_mib: mib(resident.now_kib),
        peak_mib: mib(resident.peak_kib),
    })
}

/// The node's memory, once it moves no more, or as it is after a while.
async fn steady(world: &World) -> anyhow::Result<Resident> {
    let pid = world.node_pid()?;
    let (begun, mut since) = (Instant::now(), Instant::now());
    let mut known = cost::resident(pid)?;
    while since.elapsed() < STEADY_FOR && begun.elapsed() < STEADY_WITHIN {
        sleep(LOOK_EVERY).await;
        let now = cost::resident(pid)?;
        if now.now_kib.abs_diff(known.now_kib) > known.now_kib / 100 {
            (known, since) = (now, Instant::now());
        }
    }
    cost::resident(pid)
}

/// How many runs a node has.
struct Counted {
    open_runs: usize,
    ended_runs: usize,
}

/// Counts them as any client would.
async fn count(world: &World) -> anyhow::Result<Counted> {
    let mut client = client(&world.addr).await?;
    let mut counted = Counted { open_runs: 0, ended_runs: 0 };
    let mut page = ListRunsRequest { page_size: 1_000, ..ListRunsRequest::default() };
    loop {
        let answer = client.list_runs(page.clone()).await.context("listing the runs")?.into_inner();
        let open = answer.runs.iter().filter(|run| !is_settled(run)).count();
        counted.open_runs += open;
        counted.ended_runs += answer.runs.len() - open;
        if answer.next_page_token.is_empty() {
            return Ok(counted);
        }
        page.page_token = answer.next_page_token;
    }
}

/// The bytes of all files below a folder.
fn size(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { size(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}
