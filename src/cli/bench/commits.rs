//! How many interlocks are committed and applied: the path of a proposal alone, with real syncs.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;
use tokio::task::JoinSet;

use super::cost;
use super::disk::Disk;
use super::plan::Plan;
use super::spread::{Spread, per_s};
use super::voter::Voter;
use super::workload::{Workload, container, roomy};
use crate::consensus::Tuning;
use crate::env::{OsRandomness, hex_id};
use crate::ledger::{BindHost, Command, DispatcherRef, Guard, RULES_LEVEL};
use crate::model::{ClusterId, EngineId, HostName, JournalId, JournalPosition, RunId};

/// How many commits show how much one writes.
const SIZED: u64 = 50;

/// What so many requesters had committed.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Committed {
    pub(super) requesters: usize,
    /// Interlocks, each committed and applied.
    pub(super) interlocks_per_s: f64,
    /// All entries: each interlock is taken back by a second one.
    pub(super) commits_per_s: f64,
    /// How long a requester waits for its interlock.
    pub(super) wait: Spread,
    pub(super) syncs_per_s: f64,
    pub(super) commits_per_sync: f64,
    /// Processor time of everything in this process, per second.
    pub(super) cores_busy: f64,
    /// That of everybody on the machine.
    pub(super) machine_cores_busy: f64,
    /// The median of the disk's own sync, right before and after.
    pub(super) disk_sync_us: f64,
}

/// How much one commit writes to the disk before it is answered.
pub(super) async fn bytes_per_commit(folder: &Path) -> anyhow::Result<usize> {
    let (voter, workload) = begin(&folder.join("sized")).await?;
    let before = cost::own_written_bytes()?;
    for turn in 0..SIZED {
        interlock(&voter, &workload, 0, turn).await?;
    }
    let written = cost::own_written_bytes()? - before;
    voter.end().await;
    Ok(usize::try_from(written / (2 * SIZED))?)
}

/// So many requesters at the same time, each with a container of its own, on an empty ledger.
pub(super) async fn measure(disk: &mut Disk, plan: &Plan, requesters: usize) -> anyhow::Result<Committed> {
    let (voter, workload) = begin(&disk.folder().join(format!("commits-{requesters}"))).await?;
    let (syncs, cpu, all_cpu) = (voter.database.syncs(), cost::own_cpu()?, cost::all_cpu()?);
    let begun = Instant::now();
    let until = begun + plan.commit_for;
    let mut asking = JoinSet::new();
    for nth in 0..requesters as u64 {
        let (voter, workload) = (voter.clone(), workload.clone());
        asking.spawn(async move {
            let mut waits = Vec::new();
            while Instant::now() < until {
                waits.push(interlock(&voter, &workload, nth, waits.len() as u64).await?);
            }
            anyhow::Ok(waits)
        });
    }
    let mut waits: Vec<Duration> = Vec::new();
    while let Some(asked) = asking.join_next().await {
        waits.extend(asked??);
    }
    let took = begun.elapsed();
    let cores =
        |before: Duration, after: Duration| after.saturating_sub(before).as_secs_f64() / took.as_secs_f64();
    let (cores_busy, machine_cores_busy) = (cores(cpu, cost::own_cpu()?), cores(all_cpu, cost::all_cpu()?));
    let syncs = voter.database.syncs() - syncs;
    voter.end().await;
    disk.probe(&format!("after the interlocks of {requesters}")).await?;
    let interlocks = waits.len() as u64;
    Ok(Committed {
        requesters,
        interlocks_per_s: per_s(interlocks, took),
        commits_per_s: per_s(2 * interlocks, took),
        wait: Spread::of(waits),
        syncs_per_s: per_s(syncs, took),
        commits_per_sync: 2.0 * interlocks as f64 / syncs.max(1) as f64,
        cores_busy,
        machine_cores_busy,
        disk_sync_us: disk.sync_around_us(),
    })
}

/// Opens an interlock, and takes it back. Gives how long the first took until it was applied.
async fn interlock(voter: &Voter, workload: &Workload, nth: u64, life: u64) -> anyhow::Result<Duration> {
    let run = RunId::new(hex_id(&OsRandomness)?)?;
    let open = workload.open(&run, &container(nth, life)?)?;
    let at = Instant::now();
    voter.commit(open).await?;
    let waited = at.elapsed();
    voter.commit(workload.take_back(&run)).await?;
    Ok(waited)
}

/// A new cluster of one voter, whose host is bound and whose limits are roomy.
async fn begin(dir: &Path) -> anyhow::Result<(Voter, Workload)> {
    std::fs::create_dir(dir).with_context(|| format!("making {}", dir.display()))?;
    let cluster = ClusterId::new(hex_id(&OsRandomness)?)?;
    let voter = Voter::start(dir, cluster, Tuning::default()).await?;
    let engine = EngineId::new("bench")?;
    let journal = JournalPosition { journal: JournalId::new(hex_id(&OsRandomness)?)?, sequence: 1 };
    voter.commit(Command::RaiseRulesLevel { level: RULES_LEVEL }).await?;
    voter.commit(Command::SetLimits(roomy())).await?;
    let dispatcher = DispatcherRef { guard: Guard::Agent, journal: journal.clone() };
    let bind = BindHost { host: HostName::new("local")?, engine_id: engine.clone(), dispatcher };
    voter.commit(Command::BindHost(bind)).await?;
    let workload = Workload::new(engine, journal, hex_id(&OsRandomness)?, voter.term)?;
    Ok((voter, workload))
}
