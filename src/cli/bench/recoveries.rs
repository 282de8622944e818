//! How many whole recoveries: from the request over gRPC to `APPLIED`, by a node and an engine of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::task::JoinSet;

use super::super::client::Client;
use super::super::text::word;
use super::cost;
use super::disk::Disk;
use super::plan::Plan;
use super::spread::{Spread, per_s};
use super::waiting::Ends;
use super::world::{World, client, raise_limits, recover};
use crate::rpc::v1::{Run, RunStatus};
use crate::sim::{ContainerSpec, Health};

/// What so many requesters had recovered.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Recovered {
    pub(super) requesters: usize,
    /// From the request to `APPLIED`.
    pub(super) recoveries_per_s: f64,
    /// How long each took.
    pub(super) took: Spread,
    /// How many ended in which status.
    pub(super) ends: BTreeMap<String, usize>,
    /// Processor time per second, of the node.
    pub(super) node_cores: f64,
    /// Of the engine, and of those who ask.
    pub(super) other_cores: f64,
    /// The median of the disk's own sync, right before and after.
    pub(super) disk_sync_us: f64,
}

/// So many requesters at the same time, each with containers of its own, on an empty ledger.
pub(super) async fn measure(disk: &mut Disk, plan: &Plan, requesters: usize) -> anyhow::Result<Recovered> {
    let containers = (0..plan.containers).map(container).collect();
    let (world, _) =
        World::start(containers, &disk.folder().join(format!("recoveries-{requesters}"))).await?;
    raise_limits(&world.addr).await?;
    let ends = Arc::new(Ends::listen(client(&world.addr).await?, is_settled).await?);
    let mut clients = Vec::new();
    for _ in 0..requesters {
        clients.push(client(&world.addr).await?);
    }
    let (node, engine) = (world.node_pid()?, world.engine_pid()?);
    let cost = || anyhow::Ok((cost::cpu(node)?, cost::cpu(engine)? + cost::own_cpu()?));
    let ((node_before, other_before), begun) = (cost()?, Instant::now());
    let until = begun + plan.recover_for;
    let mut asking = JoinSet::new();
    for (nth, client) in clients.into_iter().enumerate() {
        let own = (nth..plan.containers).step_by(requesters).map(name).collect();
        asking.spawn(turns(client, Arc::clone(&ends), own, until));
    }
    let (mut took, mut statuses) = (Vec::new(), BTreeMap::new());
    while let Some(asked) = asking.join_next().await {
        for (time, status) in asked?? {
            let name = word(status.as_str_name(), "RUN_STATUS_");
            *statuses.entry(name.to_owned()).or_default() += 1;
            if status == RunStatus::Applied {
                took.push(time);
            }
        }
    }
    let (elapsed, (node_after, other_after)) = (begun.elapsed(), cost()?);
    drop(ends);
    world.end().await?;
    disk.probe(&format!("after the recoveries of {requesters}")).await?;
    let cores = |before: Duration, after: Duration| {
        after.saturating_sub(before).as_secs_f64() / elapsed.as_secs_f64()
    };
    Ok(Recovered {
        requesters,
        recoveries_per_s: per_s(took.len() as u64, elapsed),
        took: Spread::of(took),
        ends: statuses,
        node_cores: cores(node_before, node_after),
        other_cores: cores(other_before, other_after),
        disk_sync_us: disk.sync_around_us(),
    })
}

/// One requester's recoveries, one after the other, each container in its turn.
async fn turns(
    mut client: Client,
    ends: Arc<Ends>,
    containers: Vec<String>,
    until: Instant,
) -> anyhow::Result<Vec<(Duration, RunStatus)>> {
    let mut turns = Vec::new();
    for container in containers.iter().cycle() {
        if Instant::now() >= until {
            break;
        }
        let at = Instant::now();
        let run = recover(&mut client, &ends, &format!("local/{container}")).await?;
        turns.push((at.elapsed(), run.status()));
    }
    Ok(turns)
}

/// One that is healthy as soon as it runs: a container without a health check would be watched for a while, and those
/// that are watched grow with the rate that is measured.
pub(super) fn container(nth: usize) -> ContainerSpec {
    ContainerSpec::named(name(nth)).health(Health::Healthy)
}

pub(super) fn name(nth: usize) -> String {
    format!("c{nth}")
}

/// True once the effect is known.
pub(super) fn is_settled(run: &Run) -> bool {
    !matches!(run.status(), RunStatus::Unspecified | RunStatus::Interlocked | RunStatus::Unresolved)
}
