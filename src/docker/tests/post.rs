use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::raw::{RawEngine, Visit, engine_reply};
use super::*;
use crate::model::{EngineProof, GraceSource};

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Far beyond what a test takes: a reply that never comes is cut by the server, not by this.
const LONG: Duration = Duration::from_secs(600);

struct Yes(AtomicUsize);

impl Permit for Yes {
    fn admit(&self, write: &mut dyn FnMut()) -> Result<(), NotWritten> {
        self.0.fetch_add(1, Ordering::SeqCst);
        write();
        Ok(())
    }
}

fn yes() -> Arc<Yes> {
    Arc::new(Yes(AtomicUsize::new(0)))
}

struct No(NotWrittenCause);

impl Permit for No {
    fn admit(&self, _: &mut dyn FnMut()) -> Result<(), NotWritten> {
        Err(NotWritten { cause: self.0, detail: "refused under the lock".to_owned() })
    }
}

async fn send(connection: Connection, client_deadline: Duration, permit: Arc<dyn Permit>) -> Sealed {
    let grace = Grace { seconds: 10, source: GraceSource::Policy };
    connection.restart(&ContainerId::new(ID).unwrap(), grace, client_deadline, permit).await
}

async fn restart(engine: &Engine, client_deadline: Duration) -> Sealed {
    send(engine.connect().await.unwrap(), client_deadline, yes()).await
}

fn complete(sealed: Sealed) -> (u16, EngineProof, String) {
    match sealed {
        Sealed::Written(Written { reply: Reply::Complete { status, proof, message }, .. }) => {
            (status, proof, message)
        }
        other => panic!("not complete: {other:?}"),
    }
}

/// The heads in what arrived on one connection.
fn heads(arrived: &[u8]) -> usize {
    String::from_utf8_lossy(arrived).matches("POST ").count()
}

/// An engine that reads the head, writes this, and closes.
fn answering(reply: impl Into<Vec<u8>>) -> RawEngine {
    let reply = reply.into();
    RawEngine::start(move |mut visit: Visit| {
        let reply = reply.clone();
        async move {
            visit.read_head().await;
            visit.write(&reply).await;
        }
    })
}

#[tokio::test]
async fn a_whole_reply_is_told_with_its_status_its_proof_and_its_text() {
    use EngineProof::{Proven, Unproven};
    let no_such = "{\"message\":\"No such container: x\\u001b[2J\"}";
    let bare = |status| format!("HTTP/1.1 {status} Some\r\nContent-Length: 3\r\n\r\nno!");
    for (name, reply, expected) in [
        (
            "204",
            "HTTP/1.1 204 No Content\r\nApi-Version: 1.41\r\nServer: Docker/20.10.24 (linux)\r\n\r\n"
                .to_owned(),
            (204, Proven, String::new()),
        ),
        (
            "404 of an engine",
            engine_reply(404, no_such),
            (404, Proven, "No such container: x\u{fffd}[2J".to_owned()),
        ),
        ("400 of an engine", engine_reply(400, "{\"message\":\"bad\"}"), (400, Proven, "bad".to_owned())),
        ("404 of a proxy", bare(404), (404, Unproven, "no!".to_owned())),
        ("400 of a proxy", bare(400), (400, Unproven, "no!".to_owned())),
        (
            "403 of a plugin",
            engine_reply(403, "{\"message\":\"denied\"}"),
            (403, Proven, "denied".to_owned()),
        ),
        ("500", engine_reply(500, "{\"message\":\"boom\"}"), (500, Proven, "boom".to_owned())),
        (
            "Podman",
            "HTTP/1.1 404 X\r\nServer: Libpod/5.4.0 (linux)\r\nContent-Length: 0\r\n\r\n".to_owned(),
            (404, Proven, String::new()),
        ),
        (
            "a body that ends with the connection",
            "HTTP/1.0 500 X\r\nServer: Docker/1 (linux)\r\n\r\nplain".to_owned(),
            (500, Proven, "plain".to_owned()),
        ),
    ] {
        let raw = answering(reply);
        let sealed = restart(&raw.engine(), LONG).await;
        assert_eq!(complete(sealed), expected, "{name}");
        assert_eq!(raw.after(1).await.len(), 1, "{name}");
    }
}

