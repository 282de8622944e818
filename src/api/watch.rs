//! The stream of changes behind `WatchRuns`.
//!
//! Nothing is queued for a client. It has a cursor, the log index of the last change that it was told, and
//! each time it is ready for more, the applied state is asked for the first run that changed after the
//! cursor. So a slow client costs no memory, is told the newest state of each run, and is never told one
//! change twice: the index of what it is told only rises.

use std::pin::Pin;

use futures::{Stream, stream};
use tokio::sync::watch;
use tonic::Status;

use super::backend::Backend;
use super::{convert, status};
use crate::ledger::{Ledger, Run};
use crate::model::{LogIndex, RunId};
use crate::rpc::v1;

/// The changes of one or every run.
pub(super) type Changes = Pin<Box<dyn Stream<Item = Result<v1::WatchRunsResponse, Status>> + Send>>;

struct Watcher<B> {
    backend: B,
    /// Only this run.
    run: Option<RunId>,
    cursor: LogIndex,
    applied: watch::Receiver<LogIndex>,
    stop: watch::Receiver<bool>,
}

/// Each change after `after_index`, until the server shuts down.
pub(super) fn changes<B: Backend>(
    backend: B,
    run: Option<RunId>,
    after_index: u64,
    stop: watch::Receiver<bool>,
) -> Changes {
    let applied = backend.applied();
    let watcher = Watcher { backend, run, cursor: LogIndex(after_index), applied, stop };
    Box::pin(stream::unfold(Some(watcher), |watcher| async {
        let mut watcher = watcher?;
        match watcher.next().await {
            Some(change) => Some((Ok(change), Some(watcher))),
            None => Some((Err(status::shutting_down()), None)),
        }
    }))
}

impl<B: Backend> Watcher<B> {
    /// The next change; `None` once the server shuts down.
    async fn next(&mut self) -> Option<v1::WatchRunsResponse> {
        loop {
            if *self.stop.borrow() {
                return None;
            }
            // Marked as seen before the state is read: what is applied in between wakes the wait below.
            self.applied.borrow_and_update();
            let changed = self.backend.read(|ledger| self.first(ledger).cloned());
            if let Some(run) = changed {
                self.cursor = run.changed();
                let now = self.backend.cluster_time();
                return Some(v1::WatchRunsResponse {
                    index: self.cursor.0,
                    run: Some(convert::run(&run, now)),
                });
            }
            tokio::select! {
                stopped = self.stop.wait_for(|stop| *stop) => {
                    drop(stopped);
                    return None;
                }
                moved = self.applied.changed() => moved.ok()?,
            }
        }
    }

    fn first<'a>(&self, ledger: &'a Ledger) -> Option<&'a Run> {
        match &self.run {
            Some(id) => ledger.run(id).filter(|run| run.changed() > self.cursor),
            None => ledger.runs_changed_after(self.cursor).next(),
        }
    }
}
