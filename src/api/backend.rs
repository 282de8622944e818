//! What the services need of the coordinator, and no more: tests put a ledger of their own in its place.

use std::future::Future;

use tokio::sync::watch;

use crate::coordinator::{Answer, Coordinator, RecoveryRequest, RequestError};
use crate::ledger::Ledger;
use crate::model::{ClusterTime, LogIndex};

/// The coordinator, as the services see it.
pub(super) trait Backend: Clone + Send + Sync + 'static {
    /// Has a request decided.
    fn request(&self, request: RecoveryRequest) -> impl Future<Output = Result<Answer, RequestError>> + Send;

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
