//! How long it takes from a request to the first byte of its restart, and where that time goes.
//!
//! Node, engine and client run in this one process, so that all times are of one clock and the node's own steps
//! can be heard. One requester asks, each time only once everything before it has ended.

use std::path::Path;
use std::pin::pin;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use serde::Serialize;
use tokio::sync::oneshot;

use super::super::stage::{Folder, utf8};
use super::cost;
use super::disk::Disk;
use super::plan::Plan;
use super::recoveries::{container, is_settled, name};
use super::spread::Spread;
use super::steps::{Step, Steps};
use super::waiting::Ends;
use super::world::{admits, client, raise_limits, recover};
use crate::docker::{TcpOptions, parse_instant};
use crate::node::{DevNotice, DevOptions, run_dev};
use crate::rpc::v1::RunStatus;
use crate::sim::{Endpoint, Engine, Entry, Event};

/// How many containers the engine has.
const CONTAINERS: usize = 16;

/// From the request to the first byte, and what it consists of.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FirstByte {
    /// From the client's call to the arrival of the POST at the engine.
    pub(super) total: Spread,
    /// The steps in their order, each beside what it is made of.
    pub(super) steps: Vec<Part>,
    /// Of one whole recovery, to `APPLIED`: syncs of the log and of the journal.
    pub(super) syncs_per_recovery: f64,
    /// Processor time of node, engine and client together, for one whole recovery.
    pub(super) cpu_ms_per_recovery: f64,
    /// How many containers the engine had.
    pub(super) containers: usize,
    /// The median of the disk's own sync, right before and after.
    pub(super) disk_sync_us: f64,
}

/// One step.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part {
    pub(super) name: &'static str,
    /// What happens in it.
    pub(super) what: &'static str,
    /// True for what is counted within the step before it.
    pub(super) within: bool,
    pub(super) took: Spread,
}

/// The steps up to the first byte, and whether a sync is looked for in them.
const STEPS: [(&str, &str, bool); 6] = [
    ("look", "list the engine's containers, inspect the one", false),
    ("propose", "the interlock, until it is committed and applied", true),
    ("recheck", "inspect again, prove authority, look for holds", false),
    ("connect", "a fresh connection to the engine", false),
    ("intent", "journalled, before the first byte", true),
    ("compare", "inspect once more, on another connection", false),
];

/// One request's times.
struct Sample {
    total: Duration,
    /// In the order of [`STEPS`]: the step, and the syncs in it.
    steps: Vec<(Duration, Duration)>,
    syncs: usize,
}

/// Measures it.
pub(super) async fn measure(disk: &mut Disk, plan: &Plan, steps: &Steps) -> anyhow::Result<FirstByte> {
    let sockets = Folder::make("relatch-bench")?;
    let engine = (0..CONTAINERS).fold(Engine::builder(), |builder, nth| builder.container(container(nth)));
    let engine = engine.build()?;
    let socket = sockets.engine_socket();
    engine.serve_unix(&socket).await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let (tell_addr, addr) = oneshot::channel();
    let tell_addr = Mutex::new(Some(tell_addr));
    let tell = |notice| {
        if let DevNotice::Serving(bound) = notice
            && let Some(tell) = tell_addr.lock().ok().and_then(|mut tell| tell.take())
        {
            // Whoever listened has given up.
            let _ = tell.send(format!("http://{bound}"));
        }
    };
    let stopping = async {
        let _ = stopped.await;
    };
    let options = options(&disk.folder().join("first-byte"), &socket)?;
    let mut node = pin!(run_dev(options, tell, stopping, std::future::pending()));
    let taken = tokio::select! {
        ended = &mut node => bail!("the node ended by itself: {ended:?}"),
        taken = async { take(&addr.await?, &engine, plan, steps).await } => taken,
    };
    steps.end();
    let (samples, cpu) = taken?;
    // The node is waiting for this, or has ended.
    let _ = stop.send(());
    node.await?;
    engine.shutdown().await?;
    disk.probe("after the first bytes").await?;
    Ok(first_byte(&samples, cpu, disk.sync_around_us()))
}

