//! A proxy before an engine's socket. It passes everything on, keeps a record of the restart requests that
//! went by whole, and lets nobody have the answer to one.
//!
//! After a restart request nothing is passed back on that connection, and the client's side of it stays open
//! until the client is gone: to the client, an engine that takes its time. The engine is heard out, whatever
//! became of the client.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{ReadHalf, WriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::judge::Post;
use super::timeline::{Timeline, Who};
use crate::model::EngineInstant;

const READ_BYTES: usize = 16 * 1024;

/// A proxy that serves until it is dropped.
#[derive(Debug)]
pub(super) struct Proxy {
    record: watch::Receiver<Record>,
    serving: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Record {
    /// The restart requests that were passed on whole.
    posts: Vec<Post>,
    /// How many of them the engine has answered, or hung up on.
    answered: usize,
}

impl Record {
    fn is_owed_an_answer(&self) -> bool {
        self.answered < self.posts.len()
    }
}

impl Proxy {
    /// Listens at `socket` for the engine at `engine`.
    pub(super) fn start(socket: &Path, engine: &Path, timeline: Timeline) -> anyhow::Result<Self> {
        let listener =
            UnixListener::bind(socket).with_context(|| format!("listening on {}", socket.display()))?;
        let (record, seen) = watch::channel(Record::default());
        let shared = Arc::new(Shared { engine: engine.to_owned(), timeline, record });
        Ok(Self { record: seen, serving: tokio::spawn(serve(listener, shared)) })
    }

    /// The restart requests that were passed on whole, to whatever container.
    pub(super) fn posts(&self) -> Vec<Post> {
        self.record.borrow().posts.clone()
    }

    /// Waits until a restart request was passed on whole.
    pub(super) async fn passed_on(&mut self) {
        self.wait_for(|record| !record.posts.is_empty()).await;
    }

    /// True while the engine has not answered a restart request.
    pub(super) fn is_owed_an_answer(&self) -> bool {
        self.record.borrow().is_owed_an_answer()
    }

    /// Waits until the engine has answered each restart request.
    pub(super) async fn heard_out(&mut self) {
        self.wait_for(|record| !record.is_owed_an_answer()).await;
    }

