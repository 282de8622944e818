//! `relatch demo`: the story of a lost answer, told by real processes over a scripted engine or a real one.

mod judge;
mod proxy;
mod real;
mod side;
mod simulated;
mod story;
mod timeline;

use anyhow::bail;
use serde_json::json;

use super::docker;
use super::exit::Exit;
use super::output::Output;
use super::stage::{Folder, Interrupt};
use crate::docker::Endpoint;
use judge::Verdict;
use real::Real;
use side::EngineSide;
use simulated::Simulated;
use story::Told;
use timeline::Timeline;

/// Show what relatch does when an answer is lost and its own process is killed.
///
/// Real relatch processes, a real Raft log on disk, a real SIGKILL. The Docker Engine is simulated: it
/// speaks HTTP as dockerd does, and restarts nothing of yours. Takes less than half a minute. The exit code
/// is 1 if an invariant broke.
///
/// With --docker, the same is told over a real Docker Engine: it REALLY RESTARTS the container of yours that
/// --container names, once. A proxy of the demo stands before the engine, counts the restart requests and
/// loses the answer. It takes as long as that container takes to stop, and some seconds.
#[derive(Debug, clap::Args)]
pub(super) struct Demo {
    /// Use the real Docker Engine there, and really restart a container of yours
    ///
    /// Without ENDPOINT: that of DOCKER_HOST, else unix:///var/run/docker.sock.
    #[arg(long, value_name = "ENDPOINT", num_args = 0..=1, requires = "container")]
    docker: Option<Option<Endpoint>>,
    /// The running container on the engine of --docker that is really restarted, once
    #[arg(long, value_name = "NAME", requires = "docker")]
    container: Option<String>,
}

impl Demo {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<Exit> {
        let timeline = Timeline::begin(*output);
        let folder = Folder::make("relatch-demo")?;
        match (self.docker, self.container) {
            (Some(endpoint), Some(container)) => {
                let endpoint = match endpoint {
                    Some(endpoint) => endpoint,
                    None => endpoint_in(std::env::var("DOCKER_HOST").ok().as_deref())?,
                };
                play(Real::begin(&endpoint, &container, &folder, &timeline), &folder, &timeline, output).await
            }
            _ => play(Simulated::begin(&folder, &timeline), &folder, &timeline, output).await,
        }
    }
}

/// The endpoint that `DOCKER_HOST` names, as Docker's own clients read it: empty is none.
fn endpoint_in(docker_host: Option<&str>) -> anyhow::Result<Endpoint> {
    let named = docker_host.filter(|text| !text.is_empty());
    Ok(named.unwrap_or(docker::DEFAULT).parse()?)
}

/// Tells the story over the engine that `begin` makes ready, and what its end means.
async fn play<S: EngineSide>(
    begin: impl Future<Output = anyhow::Result<S>>,
    folder: &Folder,
    timeline: &Timeline,
    output: &Output,
) -> anyhow::Result<Exit> {
    let mut interrupt = Interrupt::listen()?;
    let side = tokio::select! {
        side = begin => side?,
        // Leaving here ends the processes and removes the folder.
        () = interrupt.raised() => bail!(S::INTERRUPTED),
    };
    let told = story::tell(side, folder, timeline, &mut interrupt).await?;
    conclude::<S>(&told, timeline, output)
}

/// Prints the verdicts; an error if an invariant broke.
fn conclude<S: EngineSide>(told: &Told, timeline: &Timeline, output: &Output) -> anyhow::Result<Exit> {
    timeline.print("");
    timeline.print("What must be so, by its number among the invariants of ARCHITECTURE.md:");
    for verdict in &told.verdicts {
        let mark = if verdict.kept { "kept  " } else { "BROKEN" };
        timeline.print(&format!("  {mark}  {} ({})", verdict.invariant, verdict.seen));
    }
    timeline.print("");
    let is_broken = |verdict: &&Verdict| !verdict.kept;
    let broken: Vec<&str> = told.verdicts.iter().filter(is_broken).map(|verdict| verdict.invariant).collect();
    if broken.is_empty() {
        timeline.print(&format!(
            "One restart, through a lost answer and a killed coordinator, in {:.0} s. {}",
            timeline.seconds(),
            S::CLOSING
        ));
    }
    if output.is_json() {
        let run = crate::rpc::to_json("relatch.v1.Run", &told.run)?;
        let document = json!({ "broken": broken, "posts": told.posts, "engine": S::KIND, "run": run });
        output.text(&format!("{document:#}\n"))?;
    }
    if !broken.is_empty() {
        bail!("the demo broke: {}; please report it with the lines above", broken.join("; "));
    }
    Ok(Exit::Done)
}
