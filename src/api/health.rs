//! The standard health service: `SERVING` while this node admits requests.

use std::future::Future;

use tokio::sync::watch;
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use super::backend::Backend;
use super::holds::HoldsService;
use super::limits::LimitsService;
use super::recovery::RecoveryService;
use crate::rpc::v1::holds_server::HoldsServer;
use crate::rpc::v1::limits_server::LimitsServer;
use crate::rpc::v1::recovery_server::RecoveryServer;

/// Every name that health is told of: the server as a whole, and its services.
fn names<B: Backend>() -> [&'static str; 4] {
    [
        "",
        <RecoveryServer<RecoveryService<B>> as NamedService>::NAME,
        <HoldsServer<HoldsService<B>> as NamedService>::NAME,
        <LimitsServer<LimitsService<B>> as NamedService>::NAME,
    ]
}

/// Says whether requests are admitted.
pub(super) async fn tell<B: Backend>(reporter: &HealthReporter, ready: bool) {
    let status = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
    for name in names::<B>() {
        reporter.set_service_status(name, status).await;
    }
}

/// Follows `ready` until `shutdown`; then says `NOT_SERVING`, and ends every watch.
pub(super) async fn follow<B: Backend>(
    mut reporter: HealthReporter,
    mut ready: watch::Receiver<bool>,
    shutdown: impl Future<Output = ()>,
) {
    tokio::pin!(shutdown);
    loop {
        let now = *ready.borrow_and_update();
        tell::<B>(&reporter, now).await;
        tokio::select! {
            () = &mut shutdown => break,
            changed = ready.changed() => if changed.is_err() {
                // The coordinator is gone: nothing is admitted any more.
                tell::<B>(&reporter, false).await;
                shutdown.await;
                break;
            },
        }
    }
    tell::<B>(&reporter, false).await;
    for name in names::<B>() {
        // Ends the streams of those who watch; they would hold up the end of the server.
        reporter.clear_service_status(name).await;
    }
}
