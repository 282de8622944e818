//! `relatch runs watch`.

use super::super::client::Nodes;
use super::super::exit::Exit;
use super::super::follow::Follow;
use super::super::output::Output;
use super::super::text::plain;
use super::super::view;
use crate::model::RunId;
use crate::rpc::v1::Run;

/// Follow runs as they change, until Ctrl-C: first as they are, then each change.
///
/// With -o json, each line is one document: a run as it was after a change. A node that goes away is
/// replaced by the next one that answers.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Watch {
    /// Only this run
    run: Option<RunId>,
}

impl Watch {
    pub(super) async fn run(self, nodes: &mut Nodes, output: &Output) -> anyhow::Result<Exit> {
        let run_id = self.run.as_ref().map(RunId::as_str).unwrap_or_default();
        let mut follow = Follow::new(nodes, output, run_id);
        let changes = async {
            loop {
                if let Some(run) = follow.next().await?.run {
                    output.line("relatch.v1.Run", &run, || line(&run))?;
                }
            }
        };
        tokio::select! {
            ended = changes => ended,
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                Ok(Exit::Done)
            }
        }
    }
}

fn line(run: &Run) -> String {
    let at = run.events.last().and_then(|event| event.time.as_ref());
    let detail = run.events.last().map(|event| event.detail.as_str()).unwrap_or_default();
    let verification = view::verification(run);
    let words = if verification.is_empty() {
        view::status(run).into()
    } else {
        format!("{} {verification}", view::status(run))
    };
    plain(&format!("{}  {}  {}  {words:<12}  {detail}", view::time(at), run.run_id, run.target)) + "\n"
}
