//! A look: one connection, a few requests over it, one time limit over all.
//!
//! What carries the requests ([`Wire`]) is one connection that nothing pools, retries or opens again, and whose reply
//! heads are kept for whoever asks who answered.
//!
//! Answers are bounded, and so is what becomes of them: no more is read than an [`Extent`], and of that only what relatch
//! looks at is kept, which is at most some ten times as large. The models of `bollard` have a place for everything that
//! an engine may say, and make up to 250 bytes of one byte (`[{},{},…]`): here it only pings.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bollard::errors::Error as LibraryError;
use bollard::{API_DEFAULT_VERSION, BollardRequest, Docker};
use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::error::EngineError;
use super::reply::{API_VERSION, MESSAGE_BYTES, engine_proof, harmless, is_podman, message_of, with_causes};
use super::tls::{refusal, refused};
use super::transport::{Bounded, bounded, carry, connect, is_too_long};
use super::version::ApiVersion;
use crate::env::Sockets;
use crate::model::EngineProof;

/// How much is read over one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Of an engine, or one container: a few KiB, or some hundred where its labels or its health log are long.
    One,
    /// Of all containers, or their events. `/containers/json` of a thousand containers has about 2 MiB.
    Many,
}

/// The library's own timer, in seconds, never rings: the look has its limit.
const NEVER_S: u64 = u64::MAX;

/// What is asked, of whom, and how long it may take.
#[derive(Debug, Clone)]
pub(super) struct Look {
    /// As in `inspecting web`.
    pub(super) doing: String,
    pub(super) connect_ms: u64,
    /// Over the connection and all requests together.
    pub(super) limit_ms: u64,
    /// Over all answers together.
    pub(super) extent: Extent,
}

/// The connection of a look. It moves only while it is polled.
pub(super) type Carried = http1::Connection<TokioIo<Bounded>, Empty<Bytes>>;

/// A connection to an engine on which the API version was agreed.
pub(super) struct Session {
    wire: Arc<Wire>,
    doing: String,
}

/// What sends over the connection of a look.
pub(super) struct Wire {
    sender: tokio::sync::Mutex<SendRequest<Empty<Bytes>>>,
    /// What requests name as their host.
    host: String,
    extent: Extent,
    /// Set once it is agreed.
    version: OnceLock<ApiVersion>,
    /// Of the latest reply; empty until it came.
    headers: Mutex<HeaderMap>,
}

impl Extent {
    fn bytes(self) -> usize {
        match self {
            Self::One => 2 << 20,
            Self::Many => 16 << 20,
        }
    }

    fn advice(self) -> &'static str {
        match self {
            Self::One => {
                "does an engine answer there? If it is a container that is so long, create it anew with fewer \
                 labels, variables or mounts"
            }
            Self::Many => {
                "does an engine answer there? Containers that have stopped count too: remove those that nobody \
                 needs (docker container prune)"
            }
        }
    }
}

impl Look {
    /// What is done, and where.
    pub(super) fn of(&self, endpoint: &Endpoint) -> String {
        format!("{} at {endpoint}", self.doing)
    }

    /// What comes of asking over this connection, which is carried meanwhile.
    pub(super) async fn over<T>(
        &self,
        endpoint: &Endpoint,
        connection: &mut Option<Carried>,
        asked: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        let (asked, ended) = carry(connection, asked).await;
        match (asked, refused(&ended)) {
            // The handshake's last word, which TLS 1.3 lets come after it.
            (Err(EngineError::Lost { .. }), Some(why)) => {
                Err(EngineError::Unreachable { detail: format!("{}: TLS: {why}", self.of(endpoint)) })
            }
            (asked, _) => asked,
        }
    }

    /// The outcome of `whole`, or that it took too long.
    pub(super) async fn within_limit<T>(
        &self,
        endpoint: &Endpoint,
        whole: impl Future<Output = Result<T, EngineError>>,
    ) -> Result<T, EngineError> {
        timeout(Duration::from_millis(self.limit_ms), whole).await.unwrap_or_else(|_| {
            Err(EngineError::TimedOut { doing: self.of(endpoint), limit_ms: self.limit_ms })
        })
    }
}

impl Wire {
    /// Opens one connection, and hands out what sends on it and what carries it.
    pub(super) async fn open(
        sockets: &dyn Sockets,
        endpoint: &Endpoint,
        look: &Look,
    ) -> Result<(Arc<Self>, Carried), EngineError> {
        let stream = connect(sockets, endpoint, look.connect_ms)
            .await
            .map_err(|detail| EngineError::Unreachable { detail: format!("{}: {detail}", look.doing) })?;
        let (sender, connection) = http1::handshake(TokioIo::new(bounded(stream, look.extent.bytes())))
            .await
            .map_err(|error| EngineError::Lost { doing: look.of(endpoint), detail: with_causes(&error) })?;
        let sender = tokio::sync::Mutex::new(sender);
        let (host, version, headers) = (endpoint.http_host(), OnceLock::new(), Mutex::default());
        let extent = look.extent;
        Ok((Arc::new(Self { sender, host, extent, version, headers }), connection))
    }

