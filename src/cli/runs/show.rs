//! `relatch runs show`.

use anyhow::Context;

use super::super::client::{CallError, Client, Nodes, Retry};
use super::super::exit::Exit;
use super::super::id_ref::IdRef;
use super::super::output::Output;
use super::super::view;
use crate::rpc::v1::GetRunRequest;

/// Show one run with its history.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Show {
    /// The run's id, or its first 8 digits or more
    run: IdRef,
}

impl Show {
    pub(super) async fn run(self, nodes: &mut Nodes, output: &Output) -> anyhow::Result<Exit> {
        let request = GetRunRequest { run_id: self.run.as_str().to_owned() };
        let call = async |mut client: Client| client.get_run(request.clone()).await;
        let answer = nodes.call(Retry::READ, output, call).await.map_err(CallError::advise)?;
        let run = answer.run.context("the node answered without a run; it is not a relatch node")?;
        output.document("relatch.v1.Run", &run, || view::page(&run))?;
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::fake::{Fake, ended, parse, run};
    use super::super::super::output::Format;
    use super::*;
    use crate::rpc::v1::{GetRunResponse, RunStatus, Verification};

    #[tokio::test]
    async fn a_run_is_found_by_the_beginning_of_its_id_and_shown_with_all_of_it() {
        let fake = Fake::serve(|script| {
            let run = Some(run(RunStatus::Applied, Verification::Unverified));
            script.get_run.then(Ok(GetRunResponse { run }));
        });
        let fake = fake.await;
        let (output, printed) = Output::kept(Format::Table);
        let show: Show = parse(&["abababab"]).unwrap();
        let mut nodes = Nodes::new(fake.addr()).unwrap();
        assert_eq!(ended(show.run(&mut nodes, &output)).await.unwrap(), Exit::Done);
        assert_eq!(fake.script(|script| script.get_run.asked()[0].run_id.clone()), "abababab");
        let text = printed.stdout();
        assert!(
            text.contains(&"ab".repeat(16)) && text.contains("UNVERIFIED (it has no health check)"),
            "{text}"
        );
    }

    #[test]
    fn what_is_no_id_is_a_matter_of_usage() {
        for arguments in [&[][..], &["ab"], &["local/web"]] {
            assert_eq!(parse::<Show>(arguments).unwrap_err().exit_code(), 2, "{arguments:?}");
        }
    }
}
