//! `relatch demo`: the story of a lost answer, told by real processes over a scripted engine.

mod judge;
mod stage;
mod story;
mod timeline;

use anyhow::bail;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::exit::Exit;
use super::output::Output;
use judge::Verdict;
use stage::Folder;
use timeline::Timeline;

/// Show what relatch does when an answer is lost and its own process is killed.
///
/// Real relatch processes, a real Raft log on disk, a real SIGKILL. The Docker Engine is simulated: it
/// speaks HTTP as dockerd does, and restarts nothing of yours. Takes less than half a minute. The exit code
/// is 1 if an invariant broke.
#[derive(Debug, clap::Args)]
pub(super) struct Demo {}

impl Demo {
    #[allow(clippy::unused_self, reason = "all commands run in one way")]
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<Exit> {
        let timeline = Timeline::begin(*output);
        let folder = Folder::make()?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let interrupted = "interrupted; run `relatch demo` again to see its end";
        let told = tokio::select! {
            told = story::tell(&folder, &timeline) => told?,
            // Leaving here ends the processes and removes the folder.
            _ = interrupt.recv() => bail!(interrupted),
            _ = terminate.recv() => bail!(interrupted),
        };
        let broken: Vec<&Verdict> = told.verdicts.iter().filter(|verdict| !verdict.kept).collect();
        timeline.print("");
        for verdict in &told.verdicts {
            let mark = if verdict.kept { "kept  " } else { "BROKEN" };
            timeline.print(&format!("  {mark}  {} ({})", verdict.invariant, verdict.seen));
        }
        timeline.print("");
        if broken.is_empty() {
            timeline.print(&format!(
                "One restart, through a lost answer and a killed coordinator, in {:.0} s. The engine was simulated; \
                 everything else was real.",
                timeline.seconds()
            ));
        }
        if output.is_json() {
            let names: Vec<&str> = broken.iter().map(|verdict| verdict.invariant).collect();
            let run = crate::rpc::to_json("relatch.v1.Run", &told.run);
            let document = json!({ "broken": names, "posts": told.posts, "engine": "simulated", "run": run });
            output.text(&format!("{document:#}\n"))?;
        }
        if !broken.is_empty() {
            let names: Vec<&str> = broken.iter().map(|verdict| verdict.invariant).collect();
            bail!("the demo broke: {}; please report it with the lines above", names.join("; "));
        }
        Ok(Exit::Done)
    }
}