    /// Sends `GET` in the agreed version, and waits for the head of the reply. Nothing else than `GET` goes
    /// out here, and never a body: a look changes nothing.
    pub(super) async fn get(&self, path_and_query: &str) -> Result<Response<Incoming>, LibraryError> {
        let path = match self.version.get() {
            Some(version) => format!("/v{version}{path_and_query}"),
            None => path_and_query.to_owned(),
        };
        let request = Request::get(path).header(HOST, self.host.as_str()).body(Empty::new())?;
        let mut sender = self.sender.lock().await;
        self.keep(HeaderMap::new());
        sender.ready().await?;
        let response = sender.send_request(request).await?;
        self.keep(response.headers().clone());
        Ok(response)
    }

    fn keep(&self, headers: HeaderMap) {
        *self.headers.lock().unwrap_or_else(PoisonError::into_inner) = headers;
    }

    fn headers(&self) -> HeaderMap {
        self.headers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Session {
    /// Agrees on the version by `GET /_ping`, which every engine answers without a version in its path. It is
    /// asked on each connection anew: a version kept from an earlier one goes stale when the engine is
    /// replaced by a newer one whose floor has risen.
    ///
    /// The library puts no version into its paths (`Url::join` takes it out again), so the wire does.
    pub(super) async fn agree(wire: Arc<Wire>, doing: String) -> Result<Self, EngineError> {
        let carrier = Arc::clone(&wire);
        let transport = move |request: BollardRequest| {
            let carrier = Arc::clone(&carrier);
            async move { carrier.get(request.uri().path_and_query().map_or("/", |path| path.as_str())).await }
        };
        let address = Some("http://localhost");
        let docker = Docker::connect_with_custom_transport(transport, address, NEVER_S, API_DEFAULT_VERSION)
            .map_err(|error| EngineError::Unreadable { doing: doing.clone(), detail: error.to_string() })?;
        let session = Self { wire, doing };
        docker.ping().await.map_err(|error| session.failed(&error))?;
        let headers = session.wire.headers();
        let named = headers.get(API_VERSION).and_then(|value| value.to_str().ok());
        let Some(newest) = named.and_then(ApiVersion::parse) else {
            return Err(EngineError::NotAnEngine { doing: session.doing });
        };
        let version = newest
            .negotiated()
            .ok_or_else(|| EngineError::TooOld { doing: session.doing.clone(), found: newest })?;
        session.wire.version.get_or_init(|| version);
        Ok(session)
    }

    /// The version that was agreed on.
    pub(super) fn version(&self) -> ApiVersion {
        self.wire.version.get().copied().unwrap_or(ApiVersion::OLDEST)
    }

    /// True if Podman wrote the latest reply.
    pub(super) fn is_podman(&self) -> bool {
        is_podman(&self.wire.headers())
    }

    /// Whether an engine itself wrote the latest reply.
    pub(super) fn proof(&self) -> EngineProof {
        engine_proof(&self.wire.headers())
    }

    /// `GET` in the agreed version, for a reply that is not for the library.
    pub(super) async fn get(&self, path_and_query: &str) -> Result<Response<Incoming>, EngineError> {
        self.wire.get(path_and_query).await.map_err(|error| self.failed(&error))
    }

    /// `GET` in the agreed version, for what the answer says.
    pub(super) async fn ask<T: DeserializeOwned>(&self, path_and_query: &str) -> Result<T, EngineError> {
        let response = self.get(path_and_query).await?;
        let status = response.status();
        let lost = |err| self.failed(&LibraryError::HyperResponseError { err });
        let body = response.into_body().collect().await.map_err(lost)?.to_bytes();
        if status != StatusCode::OK {
            let (doing, status, message) = (self.doing.clone(), status.as_u16(), message_of(&body));
            return Err(EngineError::Status { doing, status, message });
        }
        serde_json::from_slice(&body).map_err(|error| self.unreadable(format!("{path_and_query}: {error}")))
    }

    /// Why the library has no answer.
    pub(super) fn failed(&self, error: &LibraryError) -> EngineError {
        match error {
            LibraryError::DockerResponseServerError { status_code, message } => EngineError::Status {
                doing: self.doing.clone(),
                status: *status_code,
                message: harmless(message.trim(), MESSAGE_BYTES),
            },
            LibraryError::HyperResponseError { err } if is_too_long(err) => {
                let extent = self.wire.extent;
                let (doing, longest_bytes, advice) = (self.doing.clone(), extent.bytes(), extent.advice());
                EngineError::TooLong { doing, longest_bytes, advice }
            }
            LibraryError::HyperResponseError { err } => match refusal(err) {
                // The handshake's last word, which TLS 1.3 lets come after it.
                Some(why) => EngineError::Unreachable { detail: format!("{}: TLS: {why}", self.doing) },
                None => EngineError::Lost { doing: self.doing.clone(), detail: with_causes(error) },
            },
            _ => self.unreadable(with_causes(error)),
        }
    }

    /// An answer that makes no sense.
    pub(super) fn unreadable(&self, detail: impl Into<String>) -> EngineError {
        EngineError::Unreadable { doing: self.doing.clone(), detail: harmless(&detail.into(), 512) }
    }
}
