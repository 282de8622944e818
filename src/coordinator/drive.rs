//! Driving one run to its end, while this node leads.

use std::sync::Arc;

use super::follow::follow_to_the_end;
use super::send::{dispatch, dispatch_start};
use super::shared::{Deposed, Shared};
use super::take_over::{take_over, take_over_start};
use crate::model::{RunId, Term};

/// Dispatches a run that this process proposed in this very term, and sees it to its end.
pub(super) async fn dispatch_and_follow(shared: Arc<Shared>, term: Term, id: RunId) {
    let ended = async {
        dispatch(&shared, term, &id).await?;
        follow_to_the_end(&shared, term, &id).await
    };
    report(&id, ended.await);
}

/// Takes over a run that somebody else proposed, or that this process gave up, and sees it to its end. It is
/// never dispatched (again).
pub(super) async fn take_over_and_follow(shared: Arc<Shared>, term: Term, id: RunId) {
    let ended = async {
        take_over(&shared, term, &id).await?;
        follow_to_the_end(&shared, term, &id).await
    };
    report(&id, ended.await);
}

/// Sends an approved start that this process proposed in this very term. Its run has a driver already.
pub(super) async fn send_start(shared: Arc<Shared>, term: Term, run: RunId, start: RunId) {
    report(&run, dispatch_start(&shared, term, &run, &start).await);
}

/// Takes over an approved start that somebody else proposed, or that this process gave up. It is never sent.
pub(super) async fn give_up_start(shared: Arc<Shared>, term: Term, run: RunId, start: RunId) {
    report(&run, take_over_start(&shared, term, &run, &start).await);
}

/// Sees a run to its end that was taken over already.
pub(super) async fn follow(shared: Arc<Shared>, term: Term, id: RunId) {
    report(&id, follow_to_the_end(&shared, term, &id).await);
}

fn report(id: &RunId, ended: Result<(), Deposed>) {
    match ended {
        Ok(()) => tracing::debug!(run = %id, "nothing is left to do for this run"),
        Err(deposed) => tracing::info!(run = %id, "{deposed}: the next leader goes on"),
    }
}
