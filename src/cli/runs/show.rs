//! `relatch runs show`.

use anyhow::Context;

use super::super::client::{CallError, Client, Nodes, Retry};
use super::super::exit::Exit;
use super::super::output::Output;
use super::super::view;
use crate::model::RunId;
use crate::rpc::v1::GetRunRequest;

/// Show one run with its history.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Show {
    /// The run's id
    run: RunId,
}

impl Show {
    pub(super) async fn run(self, nodes: &mut Nodes, output: &Output) -> anyhow::Result<Exit> {
        let request = GetRunRequest { run_id: self.run.to_string() };
        let call = async |mut client: Client| client.get_run(request.clone()).await;
        let answer = nodes.call(Retry::READ, output, call).await.map_err(CallError::advise)?;
        let run = answer.run.context("the node answered without a run; it is not a relatch node")?;
        output
            .document("relatch.v1.Run", &run, || format!("{}\n{}", view::run(&run), view::timeline(&run)))?;
        Ok(Exit::Done)
    }
}
