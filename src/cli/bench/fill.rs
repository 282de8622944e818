//! A large ledger: ended runs beside those that are open, written by a voter in this process through the log, as a
//! node would have written them in years.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use serde_json::{Map, Value};
use tokio::task::JoinSet;

use super::voter::Voter;
use super::workload::{Workload, container, done};
use crate::consensus::Tuning;
use crate::dispatch::Journal;
use crate::env::{OsRandomness, hex_id};
use crate::model::{ContainerId, HostName, LogIndex, RunId};
use crate::storage::{Batch, DataDir, Database, StorageError};

/// How many write at the same time.
const WRITERS: usize = 256;

/// How many containers the ended runs were of.
const CONTAINERS: u64 = 1_000;

/// A run that has ended, as its journal must know it.
struct Ended {
    run: RunId,
    container: ContainerId,
    index: LogIndex,
}

/// Adds so many ended runs to the data of a node that does not run.
pub(super) async fn add_ended_runs(data_dir: &Path, count: usize) -> anyhow::Result<()> {
    let dir = DataDir::open(data_dir, || {
        Err(StorageError::failed("filling", data_dir, "it has no identity: a node must have begun it"))
    })?;
    // Snapshots of a ledger that only grows are most of the work. The last part is written as a node is tuned, so
    // that what is left of the log is what a node leaves.
    let tuning = Tuning { snapshot_entries: 100_000, ..Tuning::default() };
    let as_usual = count / 10;
    let mut ended = write(&dir, tuning, 0, count - as_usual).await?;
    ended.extend(write(&dir, Tuning::default(), count - as_usual, as_usual).await?);
    journal(&dir, &ended)
}

/// Commits `count` runs from the interlock to `RECOVERED`, from the `first`th on.
async fn write(dir: &DataDir, tuning: Tuning, first: usize, count: usize) -> anyhow::Result<Vec<Ended>> {
    let voter = Voter::start(dir.path(), dir.identity().cluster.clone(), tuning).await?;
    let local = HostName::new("local")?;
    let host =
        voter.consensus.read(|ledger| ledger.host(&local).cloned()).context("its host is not bound")?;
    let nonce = hex_id(&OsRandomness)?;
    let workload = Workload::new(host.engine_id, host.dispatcher.journal, nonce, voter.term)?;
    let next = Arc::new(AtomicUsize::new(first));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (voter, workload, next) = (voter.clone(), workload.clone(), Arc::clone(&next));
        writers.spawn(async move {
            let mut ended = Vec::new();
            loop {
                let nth = next.fetch_add(1, Ordering::Relaxed);
                if nth >= first + count {
                    return anyhow::Ok(ended);
                }
                ended.push(recovered(&voter, &workload, nth as u64).await?);
            }
        });
    }
    let mut ended = Vec::new();
    while let Some(written) = writers.join_next().await {
        ended.extend(written??);
    }
    voter.end().await;
    Ok(ended)
}

async fn recovered(voter: &Voter, workload: &Workload, nth: u64) -> anyhow::Result<Ended> {
    let run = RunId::new(hex_id(&OsRandomness)?)?;
    let (nth, life) = (nth % CONTAINERS, nth / CONTAINERS);
    let (before, after) = (container(nth, life)?, container(nth, life + 1)?);
    let position = voter.commit(workload.open(&run, &before)?).await?;
    voter.commit(workload.replied(&run)).await?;
    voter.commit(workload.seen(&run, &after)).await?;
    voter.commit(workload.well(&run, &after)).await?;
    Ok(Ended { run, container: before.id, index: position.index })
}

/// Writes what the journal of a node would have of these runs: the newest of each container, for what was before is
/// folded into its floor. The form is that of a run that it has really sent.
fn journal(dir: &DataDir, ended: &[Ended]) -> anyhow::Result<()> {
    let [family] = Journal::FAMILIES else { anyhow::bail!("the journal has more than one family by now") };
    let database = Database::open(dir.part("journal"), Journal::FAMILIES)?;
    let sent = database.range(family, "run/".."run0")?;
    let (_, record) = sent.first().context("the journal has no run: a node must have sent one")?;
    let mut record: Map<String, Value> = serde_json::from_slice(record)?;
    record.insert("end".to_owned(), serde_json::to_value(done())?);
    let mut newest = BTreeMap::new();
    for run in ended {
        let known = newest.entry(&run.container).or_insert(run);
        if known.index < run.index {
            *known = run;
        }
    }
    let mut batch = Batch::new();
    for Ended { run, container, index } in newest.into_values() {
        record["fence"]["index"] = serde_json::to_value(index)?;
        record.insert("container_id".to_owned(), serde_json::to_value(container)?);
        batch.put(family, format!("run/{run}"), serde_json::to_vec(&record)?);
        batch.put(family, format!("floor/{container}"), serde_json::to_vec(index)?);
    }
    Ok(database.write_synced("bench-filled", batch)?)
}
