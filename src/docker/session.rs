//! A look: one connection, a few requests over it, one time limit over all.

use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::error::EngineError;
use super::reply::{API_VERSION, engine_proof, harmless, is_podman, message_of, with_causes};
use super::transport::{carry, connect};
use super::version::ApiVersion;
use crate::model::EngineProof;

/// The longest answer of an engine that is read. `/containers/json` of a thousand containers has about 2 MiB.
const ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// What is asked, of whom, and how long it may take.
#[derive(Debug, Clone)]
pub(super) struct Look {
    /// As in `inspecting web`.
    pub(super) doing: String,
    pub(super) connect_ms: u64,
    /// Over the connection and all requests together.
    pub(super) limit_ms: u64,
}

/// The connection of a look. It moves only while it is polled.
pub(super) type Carried = http1::Connection<TokioIo<UnixStream>, Empty<Bytes>>;

/// A connection to an engine on which the API version was agreed.
pub(super) struct Session {
    sender: SendRequest<Empty<Bytes>>,
    doing: String,
    version: ApiVersion,
    is_podman: bool,
}

/// A whole reply.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Opens one connection, agrees on the API version, and lets `work` ask over it; then drops it.
///
/// If the connection ends in the middle, that is an error: what was asked on one engine is never completed
/// by what may be another.
pub(super) async fn over_one_connection<T, F>(
    endpoint: &Endpoint,
    look: Look,
    work: impl FnOnce(Session) -> F,
) -> Result<T, EngineError>
where
    F: Future<Output = Result<T, EngineError>>,
{
    let limit_ms = look.limit_ms;
    let doing = look.of(endpoint);
    let whole = async {
        let (sender, connection) = open(endpoint, &look).await?;
        let asked = async { work(Session::agree(sender, look.of(endpoint)).await?).await };
        carry(&mut Some(connection), asked).await
    };
    match timeout(Duration::from_millis(limit_ms), whole).await {
        Ok(result) => result,
        Err(_) => Err(EngineError::TimedOut { doing, limit_ms }),
    }
}

/// Opens one connection, and hands out what sends on it and what carries it.
pub(super) async fn open(
    endpoint: &Endpoint,
    look: &Look,
) -> Result<(SendRequest<Empty<Bytes>>, Carried), EngineError> {
    let stream = connect(endpoint, look.connect_ms)
        .await
        .map_err(|detail| EngineError::Unreachable { detail: format!("{}: {detail}", look.doing) })?;
    http1::handshake(TokioIo::new(stream)).await.map_err(|error| lost(&look.of(endpoint), &error))
}

impl Look {
    /// What is done, and where.
    pub(super) fn of(&self, endpoint: &Endpoint) -> String {
        format!("{} at {endpoint}", self.doing)
    }
}

impl Session {
    /// Agrees on the version by `GET /_ping`, which every engine answers without a version in its path. It is
    /// asked on each connection anew: a version kept from an earlier one goes stale when the engine is
    /// replaced by a newer one whose floor has risen.
    pub(super) async fn agree(sender: SendRequest<Empty<Bytes>>, doing: String) -> Result<Self, EngineError> {
        let mut session = Self { sender, doing, version: ApiVersion::OLDEST, is_podman: false };
        let ping = session.ask("/_ping").await?;
        if !ping.status.is_success() {
            return Err(session.refused(&ping));
        }
        let named = ping.headers.get(API_VERSION).and_then(|value| value.to_str().ok());
        let Some(newest) = named.and_then(ApiVersion::parse) else {
            return Err(EngineError::NotAnEngine { doing: session.doing });
        };
        session.version = newest
            .negotiated()
            .ok_or_else(|| EngineError::TooOld { doing: session.doing.clone(), found: newest })?;
        session.is_podman = is_podman(&ping.headers);
        Ok(session)
    }

    /// The version that was agreed on.
    pub(super) fn version(&self) -> ApiVersion {
        self.version
    }

    /// True if Podman answered.
    pub(super) fn is_podman(&self) -> bool {
        self.is_podman
    }

    /// `GET` in the agreed version; whatever the status.
    pub(super) async fn get(&mut self, path_and_query: &str) -> Result<Answer, EngineError> {
        self.ask(&format!("/v{}{path_and_query}", self.version)).await
    }

    /// `GET` in the agreed version, and its JSON.
    pub(super) async fn get_json<T: DeserializeOwned>(
        &mut self,
        path_and_query: &str,
    ) -> Result<T, EngineError> {
        let answer = self.get(path_and_query).await?;
        self.json(&answer)
    }

    /// The JSON of a good answer; any other status is an error.
    pub(super) fn json<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T, EngineError> {
        if answer.status != StatusCode::OK {
            return Err(self.refused(answer));
        }
        serde_json::from_slice(&answer.body).map_err(|error| self.unreadable(error.to_string()))
    }

    fn refused(&self, answer: &Answer) -> EngineError {
        EngineError::Status {
            doing: self.doing.clone(),
            status: answer.status.as_u16(),
            message: message_of(&answer.body),
        }
    }

    /// An answer that makes no sense.
    pub(super) fn unreadable(&self, detail: impl Into<String>) -> EngineError {
        EngineError::Unreadable { doing: self.doing.clone(), detail: harmless(&detail.into(), 512) }
    }

    async fn ask(&mut self, path_and_query: &str) -> Result<Answer, EngineError> {
        let (head, body) = self.begin(path_and_query).await?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES).collect().await;
        let body = body.map_err(|error| EngineError::Lost {
            doing: self.doing.clone(),
            detail: with_causes(error.as_ref()),
        })?;
        Ok(Answer { status: head.status, headers: head.headers, body: body.to_bytes() })
    }
}

impl Session {
    /// `GET` in the agreed version, for an answer that goes on and on.
    pub(super) async fn stream(&mut self, path_and_query: &str) -> Result<Response<Incoming>, EngineError> {
        self.begin(&format!("/v{}{path_and_query}", self.version)).await
    }

    async fn begin(&mut self, path_and_query: &str) -> Result<Response<Incoming>, EngineError> {
        let request = get_request(path_and_query).map_err(|error| self.unreadable(error.to_string()))?;
        self.sender.ready().await.map_err(|error| lost(&self.doing, &error))?;
        self.sender.send_request(request).await.map_err(|error| lost(&self.doing, &error))
    }
}

impl Answer {
    /// Whether an engine itself wrote it.
    pub(super) fn proof(&self) -> EngineProof {
        engine_proof(&self.headers)
    }
}

/// A `GET` request as it goes over a unix socket: the host is named because HTTP/1.1 demands one, and means
/// nothing there.
fn get_request(path_and_query: &str) -> Result<Request<Empty<Bytes>>, http::Error> {
    Request::get(path_and_query).header(HOST, "localhost").body(Empty::new())
}

fn lost(doing: &str, error: &hyper::Error) -> EngineError {
    EngineError::Lost { doing: doing.to_owned(), detail: with_causes(error) }
}

/// A text as the value of a query parameter (RFC 3986, section 2.1).
pub(super) fn query_value(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::with_capacity(text.len() * 3), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}
