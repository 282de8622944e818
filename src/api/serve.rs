//! The server that carries the services.

use std::future::Future;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use super::backend::Backend;
use super::forward::{Forwarded, WayToLeader};
use super::health;
use super::holds::HoldsService;
use super::limits::LimitsService;
use super::recovery::RecoveryService;
use crate::coordinator::Coordinator;
use crate::rpc;
use crate::rpc::v1::holds_server::HoldsServer;
use crate::rpc::v1::limits_server::LimitsServer;
use crate::rpc::v1::recovery_server::RecoveryServer;

/// No request is longer than this; the longest that is well-formed has a few kilobytes.
const REQUEST_BYTES: usize = 64 << 10;

/// No answer is longer than this: a page of runs stays far below, and so does one run's history.
const ANSWER_BYTES: usize = 32 << 20;

/// A client whose machine is gone is noticed within the sum of these.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(20);
const KEEPALIVE_WITHIN: Duration = Duration::from_secs(10);

/// How many calls one connection may have open.
const STREAMS_PER_CONNECTION: u32 = 200;

/// How long calls may take to end once the server shuts down.
const DRAIN: Duration = Duration::from_secs(5);

/// Why the server ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener failed.
    #[error("serving gRPC: {0}; start relatch again")]
    Transport(#[from] tonic::transport::Error),
}

/// Serves the services of `relatch.v1`, health and reflection on `listener` until `shutdown`. Then it takes no new
/// connection, ends every stream, and returns when the calls at work have ended, at most 5 s later.
///
/// What only the leader can answer takes the `way` to it, if there is one.
///
/// # Errors
///
/// [`ServeError`] if the server ended by itself.
pub async fn serve(
    coordinator: Coordinator,
    way: Option<WayToLeader>,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    serve_backend(coordinator, way, listener, shutdown).await
}

pub(super) async fn serve_backend<B: Backend>(
    backend: B,
    way: Option<WayToLeader>,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let stop = watch::Sender::new(false);
    let ready = backend.ready();
    let (reporter, health_server) = tonic_health::server::health_reporter();
    // Before the first client can ask: a new reporter says SERVING.
    let ready_now = *ready.borrow();
    health::tell::<B>(&reporter, ready_now).await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(rpc::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the descriptors were made with this build");
    let holds = HoldsServer::new(HoldsService(backend.clone())).max_decoding_message_size(REQUEST_BYTES);
    let limits = LimitsServer::new(LimitsService(backend.clone())).max_decoding_message_size(REQUEST_BYTES);
    let recovery = RecoveryServer::new(RecoveryService::new(backend, stop.subscribe()))
        .max_decoding_message_size(REQUEST_BYTES)
        .max_encoding_message_size(ANSWER_BYTES);

    let mut stopped = stop.subscribe();
    let server = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE_EVERY))
        .http2_keepalive_timeout(Some(KEEPALIVE_WITHIN))
        .max_concurrent_streams(STREAMS_PER_CONNECTION)
        .add_service(health_server)
        .add_service(reflection)
        .add_service(Forwarded::new(recovery, way.clone()))
        .add_service(Forwarded::new(holds, way.clone()))
        .add_service(Forwarded::new(limits, way))
        .serve_with_incoming_shutdown(TcpIncoming::from(listener).with_nodelay(Some(true)), async move {
            // The sender outlives the server, so the wait ends with the value.
            let _ = stopped.wait_for(|stop| *stop).await;
        });
    let end = async {
        health::follow::<B>(reporter, ready, shutdown).await;
        stop.send_replace(true);
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        served = server => Ok(served?),
        () = end => {
            tracing::warn!(after_s = DRAIN.as_secs(), "gRPC calls were still open at the end of the server");
            Ok(())
        }
    }
}
