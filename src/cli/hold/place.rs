//! Places a hold.

use super::super::client::{CallError, Holds, Nodes, Retry};
use super::super::output::Output;
use super::super::text::plain;
use crate::rpc::v1::{PlaceHoldRequest, PlaceHoldResponse};

/// Places a hold, again under the same id for as long as `retry` says.
pub(super) async fn place(
    request: &PlaceHoldRequest,
    retry: Retry,
    nodes: &mut Nodes,
    output: &Output,
) -> Result<PlaceHoldResponse, CallError> {
    let call = async |mut client: Holds| client.place_hold(request.clone()).await;
    nodes.call(retry, output, call).await
}

/// What whoever places the hold should know; empty if there is nothing.
pub(super) fn note(answer: &PlaceHoldResponse) -> String {
    match answer.note.as_str() {
        "" => String::new(),
        note => format!("\nnote: {}\n", plain(note)),
    }
}

/// The runs that a hold came too late for; empty if there are none.
pub(super) fn open_runs(answer: &PlaceHoldResponse) -> String {
    if answer.open_run_ids.is_empty() {
        return String::new();
    }
    let runs: String = answer.open_run_ids.iter().map(|run| format!("  {}\n", plain(run))).collect();
    format!("These runs were open before it; their restarts may already be on their way:\n{runs}")
}
