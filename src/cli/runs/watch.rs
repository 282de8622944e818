//! `relatch runs watch`.

use super::super::client::Nodes;
use super::super::exit::Exit;
use super::super::follow::Follow;
use super::super::id_ref::{IdRef, short};
use super::super::output::Output;
use super::super::text::plain;
use super::super::view;
use crate::rpc::v1::Run;

/// Follow runs as they change, until Ctrl-C: first as they are, then each change.
///
/// With -o json, each line is one document: a run as it was after a change. A node that goes away is
/// replaced by the next one that answers.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Watch {
    /// Only this run, by its id or its first 8 digits or more
    run: Option<IdRef>,
}

impl Watch {
    pub(super) async fn run(self, nodes: &mut Nodes, output: &Output) -> anyhow::Result<Exit> {
        let run_id = self.run.as_ref().map(IdRef::as_str).unwrap_or_default();
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
    plain(&format!("{}  {}  {}  {words:<12}  {detail}", view::time(at), short(&run.run_id), run.target))
        + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::super::fake::{Fake, change, ended, parse, run};
    use super::super::super::output::Format;
    use super::*;
    use crate::rpc::v1::{RunStatus, Verification};

    #[tokio::test]
    async fn a_run_is_found_by_the_beginning_of_its_id_and_followed_by_all_of_it() {
        let unresolved = || run(RunStatus::Unresolved, Verification::Unspecified);
        let fake = Fake::serve(|script| {
            script.watch.then(Ok(vec![change(5, unresolved())]));
            script.watch.then(Ok(vec![change(7, run(RunStatus::Applied, Verification::Pending))]));
            // The watch has no end of its own; this ends it.
            script.watch.then(Err(tonic::Status::not_found("gone")));
        });
        let fake = fake.await;
        let (output, printed) = Output::kept(Format::Table);
        let watch: Watch = parse(&["abababab"]).unwrap();
        let mut nodes = Nodes::new(fake.addr()).unwrap();
        let error = ended(watch.run(&mut nodes, &output)).await.unwrap_err();
        let lines = printed.stdout();
        assert_eq!(lines.lines().count(), 2, "{error:#}: {lines}");
        assert!(lines.contains("  abababababab  "), "{lines}");
        let asked = fake.script(|script| script.watch.asked());
        let ids: Vec<&str> = asked.iter().map(|request| request.run_id.as_str()).collect();
        let whole = "ab".repeat(16);
        assert_eq!(ids, ["abababab", &whole, &whole]);
        assert_eq!(asked.iter().map(|request| request.after_index).collect::<Vec<_>>(), [0, 5, 7]);
    }

    #[test]
    fn one_run_or_every_run_is_followed() {
        assert_eq!(parse::<Watch>(&[]).unwrap().run, None);
        assert_eq!(parse::<Watch>(&["ab"]).unwrap_err().exit_code(), 2);
    }
}
