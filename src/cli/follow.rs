//! A stream of changes that outlives the node it comes from.

use std::time::Duration;

use anyhow::Context;
use tokio::time::sleep;
use tonic::Streaming;

use super::client::{CallError, Client, Nodes, Retry};
use super::output::Output;
use super::status::{may_be_repeated, told};
use crate::rpc::v1::{WatchRunsRequest, WatchRunsResponse};

/// How long a broken stream is taken up again before that is an error.
const RETRY: Retry = Retry { within: Duration::from_secs(60), unreachable: true };

/// The pause before a stream that broke is taken up again: a node that fails at once is not hammered.
const PAUSE: Duration = Duration::from_millis(200);

/// Follows one run, or every run.
pub(super) struct Follow<'a> {
    nodes: &'a mut Nodes,
    output: &'a Output,
    run_id: String,
    /// The index of the last change that was seen.
    seen: u64,
    stream: Option<Streaming<WatchRunsResponse>>,
}

impl<'a> Follow<'a> {
    /// Follows the run whose id begins so; every run, if it is empty. Runs come as they are first, then as they change.
    pub(super) fn new(nodes: &'a mut Nodes, output: &'a Output, run_id: &str) -> Self {
        Self { nodes, output, run_id: run_id.to_owned(), seen: 0, stream: None }
    }

    /// The next change. A broken stream is taken up again at any node, after the last index that was seen.
    pub(super) async fn next(&mut self) -> anyhow::Result<WatchRunsResponse> {
        loop {
            let stream = match &mut self.stream {
                Some(stream) => stream,
                None => {
                    let opened = self.open().await?;
                    self.stream.insert(opened)
                }
            };
            let broken = match stream.message().await {
                Ok(Some(change)) => {
                    self.seen = change.index;
                    // The beginning of an id that named one run may name two when the stream breaks.
                    if let Some(run) = &change.run
                        && !self.run_id.is_empty()
                    {
                        self.run_id.clone_from(&run.run_id);
                    }
                    return Ok(change);
                }
                Ok(None) => "the node ended the stream".to_owned(),
                Err(status) if may_be_repeated(&status) => told(&status),
                Err(status) => return Err(CallError::Answered(status).into()),
            };
            self.stream = None;
            self.output.note(format!("the stream of changes broke off, and is taken up again: {broken}"));
            sleep(PAUSE).await;
        }
    }

    async fn open(&mut self) -> anyhow::Result<Streaming<WatchRunsResponse>> {
        let request = WatchRunsRequest { run_id: self.run_id.clone(), after_index: self.seen };
        let call = async |mut client: Client| client.watch_runs(request.clone()).await;
        let opened = self.nodes.call(RETRY, self.output, call).await;
        opened.map_err(CallError::advise).context("following the changes of runs")
    }
}
