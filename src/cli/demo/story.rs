//! The story: a saturated container, a restart that takes its time, and a coordinator that dies in between.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use tokio::time::timeout;

use super::super::client::{CallError, Client, Nodes, Retry};
use super::super::follow::Follow;
use super::super::output::{Format, Output};
use super::super::stage::{Folder, Interrupt, Process, utf8};
use super::super::text::word;
use super::super::view;
use super::judge::{Evidence, Verdict, judge, short};
use super::side::EngineSide;
use super::timeline::{Timeline, Who};
use crate::rpc::v1;
use crate::rpc::v1::{
    Decision, RequestRecoveryRequest, RequestRecoveryResponse, Run, RunStatus, Verification,
};

const POST_WITHIN: Duration = Duration::from_secs(10);

/// What came of it.
pub(super) struct Told {
    pub(super) run: Run,
    pub(super) posts: usize,
    pub(super) verdicts: Vec<Verdict>,
}

/// Tells the story in `folder`, over that engine. Ended early, it still leaves the engine in order, and a
/// second time it does not.
pub(super) async fn tell<S: EngineSide>(
    mut side: S,
    folder: &Folder,
    timeline: &Timeline,
    interrupt: &mut Interrupt,
) -> anyhow::Result<Told> {
    let told = tokio::select! {
        told = with_engine(&mut side, folder, timeline) => told,
        // Leaving here ends the nodes.
        () = interrupt.raised() => Err(anyhow!(S::INTERRUPTED)),
    };
    let ended = tokio::select! {
        ended = side.end() => ended,
        () = interrupt.raised() => Err(anyhow!(S::INTERRUPTED)),
    };
    let told = told?;
    ended?;
    Ok(told)
}

async fn with_engine<S: EngineSide>(
    side: &mut S,
    folder: &Folder,
    timeline: &Timeline,
) -> anyhow::Result<Told> {
    let node = start_node(folder, "127.0.0.1:0", "node-1.log").await?;
    let addr = node.said("/addr")?;
    timeline.say(Who::Relatch, "is ready");

    // The id makes a repeated request the same request.
    let request = RequestRecoveryRequest {
        target: side.container().target(),
        reason: side.reason().into(),
        request_id: "demo-1".into(),
        ..RequestRecoveryRequest::default()
    };
    let quiet = Output::new(Format::Json).muted();
    let mut nodes = Nodes::new(vec![addr.parse().map_err(anyhow::Error::msg)?])?;
    timeline.say(
        Who::You,
        &format!("relatch recover {} --reason \"{}\" --request-id demo-1", request.target, request.reason),
    );
    let answer = match ask(&mut nodes, &quiet, &request).await {
        Ok(answer) => answer,
        // Why it answers nobody, or has ended, is in its log: another node that serves the engine, for one.
        Err(error) => bail!("{error:#}; the node logged:\n{}", node.log()),
    };
    let opened = answer.run.clone().context("the answer has no run")?;
    if answer.decision() != Decision::Opened {
        let decision = word(answer.decision().as_str_name(), "DECISION_");
        bail!("the request was {decision}, and nothing was sent:{}", view::reasons(&opened.reasons));
    }
    timeline.say(
        Who::Relatch,
        &format!(
            "{}: run {}. The decision is on disk; only now may a restart leave",
            word(answer.decision().as_str_name(), "DECISION_"),
            short(&opened.run_id)
        ),
    );

    if timeout(POST_WITHIN, side.post_arrived()).await.is_err() {
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
    let settled_within = side.settled_within(&opened);
    let settled = timeout(settled_within, follow::<S>(&mut nodes, &quiet, &opened, timeline)).await;
    let run = match settled {
        Ok(Ok(run)) => run,
        Ok(Err(error)) => bail!("{error:#}; the node logged:\n{}", node.log()),
        Err(_) => bail!(
            "run {} did not come to its end in {} s; the node logged:\n{}",
            opened.run_id,
            settled_within.as_secs(),
            node.log()
        ),
    };

    timeline.say(Who::You, "send the same request again, to be sure");
    let again = ask(&mut nodes, &quiet, &request).await?;
    let asked_again = again.run.clone().unwrap_or_default();
    let stored = if again.repeated_answer { "the stored answer" } else { "A NEW ANSWER" };
    timeline.say(Who::Relatch, &format!("{stored}: run {}. Nothing is sent", short(&asked_again.run_id)));
    node.end().await?;

    let witness = side.witness().await?;
    let verdicts = judge(&Evidence {
        witness: &witness,
        run: &run,
        asked_again: &asked_again,
        is_health_awaited: S::WAITS_FOR_HEALTH,
    });
    Ok(Told { run, posts: witness.posts.len(), verdicts })
}

async fn start_node(folder: &Folder, listen: &str, log: &str) -> anyhow::Result<Process> {
    let data = folder.file("data");
    let docker = format!("unix://{}", utf8(&folder.engine_socket())?);
    // What the demo keeps goes with it, in a container too.
    let mut arguments = vec!["dev", "-o", "json", "--ephemeral-data"];
    arguments.extend(["--listen", listen, "--data-dir", utf8(&data)?, "--docker", &docker]);
    Process::start("relatch", &arguments, folder.file(log)).await
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

/// Follows the run to its end, and tells what happens in it. Where its health is waited for, the end is only
/// when it is known whether the container became well.
async fn follow<S: EngineSide>(
    nodes: &mut Nodes,
    output: &Output,
    opened: &Run,
    timeline: &Timeline,
) -> anyhow::Result<Run> {
    let mut told = opened.events.len();
    let mut follow = Follow::new(nodes, output, &opened.run_id);
    loop {
        let run = follow.next().await?.run.context("a change without a run")?;
        for event in run.events.iter().skip(told) {
            timeline.say(Who::Relatch, &in_words(event, &run));
        }
        told = told.max(run.events.len());
        let is_open = matches!(run.status(), RunStatus::Interlocked | RunStatus::Unresolved);
        let is_watched = S::WAITS_FOR_HEALTH
            && run.status() == RunStatus::Applied
            && matches!(run.verification(), Verification::Unspecified | Verification::Pending);
        if !is_open && !is_watched {
            return Ok(run);
        }
    }
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
