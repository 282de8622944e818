//! What the services need of the coordinator, and no more: tests put a ledger of their own in its place.

use std::future::Future;

use tokio::sync::watch;

use crate::coordinator::{
    Answer, ApproveRequest, Coordinator, Explanation, HoldRequest, Placed, RecoveryRequest, RequestError,
    ResolveRequest,
};
use crate::ledger::{Hold, Ledger, LiftHold, LimitsChange, Run, StartDecision};
use crate::model::{ClusterTime, HoldId, LogIndex};

/// The coordinator, as the services see it.
pub(super) trait Backend: Clone + Send + Sync + 'static {
    /// Has a request decided.
    fn request(&self, request: RecoveryRequest) -> impl Future<Output = Result<Answer, RequestError>> + Send;

    /// Explains what a request would meet.
    fn explain(
        &self,
        request: RecoveryRequest,
    ) -> impl Future<Output = Result<Explanation, RequestError>> + Send;

    /// Ends a run by an operator's word.
    fn resolve_run(
        &self,
        request: ResolveRequest,
    ) -> impl Future<Output = Result<(Run, bool), RequestError>> + Send;

    /// Decides about a start.
    fn approve_start(
        &self,
        request: ApproveRequest,
    ) -> impl Future<Output = Result<(Run, StartDecision), RequestError>> + Send;

    /// Places a hold.
    fn place_hold(&self, request: HoldRequest) -> impl Future<Output = Result<Placed, RequestError>> + Send;

    /// Lets the time of a hold begin anew. None if it does not stand any more.
    fn renew_hold(&self, hold: HoldId) -> impl Future<Output = Result<Option<Hold>, RequestError>> + Send;

    /// Lifts holds.
    fn lift_hold(
        &self,
        which: LiftHold,
        by: String,
    ) -> impl Future<Output = Result<Vec<Hold>, RequestError>> + Send;

    /// Changes limits.
    fn change_limits(&self, change: LimitsChange) -> impl Future<Output = Result<(), RequestError>> + Send;

    /// Returns once a read of the applied state is linearizable.
    fn linearizable(&self) -> impl Future<Output = Result<(), RequestError>> + Send;

    /// Looks at the applied state. Holds a lock: `look` is short.
    fn read<T>(&self, look: impl FnOnce(&Ledger) -> T) -> T;

    /// The cluster clock now.
    fn cluster_time(&self) -> ClusterTime;

    /// The index of the last applied entry. It moves after the state did.
    fn applied(&self) -> watch::Receiver<LogIndex>;

    /// True while this node admits requests.
    fn ready(&self) -> watch::Receiver<bool>;
}

impl Backend for Coordinator {
    async fn request(&self, request: RecoveryRequest) -> Result<Answer, RequestError> {
        Coordinator::request(self, request).await
    }

    async fn explain(&self, request: RecoveryRequest) -> Result<Explanation, RequestError> {
        Coordinator::explain(self, request).await
    }

    async fn resolve_run(&self, request: ResolveRequest) -> Result<(Run, bool), RequestError> {
        Coordinator::resolve_run(self, request).await
    }

    async fn approve_start(&self, request: ApproveRequest) -> Result<(Run, StartDecision), RequestError> {
        Coordinator::approve_start(self, request).await
    }

    async fn place_hold(&self, request: HoldRequest) -> Result<Placed, RequestError> {
        Coordinator::place_hold(self, request).await
    }

    async fn renew_hold(&self, hold: HoldId) -> Result<Option<Hold>, RequestError> {
        Coordinator::renew_hold(self, hold).await
    }

    async fn lift_hold(&self, which: LiftHold, by: String) -> Result<Vec<Hold>, RequestError> {
        Coordinator::lift_hold(self, which, by).await
    }

    async fn change_limits(&self, change: LimitsChange) -> Result<(), RequestError> {
        Coordinator::change_limits(self, change).await
    }

    async fn linearizable(&self) -> Result<(), RequestError> {
        Coordinator::linearizable(self).await
    }

    fn read<T>(&self, look: impl FnOnce(&Ledger) -> T) -> T {
        Coordinator::read(self, look)
    }

    fn cluster_time(&self) -> ClusterTime {
        Coordinator::cluster_time(self)
    }

    fn applied(&self) -> watch::Receiver<LogIndex> {
        Coordinator::applied(self)
    }

    fn ready(&self) -> watch::Receiver<bool> {
        Coordinator::ready(self)
    }
}
