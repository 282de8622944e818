//! `relatch.v1.Recovery`: asks for restarts, and tells what became of them.

use prost::Message;
use tokio::sync::watch;
use tonic::{Request, Response, Status};

use super::backend::Backend;
use super::{convert, status, validate, watch as changes};
use crate::ledger::{ANONYMOUS, Run};
use crate::model::{RequestId, RunId};
use crate::rpc::v1;
use crate::rpc::v1::recovery_server::Recovery;

/// A page ends before it grows beyond this: clients take messages of 4 MiB unless told otherwise.
const PAGE_BYTES: usize = 3 << 20;

/// The service.
pub(super) struct RecoveryService<B> {
    backend: B,
    /// True once the server shuts down.
    stop: watch::Receiver<bool>,
}

impl<B: Backend> RecoveryService<B> {
    pub(super) fn new(backend: B, stop: watch::Receiver<bool>) -> Self {
        Self { backend, stop }
    }

    /// The one run whose id begins so, as of now.
    async fn one_run(&self, beginning: &str) -> Result<RunId, Status> {
        let backend = self.up_to_date().await?;
        backend.read(|ledger| match ledger.runs_beginning(beginning).as_slice() {
            [one] => Ok((*one).clone()),
            [] => Err(status::no_run_begins(beginning)),
            _ => Err(status::ambiguous_run(beginning)),
        })
    }

    async fn up_to_date(&self) -> Result<&B, Status> {
        self.backend.linearizable().await.map_err(status::of)?;
        Ok(&self.backend)
    }
}

#[tonic::async_trait]
impl<B: Backend> Recovery for RecoveryService<B> {
    async fn request_recovery(
        &self,
        request: Request<v1::RequestRecoveryRequest>,
    ) -> Result<Response<v1::RequestRecoveryResponse>, Status> {
        let request = validate::recovery_request(request.get_ref(), ANONYMOUS)?;
        let answer = self.backend.request(request).await.map_err(status::of)?;
        Ok(Response::new(convert::answer(&answer, self.backend.cluster_time())))
    }

    async fn explain(
        &self,
        request: Request<v1::ExplainRequest>,
    ) -> Result<Response<v1::ExplainResponse>, Status> {
        let request = validate::explain_request(request.get_ref())?;
        let explained = self.backend.explain(request).await.map_err(status::of)?;
        Ok(Response::new(convert::explanation(&explained, self.backend.cluster_time())))
    }

    async fn resolve_run(
        &self,
        request: Request<v1::ResolveRunRequest>,
    ) -> Result<Response<v1::ResolveRunResponse>, Status> {
        let (beginning, word) = validate::resolve_request(request.get_ref())?;
        let run = self.one_run(&beginning).await?;
        let (run, repeated) = self.backend.resolve_run(word(run)).await.map_err(status::of)?;
        let run = convert::run(&run, self.backend.cluster_time());
        Ok(Response::new(v1::ResolveRunResponse { run: Some(run), repeated_answer: repeated }))
    }

    async fn approve_start(
        &self,
        request: Request<v1::ApproveStartRequest>,
    ) -> Result<Response<v1::ApproveStartResponse>, Status> {
        let (beginning, approval) = validate::approve_request(request.get_ref())?;
        let run = self.one_run(&beginning).await?;
        let (run, decided) = self.backend.approve_start(approval(run)).await.map_err(status::of)?;
        let now = self.backend.cluster_time();
        let opened = decided.reasons.is_empty();
        let decision = if opened { v1::Decision::Opened } else { v1::Decision::Refused };
        Ok(Response::new(v1::ApproveStartResponse {
            decision: decision.into(),
            run: Some(convert::run(&run, now)),
            start_id: if opened { decided.start.to_string() } else { String::new() },
            reasons: convert::reasons(&decided.reasons, now),
            repeated_answer: decided.repeated,
        }))
    }

    async fn get_run(
        &self,
        request: Request<v1::GetRunRequest>,
    ) -> Result<Response<v1::GetRunResponse>, Status> {
        let id = self.one_run(&validate::run_beginning(&request.get_ref().run_id)?).await?;
        let now = self.backend.cluster_time();
        let run = self.backend.read(|ledger| ledger.run(&id).cloned());
        let run = run.ok_or_else(|| status::no_such_run(&id))?;
        Ok(Response::new(v1::GetRunResponse { run: Some(convert::run(&run, now)) }))
    }

    async fn list_runs(
        &self,
        request: Request<v1::ListRunsRequest>,
    ) -> Result<Response<v1::ListRunsResponse>, Status> {
        let page = validate::page(request.get_ref())?;
        let backend = self.up_to_date().await?;
        let now = backend.cluster_time();
        let answering =
            backend.read(|ledger| Some(ledger.remembered(page.request.as_ref()?)?.decision.run.clone()));
        let answers = |run: &Run, id: &RequestId| {
            run.request.id.as_ref() == Some(id) || answering.as_ref() == Some(&run.id)
        };
        let wanted = |run: &&Run| {
            page.target.as_ref().is_none_or(|target| run.target == *target)
                && page.host.as_ref().is_none_or(|host| run.target.host() == host)
                && page.request.as_ref().is_none_or(|id| answers(run, id))
                && (page.statuses.is_empty() || page.statuses.contains(&convert::status(&run.status)))
                && page.before.is_none_or(|before| run.opened.index < before)
        };
        // One more than fits, to know whether there is another page.
        let found: Vec<Run> = backend
            .read(|ledger| ledger.runs_newest_first().filter(wanted).take(page.size + 1).cloned().collect());
        let mut answer = v1::ListRunsResponse::default();
        let mut bytes = 0;
        let mut last = None;
        for run in &found {
            let message = convert::run(run, now);
            bytes += message.encoded_len();
            let full = answer.runs.len() == page.size || bytes > PAGE_BYTES;
            if let Some(last) = last.filter(|_| full) {
                answer.next_page_token = validate::token_after(last);
                break;
            }
            last = Some(run.opened.index);
            answer.runs.push(message);
        }
        Ok(Response::new(answer))
    }

    type WatchRunsStream = changes::Changes;

    async fn watch_runs(
        &self,
        request: Request<v1::WatchRunsRequest>,
    ) -> Result<Response<Self::WatchRunsStream>, Status> {
        let v1::WatchRunsRequest { run_id, after_index } = request.get_ref();
        let run = match run_id.as_str() {
            "" => None,
            beginning => Some(self.one_run(&validate::run_beginning(beginning)?).await?),
        };
        let backend = self.up_to_date().await?;
        Ok(Response::new(changes::changes(backend.clone(), run, *after_index, self.stop.clone())))
    }
}