fn options(data_dir: &Path, socket: &Path) -> anyhow::Result<DevOptions> {
    Ok(DevOptions {
        listen: "127.0.0.1:0".parse()?,
        data_dir: data_dir.to_owned(),
        ephemeral_data: true,
        docker: format!("unix://{}", utf8(socket)?),
        tcp: TcpOptions::default(),
        grace_max_s: None,
        margin_ms: None,
    })
}

async fn take(
    addr: &str,
    engine: &Engine,
    plan: &Plan,
    steps: &Steps,
) -> anyhow::Result<(Vec<Sample>, Duration)> {
    admits(addr).await?;
    raise_limits(addr).await?;
    let ends = Ends::listen(client(addr).await?, is_settled).await?;
    let mut client = client(addr).await?;
    let (mut samples, mut cpu) = (Vec::new(), cost::own_cpu()?);
    let mut seen = 0;
    steps.begin();
    for turn in 0..plan.warm_up + plan.first_bytes {
        if turn == plan.warm_up {
            samples.clear();
            cpu = cost::own_cpu()?;
        }
        steps.take();
        let asked = SystemTime::now();
        let run = recover(&mut client, &ends, &format!("local/{}", name(turn % CONTAINERS))).await?;
        if run.status() != RunStatus::Applied {
            bail!("run {} was not applied, and so tells nothing of a first byte", run.run_id);
        }
        let arrived = engine.log().since(seen);
        seen = arrived.last().map_or(seen, |entry| entry.seq);
        let total = arrival(&arrived)?.duration_since(asked).context("the wall clock stepped back")?;
        samples.push(sample(total, &steps.take())?);
    }
    Ok((samples, cost::own_cpu()?.saturating_sub(cpu)))
}

/// When the one POST among these arrived.
fn arrival(entries: &[Entry]) -> anyhow::Result<SystemTime> {
    let is_post = |entry: &&Entry| matches!(&entry.event, Event::Request { endpoint: Endpoint::Restart, .. });
    let posts: Vec<&Entry> = entries.iter().filter(is_post).collect();
    let [post] = posts.as_slice() else { bail!("{} restarts arrived for one request", posts.len()) };
    let at = parse_instant(&post.time)?;
    Ok(UNIX_EPOCH + Duration::new(u64::try_from(at.unix_s())?, at.nanos()))
}

fn sample(total: Duration, ended: &[Step]) -> anyhow::Result<Sample> {
    let syncs: Vec<&Step> = ended.iter().filter(|step| step.name == "sync").collect();
    let mut steps = Vec::new();
    for (name, ..) in STEPS {
        let step = ended.iter().find(|step| step.name == name);
        let step = step.with_context(|| format!("the step {name} was not heard of"))?;
        let within = syncs.iter().filter(|sync| sync.is_within(step)).map(|sync| sync.took()).sum();
        steps.push((step.took(), within));
    }
    Ok(Sample { total, steps, syncs: syncs.len() })
}

fn first_byte(samples: &[Sample], cpu: Duration, disk_sync_us: f64) -> FirstByte {
    let mut parts = Vec::new();
    for (at, (name, what, syncs)) in STEPS.into_iter().enumerate() {
        let took = Spread::of(samples.iter().map(|sample| sample.steps[at].0));
        parts.push(Part { name, what, within: false, took });
        if syncs {
            let took = Spread::of(samples.iter().map(|sample| sample.steps[at].1));
            parts.push(Part { name: "sync", what: "of which its sync", within: true, took });
        }
    }
    let elsewhere = samples
        .iter()
        .map(|sample| sample.total.saturating_sub(sample.steps.iter().map(|(step, _)| *step).sum()));
    let what = "gRPC, tasks that wake each other, the POST's own way to the engine";
    parts.push(Part { name: "the rest", what, within: false, took: Spread::of(elsewhere) });
    let count = samples.len().max(1) as f64;
    FirstByte {
        total: Spread::of(samples.iter().map(|sample| sample.total)),
        steps: parts,
        syncs_per_recovery: samples.iter().map(|sample| sample.syncs).sum::<usize>() as f64 / count,
        cpu_ms_per_recovery: cpu.as_secs_f64() * 1e3 / count,
        containers: CONTAINERS,
        disk_sync_us,
    }
}