#[tokio::test]
async fn the_request_is_one_head_with_its_grace_and_every_byte_is_counted() {
    let raw = answering(engine_reply(500, ""));
    let permit = yes();
    let connection = raw.engine().connect().await.unwrap();
    let Sealed::Written(written) = send(connection, LONG, permit.clone()).await else {
        panic!("not written")
    };
    let arrived = raw.after(1).await;
    let text = String::from_utf8(arrived[0].clone()).unwrap();
    assert!(text.starts_with(&format!("POST /containers/{ID}/restart?t=10 HTTP/1.1\r\n")), "{text}");
    for header in ["host: localhost\r\n", "content-length: 0\r\n", "connection: close\r\n"] {
        assert_eq!(text.matches(header).count(), 1, "{text}");
    }
    assert!(text.ends_with("\r\n\r\n") && heads(&arrived[0]) == 1, "{text}");
    assert_eq!(written.bytes, arrived[0].len() as u64);
    assert_eq!(permit.0.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_start_is_one_head_and_its_304_without_a_body_is_a_whole_reply() {
    let reply = "HTTP/1.1 304 Not Modified\r\nApi-Version: 1.41\r\nServer: Docker/27 (linux)\r\n\r\n";
    // A 304 has no body, whatever its head says of one (RFC 9110, section 15.4.5).
    let with_length = reply.replace("\r\n\r\n", "\r\nContent-Length: 500\r\n\r\n");
    for reply in [reply.to_owned(), with_length] {
        let raw = RawEngine::start(move |mut visit: Visit| {
            let reply = reply.clone();
            async move {
                visit.read_head().await;
                visit.write(reply.as_bytes()).await;
                visit.read_to_end().await;
            }
        });
        let permit = yes();
        let connection = raw.engine().connect().await.unwrap();
        let sealed = connection.start(&ContainerId::new(ID).unwrap(), LONG, permit.clone()).await;
        assert_eq!(complete(sealed), (304, EngineProof::Proven, String::new()));
        let arrived = raw.after(1).await;
        let text = String::from_utf8(arrived[0].clone()).unwrap();
        assert!(text.starts_with(&format!("POST /containers/{ID}/start HTTP/1.1\r\n")), "{text}");
        assert_eq!((arrived.len(), heads(&arrived[0])), (1, 1), "{text}");
        assert_eq!(permit.0.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn a_refusal_by_the_permit_is_proof_and_no_byte_arrives() {
    for cause in [NotWrittenCause::Fenced, NotWrittenCause::Revoked, NotWrittenCause::TicketExpired] {
        let raw = RawEngine::start(|mut visit: Visit| async move { visit.read_to_end().await });
        let connection = raw.engine().connect().await.unwrap();
        let sealed = send(connection, LONG, Arc::new(No(cause))).await;
        let exchange = Exchange::from(sealed);
        let why = NotWritten { cause, detail: "refused under the lock".to_owned() };
        assert_eq!(exchange, Exchange::NeverWritten(why));
        assert_eq!(raw.after(1).await, [Vec::<u8>::new()]);
    }
}

#[tokio::test]
async fn a_connection_that_is_given_up_is_proof_and_no_byte_arrives() {
    let raw = RawEngine::start(|mut visit: Visit| async move { visit.read_to_end().await });
    let why = NotWritten { cause: NotWrittenCause::IncarnationChanged, detail: "another".to_owned() };
    let proof = raw.engine().connect().await.unwrap().close(why.clone());
    assert_eq!(proof.into_why(), why);
    assert_eq!(raw.after(1).await, [Vec::<u8>::new()]);
}

#[tokio::test]
async fn dropping_the_exchange_drops_its_socket() {
    let (seen, mut sees) = tokio::sync::watch::channel(false);
    let raw = RawEngine::start(move |mut visit: Visit| {
        let seen = seen.clone();
        async move {
            visit.read_head().await;
            seen.send_replace(true);
            visit.read_to_end().await;
        }
    });
    let connection = raw.engine().connect().await.unwrap();
    let exchange = send(connection, LONG, yes());
    tokio::select! {
        sealed = exchange => panic!("{sealed:?}"),
        _ = sees.wait_for(|seen| *seen) => {}
    }
    let arrived = raw.after(1).await;
    assert_eq!((arrived.len(), heads(&arrived[0])), (1, 1));
}

/// A connection that took an hour to make.
async fn slowly_made(engine: &Engine) -> Connection {
    let mut connection = engine.connect().await.unwrap();
    connection.begun_at = connection.begun_at.checked_sub(Duration::from_secs(3600)).unwrap();
    connection
}

#[tokio::test]
async fn the_deadline_counts_from_the_first_byte_however_slow_the_connect() {
    let raw = answering(engine_reply(500, ""));
    let minute = Duration::from_secs(60);
    // The guards that this run of the tests takes out: none, unless `RELATCH_HOLE` names one.
    let engine = raw.engine().with_holes(crate::env::holes().unwrap());
    let sealed = send(slowly_made(&engine).await, minute, yes()).await;
    assert_eq!(complete(sealed).0, 500);
}

#[cfg(feature = "failpoints")]
#[tokio::test]
async fn with_that_guard_taken_out_a_slow_connect_eats_the_deadline() {
    let raw = RawEngine::start(|mut visit: Visit| async move { visit.read_to_end().await });
    let engine = raw.engine().with_holes(Holes::only(Hole::DeadlineFromConnect));
    let minute = Duration::from_secs(60);
    match send(slowly_made(&engine).await, minute, yes()).await {
        Sealed::Written(Written { reply: Reply::Lost(lost), .. }) => assert!(lost.timed_out, "{lost:?}"),
        Sealed::NeverWritten(proof) => assert!(proof.why().detail.contains("client deadline"), "{proof:?}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_restart_may_be_owned_by_any_task() {
    let raw = answering(engine_reply(500, ""));
    let engine = raw.engine();
    let owner = tokio::spawn(async move { restart(&engine, LONG).await });
    assert_eq!(complete(owner.await.unwrap()).0, 500);
}

#[tokio::test]
async fn a_deadline_beyond_the_end_of_the_clock_is_none() {
    let raw = answering(engine_reply(500, ""));
    assert_eq!(complete(restart(&raw.engine(), Duration::MAX).await).0, 500);
}
