//! The story: a saturated container, a restart that takes its time, and a coordinator that dies in between.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::super::client::{CallError, Client, Nodes, Retry};
use super::super::follow::Follow;
use super::super::output::{Format, Output};
use super::super::text::word;
use super::super::view;
use super::judge::{Evidence, Verdict, judge, short};
use super::stage::{Folder, Process};
use super::timeline::{Timeline, Who};
use crate::rpc::v1;
use crate::rpc::v1::{RequestRecoveryRequest, RequestRecoveryResponse, Run, RunStatus, Verification};
use crate::sim::{ContainerSpec, EffectKind, EngineSpec, Event, Health, Healthcheck, History, StopBehaviour};

/// How long the container takes to stop: long enough for the coordinator to die and come back meanwhile.
const STOP_MS: u64 = 6_000;

/// How long it takes until its health check is content again.
const WELL_AFTER_MS: u64 = 500;

const POST_WITHIN: Duration = Duration::from_secs(10);
const SETTLED_WITHIN: Duration = Duration::from_secs(25);
const POLL: Duration = Duration::from_millis(20);

const TARGET: &str = "local/web";

/// What came of it.
pub(super) struct Told {
    pub(super) run: Run,
    pub(super) posts: usize,
    pub(super) verdicts: Vec<Verdict>,
}

/// Tells the story in `folder`.
pub(super) async fn tell(folder: &Folder, timeline: &Timeline) -> anyhow::Result<Told> {
    timeline.print("relatch demo: one restart whose answer gets lost. The Docker Engine here is SIMULATED;");
    timeline.print("the relatch processes, their disk and the SIGKILL are real.");
    timeline.print("");
    let wire_log = folder.file("wire.log");
    let engine = start_engine(folder, &wire_log).await?;
    let container_id = engine.said("/containers/web")?;
    timeline.say(
        Who::Engine,
        &format!("container web ({}) runs, and is unhealthy: its queue is saturated", short(&container_id)),
    );
    let (posts_told, posts) = watch::channel(0);
    let watcher =
        tokio::spawn(tell_effects(wire_log.clone(), container_id.clone(), timeline.clone(), posts_told));
    let told = with_engine(folder, timeline, &wire_log, &container_id, posts).await;
    watcher.abort();
    let ended = engine.end().await;
    let told = told?;
    ended?;
    Ok(told)
}

async fn with_engine(
    folder: &Folder,
    timeline: &Timeline,
    wire_log: &Path,
    container_id: &str,
    mut posts: watch::Receiver<usize>,
) -> anyhow::Result<Told> {
    let node = start_node(folder, "127.0.0.1:0", "node-1.log").await?;
    let addr = node.said("/addr")?;
    timeline.say(Who::Relatch, "is ready");

    // The id makes a repeated request the same request.
    let request = RequestRecoveryRequest {
        target: TARGET.into(),
        reason: "its queue is saturated".into(),
        request_id: "demo-1".into(),
        ..RequestRecoveryRequest::default()
    };
    let quiet = Output::new(Format::Json).muted();
    let mut nodes = Nodes::new(vec![addr.parse().map_err(anyhow::Error::msg)?])?;
    timeline.say(
        Who::You,
        &format!("relatch recover {TARGET} --reason \"{}\" --request-id demo-1", request.reason),
    );
    let answer = ask(&mut nodes, &quiet, &request).await?;
    let opened = answer.run.clone().context("the answer has no run")?;
    timeline.say(
        Who::Relatch,
        &format!(
            "{}: run {}. The decision is on disk; only now may a restart leave",
            word(answer.decision().as_str_name(), "DECISION_"),
            short(&opened.run_id)
        ),
    );

    if timeout(POST_WITHIN, posts.wait_for(|told| *told > 0)).await.is_err() {
        bail!("no restart request arrived; {}\nThe node logged:\n{}", view::run(&opened), node.log());
    }
    let pid = node.kill_9().await?;
    timeline.say(
        Who::Demo,
        &format!("kill -9 {pid}: relatch is dead, and nobody is left to hear the engine's answer"),
    );

    let listen = addr.trim_start_matches("http://");
    let node = start_node(folder, listen, "node-2.log").await?;
    timeline.say(Who::Relatch, "is started again, from what its disk has");
    let settled = follow(&mut nodes, &quiet, &opened, timeline).await;
    let run = match settled {
        Ok(run) => run,
        Err(error) => bail!("{error:#}; the node logged:\n{}", node.log()),
    };

    timeline.say(Who::You, "send the same request again, to be sure");
    let again = ask(&mut nodes, &quiet, &request).await?;
    let asked_again = again.run.clone().unwrap_or_default();
    let stored = if again.repeated_answer { "the stored answer" } else { "A NEW ANSWER" };
    timeline.say(Who::Relatch, &format!("{stored}: run {}. Nothing is sent", short(&asked_again.run_id)));
    node.end().await?;

    let wire = History::read(wire_log)?;
    let evidence = Evidence { wire: &wire, container_id, run: &run, asked_again: &asked_again };
    let verdicts = judge(&evidence);
    let posts = wire.posts(container_id).len();
    timeline.say(
        Who::Engine,
        &format!("its own log has {posts} POST /containers/{}…/restart", short(container_id)),
    );
    Ok(Told { run, posts, verdicts })
}

