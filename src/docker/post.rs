//! The one request that changes something, a restart or a start: one fresh connection, at most one head on it, one deadline over all of it.
//!
//! The whole exchange, the connection included, is one future. Nothing of it is spawned, pooled, reused or
//! tried again (invariant 2): whoever drops the future drops the socket, and a lost answer stays lost.

use std::error::Error;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, sleep_until};

use super::engine::Engine;
use super::gate::{Armed, Keeper, NeverWritten, Permit, Seal};
use super::reply::{engine_proof, message_of, with_causes};
use super::tls::{refusal, refused};
use super::transport::{carry, connect};
use crate::env::Stream;
use crate::model::{
    ContainerId, Exchange, Grace, Hole, Holes, LostReply, NotWritten, NotWrittenCause, Reply, Wire,
};

/// The longest body of a reply that is read. An engine's error has a few hundred bytes.
const BODY_BYTES: usize = 64 * 1024;

/// A deadline further away than any work: for a duration that would run past the end of the clock.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// A fresh connection on which nothing was written. Its gate is armed.
#[derive(Debug)]
#[must_use = "a connection that is not used should be closed, with the reason"]
pub struct Connection {
    stream: Armed<Box<dyn Stream>>,
    wire: Wire,
    /// As in `unix:///var/run/docker.sock`.
    peer: String,
    /// What the request names as its host.
    host: String,
    /// Before the connection was begun.
    begun_at: Instant,
    holes: Holes,
}

/// How one request ended, as far as this process can know.
#[derive(Debug)]
#[must_use = "what became of a request must be recorded"]
pub enum Sealed {
    /// The gate was closed before the first write call.
    NeverWritten(NeverWritten),
    /// The first write call was made.
    Written(Written),
}

/// A request whose first write call was made: bytes may have left, however few are known to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Over which kind of connection.
    pub wire: Wire,
    /// Bytes of the request, in plain text, that the write calls took.
    pub bytes: u64,
    /// What came back.
    pub reply: Reply,
}

impl From<Sealed> for Exchange {
    fn from(sealed: Sealed) -> Self {
        match sealed {
            Sealed::NeverWritten(proof) => proof.into(),
            Sealed::Written(Written { wire, bytes, reply }) => Self::Written { wire, bytes, reply },
        }
    }
}

impl Engine {
    /// Opens the fresh connection for one request, within the connect limit. Nothing is sent on it.
    ///
    /// # Errors
    ///
    /// The proof that nothing was written, as there is no connection: no socket, refused, no permission, a
    /// full backlog, a name that does not resolve, a TLS handshake that failed, the limit. The cause is always [`NotWrittenCause::Unreachable`].
    pub async fn connect(&self) -> Result<Connection, NeverWritten> {
        let begun_at = Instant::now();
        let stream = Armed::over(connect(self.sockets(), self.endpoint(), self.limits().connect_ms).await)?;
        Ok(Connection {
            stream,
            wire: self.endpoint().wire(),
            peer: self.endpoint().to_string(),
            host: self.endpoint().http_host(),
            begun_at,
            holes: self.holes(),
        })
    }
}

impl Connection {
    /// Gives the connection up unused, with the reason, and proves that nothing was written on it.
    pub fn close(self, why: NotWritten) -> NeverWritten {
        self.stream.close(why)
    }

    /// Sends `POST /containers/{id}/restart?t={grace}` and waits for the whole reply.
    ///
    /// `client_deadline` counts from the first write call (invariant 10), on the process's monotonic clock,
    /// and covers sending, head and body together. `permit` is asked once, inside that first write call.
    ///
    /// Dropping the future before it ends drops the connection and yields no proof of anything.
    pub async fn restart(
        self,
        id: &ContainerId,
        grace: Grace,
        client_deadline: Duration,
        permit: Arc<dyn Permit>,
    ) -> Sealed {
        // `t` is always sent: without it dockerd takes the container's own stop timeout, and older Podman
        // took 0.
        //
        // No version stands in the path. An engine refuses a version below its floor or above its ceiling
        // with a 400, and it may have been replaced since it was last asked: that would burn an attempt for
        // nothing. This request and its `t` mean the same in every version, and an engine that is asked
        // without a version cannot refuse one. A 404 or 400 from an engine that ever stops to take such
        // paths still proves that it did nothing.
        let path = format!("/containers/{id}/restart?t={}", grace.seconds);
        self.post(&path, client_deadline, permit).await
    }

    /// Sends `POST /containers/{id}/start`, by the same way as a restart. An engine answers 204, or 304 if the
    /// container already runs; a 304 has no body, and is a whole reply with its head.
    pub async fn start(self, id: &ContainerId, client_deadline: Duration, permit: Arc<dyn Permit>) -> Sealed {
        self.post(&format!("/containers/{id}/start"), client_deadline, permit).await
    }

