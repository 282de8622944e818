//! Waiting for many runs over one stream of changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::super::client::Client;
use crate::rpc::v1::{Run, WatchRunsRequest};

/// When waiting for one run is given up: nothing here takes nearly as long.
const GIVE_UP_AFTER: Duration = Duration::from_secs(120);

/// The runs of a node as they come to their ends. Nothing is heard of once this is dropped.
#[derive(Debug)]
pub(super) struct Ends {
    known: Arc<Mutex<HashMap<String, End>>>,
    listener: JoinHandle<()>,
}

#[derive(Debug)]
enum End {
    Awaited(oneshot::Sender<Run>),
    Come(Box<Run>),
}

impl Ends {
    /// Follows every run from now on; `is_over` says which of them have come to their end.
    pub(super) async fn listen(mut client: Client, is_over: fn(&Run) -> bool) -> anyhow::Result<Self> {
        let known: Arc<Mutex<HashMap<String, End>>> = Arc::default();
        let stream = client.watch_runs(WatchRunsRequest::default()).await.context("following runs")?;
        let (mut stream, heard) = (stream.into_inner(), Arc::clone(&known));
        let listener = tokio::spawn(async move {
            while let Ok(Some(change)) = stream.message().await {
                if let Some(run) = change.run.filter(is_over) {
                    hear(&heard, run);
                }
            }
        });
        Ok(Self { known, listener })
    }

    /// Waits for the end of a run. Each end is waited for once.
    pub(super) async fn of(&self, run_id: &str) -> anyhow::Result<Run> {
        let coming = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(End::Come(run)) = known.remove(run_id) {
                return Ok(*run);
            }
            let (tell, coming) = oneshot::channel();
            known.insert(run_id.to_owned(), End::Awaited(tell));
            coming
        };
        let come = timeout(GIVE_UP_AFTER, coming).await;
        come.with_context(|| format!("run {run_id} has not ended after {} s", GIVE_UP_AFTER.as_secs()))?
            .with_context(|| format!("run {run_id} was waited for twice"))
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// A run may change again after its end; only the first time counts.
fn hear(known: &Mutex<HashMap<String, End>>, run: Run) {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    match known.remove(&run.run_id) {
        // Whoever waited for it may have given up.
        Some(End::Awaited(tell)) => drop(tell.send(run)),
        Some(End::Come(_)) | None => drop(known.insert(run.run_id.clone(), End::Come(Box::new(run)))),
    }
}