    async fn wait_for(&mut self, condition: impl FnMut(&Record) -> bool) {
        // An error means that the proxy ended: it cannot accept, has said so, and passes nothing on any more.
        if self.record.wait_for(condition).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

struct Shared {
    engine: PathBuf,
    timeline: Timeline,
    record: watch::Sender<Record>,
}

/// Accepts clients. The connections end with this future.
async fn serve(listener: UnixListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    let shared = Arc::clone(&shared);
                    connections.spawn(async move { shared.carry(client).await });
                }
                Err(error) => {
                    shared.timeline.say(Who::Proxy, &format!("cannot accept a connection: {error}"));
                    return;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

impl Shared {
    /// One client's connection, with one to the engine of its own.
    async fn carry(&self, mut client: UnixStream) {
        // To a client, an engine that cannot be reached is one that hangs up.
        let Ok(mut engine) = UnixStream::connect(&self.engine).await else { return };
        let (from_client, to_client) = client.split();
        let (from_engine, to_engine) = engine.split();
        let is_lost = AtomicBool::new(false);
        // Both ends stay open until both directions are over.
        tokio::join!(
            self.pass_on(from_client, to_engine, &is_lost),
            self.pass_back(from_engine, to_client, &is_lost)
        );
    }

    async fn pass_on(&self, mut client: ReadHalf<'_>, mut engine: WriteHalf<'_>, is_lost: &AtomicBool) {
        let mut requests = Requests::default();
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(count @ 1..) = client.read(&mut buffer).await {
            let bytes = &buffer[..count];
            let mut restarts = requests.whole_in(bytes);
            restarts.retain(|line| is_restart(line));
            // Before the engine can answer.
            is_lost.fetch_or(!restarts.is_empty(), Ordering::SeqCst);
            if engine.write_all(bytes).await.is_err() {
                break;
            }
            restarts.into_iter().for_each(|line| self.passed_on(line));
        }
        if !is_lost.load(Ordering::SeqCst) {
            let _gone = engine.shutdown().await;
        }
    }

    async fn pass_back(&self, mut engine: ReadHalf<'_>, mut client: WriteHalf<'_>, is_lost: &AtomicBool) {
        let mut unheard = Vec::new();
        let mut buffer = vec![0; READ_BYTES];
        while let Ok(count @ 1..) = engine.read(&mut buffer).await {
            let bytes = &buffer[..count];
            if is_lost.load(Ordering::SeqCst) {
                unheard.extend_from_slice(bytes);
                if let Some(head) = head(&unheard) {
                    self.answered(&format!("answers {}, which nobody hears", first_line(head)));
                    return;
                }
            } else if client.write_all(bytes).await.is_err() {
                break;
            }
        }
        if is_lost.load(Ordering::SeqCst) {
            self.answered("hangs up without an answer");
        } else {
            let _gone = client.shutdown().await;
        }
    }

    fn passed_on(&self, request_line: String) {
        self.timeline.say(Who::Proxy, &format!("passes on, whole: {request_line}"));
        let at = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let at =
            at.and_then(|at| EngineInstant::new(i64::try_from(at.as_secs()).ok()?, at.subsec_nanos()).ok());
        self.record.send_modify(|record| record.posts.push(Post { at, request_line }));
    }

    fn answered(&self, how: &str) {
        self.timeline.say(Who::Engine, how);
        self.record.send_modify(|record| record.answered += 1);
    }
}

/// Tells the requests of one connection apart.
#[derive(Debug, Default)]
struct Requests {
    /// What was received of a head that is not whole.
    partial_head: Vec<u8>,
    /// The request line of a request whose body is not whole, and the bytes that are missing.
    body: Option<(String, usize)>,
}

impl Requests {
    /// The request lines of the requests that these next bytes complete.
    fn whole_in(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut whole = Vec::new();
        self.partial_head.extend_from_slice(bytes);
        loop {
            if let Some((line, missing_bytes)) = self.body.take() {
                let come_bytes = missing_bytes.min(self.partial_head.len());
                self.partial_head.drain(..come_bytes);
                if come_bytes < missing_bytes {
                    self.body = Some((line, missing_bytes - come_bytes));
                    return whole;
                }
                whole.push(line);
            }
            let Some(head) = head(&self.partial_head) else { return whole };
            self.body = Some((first_line(head), content_length(head)));
            let head_bytes = head.len();
            self.partial_head.drain(..head_bytes);
        }
    }
}

/// The head at the beginning of a message, with the empty line that ends it.
fn head(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(&bytes[..end + 4])
}

fn first_line(head: &[u8]) -> String {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    String::from_utf8_lossy(line).into_owned()
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head);
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    lengths.find_map(|(_, length)| length.trim().parse().ok()).unwrap_or(0)
}

fn is_restart(request_line: &str) -> bool {
    let mut words = request_line.split(' ');
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    method == Some("POST") && path.contains("/containers/") && path.ends_with("/restart")
}

#[cfg(test)]
mod tests {
    use super::super::super::output::{Format, Output};
    use super::*;

    const GET: &str = "GET /v1.41/containers/c0ffee/json HTTP/1.1\r\nHost: x\r\n\r\n";
    const POST: &str =
        "POST /containers/c0ffee/restart?t=10 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";

    #[test]
    fn requests_are_told_apart_wherever_they_are_cut() {
        // The body looks like a restart, and is none.
        let with_body = "POST /containers/restart/exec HTTP/1.1\r\ncontent-length: 42\r\n\r\n\
                         POST /containers/c0ffee/restart HTTP/1\r\n\r\n";
        let all = [GET, with_body, POST].concat();
        for cut in 0..all.len() {
            let mut requests = Requests::default();
            let mut lines = requests.whole_in(&all.as_bytes()[..cut]);
            assert!(!lines.iter().any(|line| is_restart(line)), "no restart is whole after {cut} bytes");
            lines.extend(requests.whole_in(&all.as_bytes()[cut..]));
            let restarts: Vec<bool> = lines.iter().map(|line| is_restart(line)).collect();
            assert_eq!(restarts, [false, false, true], "{cut}: {lines:?}");
        }
    }

    #[test]
    fn only_a_restart_is_one() {
        for other in [
            "GET /containers/c0ffee/restart HTTP/1.1",
            "POST /containers/restart/start HTTP/1.1",
            "POST /containers/c0ffee/start?x=/restart HTTP/1.1",
            "POST",
            "",
        ] {
            assert!(!is_restart(other), "{other:?}");
        }
        assert!(is_restart("POST /v1.41/containers/c0ffee/restart HTTP/1.1"));
    }

    /// A client whose connection leads through a proxy to an engine.
    async fn connected(dir: &Path) -> (UnixStream, Proxy, UnixStream) {
        let (before, behind) = (dir.join("proxy.sock"), dir.join("engine.sock"));
        let listener = UnixListener::bind(&behind).unwrap();
        let timeline = Timeline::begin(Output::new(Format::Json).muted());
        let proxy = Proxy::start(&before, &behind, timeline).unwrap();
        let client = UnixStream::connect(&before).await.unwrap();
        let (engine, _) = listener.accept().await.unwrap();
        (client, proxy, engine)
    }

    async fn pass(from: &mut UnixStream, to: &mut UnixStream, text: &str) {
        from.write_all(text.as_bytes()).await.unwrap();
        let mut received = vec![0; text.len()];
        to.read_exact(&mut received).await.unwrap();
        assert_eq!(String::from_utf8(received).unwrap(), text);
    }

    #[tokio::test]
    async fn the_answer_to_a_restart_is_heard_out_even_if_the_client_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let (mut client, mut proxy, mut engine) = connected(dir.path()).await;
        pass(&mut client, &mut engine, GET).await;
        pass(&mut engine, &mut client, "HTTP/1.1 200 OK\r\n\r\n").await;
        pass(&mut client, &mut engine, POST).await;
        proxy.passed_on().await;
        assert!(proxy.is_owed_an_answer());
        drop(client);
        engine.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        proxy.heard_out().await;
        let lines: Vec<String> = proxy.posts().into_iter().map(|post| post.request_line).collect();
        assert_eq!(lines, ["POST /containers/c0ffee/restart?t=10 HTTP/1.1"]);
    }

    #[tokio::test]
    async fn a_client_that_stays_gets_neither_an_answer_nor_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let (mut client, mut proxy, mut engine) = connected(dir.path()).await;
        pass(&mut client, &mut engine, POST).await;
        engine.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        drop(engine);
        proxy.passed_on().await;
        proxy.heard_out().await;
        let nothing = client.try_read(&mut [0; 16]).expect_err("it stays open, and silent");
        assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
    }
}