async fn start_engine(folder: &Folder, wire_log: &Path) -> anyhow::Result<Process> {
    let healthcheck = Healthcheck { interval_ms: 1_000, timeout_ms: 1_000, ..Healthcheck::default() };
    let web = ContainerSpec {
        healthcheck: Some(healthcheck),
        health_delay_ms: WELL_AFTER_MS,
        ..ContainerSpec::named("web")
            .health(Health::Saturated)
            .stop(StopBehaviour::Polite { after_ms: STOP_MS })
    };
    let spec = EngineSpec { containers: vec![web], ..EngineSpec::default() };
    let spec_file = folder.file("engine.json");
    std::fs::write(&spec_file, serde_json::to_vec_pretty(&spec)?)
        .with_context(|| format!("writing {}", spec_file.display()))?;
    let socket = folder.file("engine.sock");
    let arguments =
        ["sim-engine", "--socket", utf8(&socket)?, "--spec", utf8(&spec_file)?, "--log", utf8(wire_log)?];
    Process::start("the simulated engine", &arguments, folder.file("engine.log")).await
}

async fn start_node(folder: &Folder, listen: &str, log: &str) -> anyhow::Result<Process> {
    let data = folder.file("data");
    let docker = format!("unix://{}", utf8(&folder.file("engine.sock"))?);
    let arguments =
        ["dev", "-o", "json", "--listen", listen, "--data-dir", utf8(&data)?, "--docker", &docker];
    Process::start("relatch", &arguments, folder.file(log)).await
}

fn utf8(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8: set TMPDIR to a folder that is", path.display()))
}

async fn ask(
    nodes: &mut Nodes,
    output: &Output,
    request: &RequestRecoveryRequest,
) -> anyhow::Result<RequestRecoveryResponse> {
    let call = async |mut client: Client| client.request_recovery(request.clone()).await;
    let retry = Retry { within: Duration::from_secs(10), unreachable: true };
    nodes.call(retry, output, call).await.map_err(CallError::advise)
}

/// Follows the run until it is known whether the container became well, and tells what happens in it.
async fn follow(
    nodes: &mut Nodes,
    output: &Output,
    opened: &Run,
    timeline: &Timeline,
) -> anyhow::Result<Run> {
    let mut told = opened.events.len();
    let mut follow = Follow::new(nodes, output, &opened.run_id);
    let settled = timeout(SETTLED_WITHIN, async {
        loop {
            let run = follow.next().await?.run.context("a change without a run")?;
            for event in run.events.iter().skip(told) {
                timeline.say(Who::Relatch, &in_words(event, &run));
            }
            told = told.max(run.events.len());
            let open = matches!(run.status(), RunStatus::Interlocked | RunStatus::Unresolved);
            let watched = run.status() == RunStatus::Applied
                && matches!(run.verification(), Verification::Unspecified | Verification::Pending);
            if !open && !watched {
                return anyhow::Ok(run);
            }
        }
    });
    let within = SETTLED_WITHIN.as_secs();
    settled.await.with_context(|| format!("run {} did not come to its end in {within} s", opened.run_id))?
}

/// An event, for somebody who sees the words for the first time. `run` is as it was after it.
fn in_words(event: &v1::Event, run: &Run) -> String {
    let started = |life: Option<&v1::Incarnation>| life.and_then(|life| life.started_at);
    let meaning = match event.kind.as_str() {
        "ATTESTED" if run.status() == RunStatus::Unresolved => {
            "its journal has an intent, so the POST may have left".into()
        }
        "UNRESOLVED" => "the effect is not known: no claim is made, and nothing is sent again".into(),
        "OBSERVED" if started(run.observed.as_ref()) == started(run.baseline.as_ref()) => {
            "a look at the container: the StartedAt of before, which proves nothing".into()
        }
        "OBSERVED" => "a look at the container: a later StartedAt".into(),
        "APPLIED" => format!("the restart happened; the evidence: {}", run.settlement),
        "QUARANTINE_BEGAN" => {
            "no whole reply was seen, so the target stays closed for a while: the POST must be spent first"
                .into()
        }
        "VERIFIED" => format!("watched after the restart: {}", view::verification(run)),
        _ => event.detail.clone(),
    };
    format!("{}: {meaning}", event.kind)
}

/// Tells what happens in the engine as its log grows, and then how many restart requests have arrived whole.
async fn tell_effects(
    wire_log: PathBuf,
    container_id: String,
    timeline: Timeline,
    posts_told: watch::Sender<usize>,
) {
    let mut seen = 0;
    loop {
        if let Ok(history) = History::read(&wire_log) {
            for entry in history.entries.iter().filter(|entry| entry.seq > seen) {
                if let Some(what) = effect_in_words(&entry.event, &container_id) {
                    timeline.say(Who::Engine, &what);
                }
            }
            seen = history.entries.last().map_or(seen, |entry| entry.seq);
            posts_told.send_replace(history.posts(&container_id).len());
        }
        sleep(POLL).await;
    }
}

fn effect_in_words(event: &Event, container_id: &str) -> Option<String> {
    match event {
        Event::Request { method, target, container, head_bytes, .. }
            if method == "POST" && container.as_deref() == Some(container_id) =>
        {
            let target = target.replace(container_id, &format!("{}…", short(container_id)));
            Some(format!("receives POST {target} ({head_bytes} bytes)"))
        }
        Event::Effect { container, effect, .. } if container == container_id => Some(match effect {
            EffectKind::Sigterm => format!("asks web to stop; it needs {} s for that", STOP_MS / 1_000),
            EffectKind::Exited => "web has stopped".into(),
            EffectKind::Started => "web is started: a new StartedAt".into(),
            _ => return None,
        }),
        _ => None,
    }
}