    async fn post(self, path: &str, client_deadline: Duration, permit: Arc<dyn Permit>) -> Sealed {
        let Self { stream, wire, peer, host, begun_at, holes } = self;
        let (gate, keeper) = stream.guarded_by(permit, holes);
        let deadline = Deadline {
            // The hole counts the time to connect against the work.
            fixed_from: holes.open(Hole::DeadlineFromConnect).then_some(begun_at),
            armed_at: Instant::now(),
            length: client_deadline,
            keeper: &keeper,
            covers_the_body: !holes.open(Hole::BodyHasNoDeadline),
        };
        let request = post_request(&host, path);
        let ended = exchange(gate, request, &deadline).await;
        let doing = format!("asking {peer} to POST {path}");
        let not_written = || NotWritten {
            cause: NotWrittenCause::Unreachable,
            detail: match &ended {
                Ok(_) => format!("{doing}: a reply came before anything was written"),
                Err(lost) => format!("{doing}: {}", lost.detail),
            },
        };
        match keeper.seal(not_written) {
            Seal::Closed(proof) => Sealed::NeverWritten(proof),
            Seal::Writing { bytes } => {
                let reply = ended.unwrap_or_else(|mut lost| {
                    lost.detail = format!("{doing}: {}", lost.detail);
                    Reply::Lost(lost)
                });
                Sealed::Written(Written { wire, bytes, reply })
            }
        }
    }
}

/// When the exchange has to be over.
struct Deadline<'a> {
    fixed_from: Option<Instant>,
    armed_at: Instant,
    length: Duration,
    keeper: &'a Keeper,
    covers_the_body: bool,
}

impl Deadline<'_> {
    fn due(&self) -> Instant {
        let from = self.fixed_from.or_else(|| self.keeper.first_write_at()).unwrap_or(self.armed_at);
        from.checked_add(self.length).unwrap_or(from + FAR)
    }

    /// Waits for the deadline. It moves once, when the first write call is made: so it is asked again at
    /// its end.
    async fn passed(&self) {
        loop {
            let due = self.due();
            sleep_until(due).await;
            if self.due() <= due {
                return;
            }
        }
    }
}

/// Sends the request and reads the reply, in this task, until the deadline.
async fn exchange<S>(
    gate: S,
    request: Result<Request<Empty<Bytes>>, http::Error>,
    deadline: &Deadline<'_>,
) -> Result<Reply, LostReply>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let lost = |status, detail| LostReply { status, timed_out: false, detail };
    let request = request.map_err(|error| lost(None, error.to_string()))?;
    // This handshake only sets up memory; HTTP/1.1 has no bytes for it.
    let (mut sender, connection) = http1::handshake(TokioIo::new(gate))
        .await
        .map_err(|error: hyper::Error| lost(None, with_causes(&error)))?;
    let status = OnceLock::new();
    let work = async {
        let mut reply = pin!(async {
            let response = sender.send_request(request).await.map_err(|error| why_lost(&error))?;
            status.get_or_init(|| response.status().as_u16());
            read_whole(response).await
        });
        // A reply that is there wins over a deadline that has just passed.
        tokio::select! {
            biased;
            reply = &mut reply => Ok(reply),
            () = deadline.passed() => match status.get() {
                Some(_) if !deadline.covers_the_body => Ok(reply.await),
                _ => Err(deadline.length),
            },
        }
    };
    let (worked, ended) = carry(&mut Some(connection), work).await;
    let status = status.get().copied();
    match worked {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(detail)) => Err(lost(status, refused(&ended).map_or(detail, |why| format!("TLS: {why}")))),
        Err(length) => {
            let detail = format!("no whole reply within the client deadline of {} ms", length.as_millis());
            Err(LostReply { status, timed_out: true, detail })
        }
    }
}

/// A reply with its whole body. A 101 is none: it hands the connection over to what nobody asked for. A body that
/// ends before its declared length, or without its last chunk, is an error here; one without any declared length ends
/// where the engine closes (RFC 9112, section 6.3).
async fn read_whole(response: Response<Incoming>) -> Result<Reply, String> {
    let status = response.status().as_u16();
    let proof = engine_proof(response.headers());
    if status == 101 {
        return Err("its head said 101, and that another protocol follows".to_owned());
    }
    let body = Limited::new(response.into_body(), BODY_BYTES)
        .collect()
        .await
        .map_err(|error| format!("its head said {status}, then: {}", why_lost(error.as_ref())))?;
    Ok(Reply::Complete { status, proof, message: message_of(&body.to_bytes()) })
}

fn why_lost(error: &(dyn Error + 'static)) -> String {
    refusal(error).map_or_else(|| with_causes(error), |why| format!("TLS: {why}"))
}

fn post_request(host: &str, path: &str) -> Result<Request<Empty<Bytes>>, http::Error> {
    Request::post(path)
        .header(HOST, host)
        .header(CONTENT_LENGTH, "0")
        .header(CONNECTION, "close")
        .body(Empty::new())
}

#[cfg(test)]
#[path = "tests/post.rs"]
mod tests;
