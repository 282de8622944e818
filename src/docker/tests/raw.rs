//! A raw server on a unix socket, which does to each connection what a script says, and keeps what really
//! arrived.

use std::future::Future;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Endpoint, Engine, EngineLimits};

type Log = Arc<Mutex<Vec<Vec<u8>>>>;

/// The server. It ends with the value.
pub(super) struct RawEngine {
    dir: TempDir,
    log: Log,
    ended: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

/// One connection, as the script has it.
pub(super) struct Visit {
    pub(super) stream: UnixStream,
    log: Log,
    number: usize,
}

impl RawEngine {
    /// Accepts without end, and runs the script for each connection; the connection is closed with the
    /// script's end.
    pub(super) fn start<F, R>(script: F) -> Self
    where
        F: Fn(Visit) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        let log = Log::default();
        let (ends, ended) = watch::channel(0);
        let accepted = Arc::clone(&log);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = {
                    let mut log = accepted.lock().unwrap();
                    log.push(Vec::new());
                    log.len() - 1
                };
                let visit = script(Visit { stream, log: Arc::clone(&accepted), number });
                let ends = ends.clone();
                tokio::spawn(async move {
                    visit.await;
                    ends.send_modify(|count| *count += 1);
                });
            }
        });
        Self { dir, log, ended, task }
    }

    pub(super) fn engine(&self) -> Engine {
        engine_at(&self.dir)
    }

    /// What arrived on each connection so far, once that many scripts have ended.
    pub(super) async fn after(&self, scripts: usize) -> Vec<Vec<u8>> {
        self.ended.clone().wait_for(|count| *count >= scripts).await.unwrap();
        self.log.lock().unwrap().clone()
    }
}

impl Drop for RawEngine {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An engine whose socket is, or would be, `s` in that folder. Its limits are far beyond what a test takes.
pub(super) fn engine_at(dir: &TempDir) -> Engine {
    let endpoint = Endpoint::parse(dir.path().join("s").to_str().unwrap()).unwrap();
    Engine::new(endpoint, EngineLimits { connect_ms: 600_000, inspect_ms: 600_000, list_ms: 600_000 })
}

impl Visit {
    async fn read_some(&mut self, at_most: usize) -> usize {
        let mut buffer = vec![0; at_most];
        // A reset is an end like any other.
        let count = self.stream.read(&mut buffer).await.unwrap_or(0);
        self.log.lock().unwrap()[self.number].extend_from_slice(&buffer[..count]);
        count
    }

    /// Reads until that many bytes came, or the end.
    pub(super) async fn read_exactly(&mut self, mut count: usize) {
        while count > 0 {
            match self.read_some(count).await {
                0 => return,
                read => count -= read,
            }
        }
    }

    /// Reads one request head, or to the end, byte by byte: what follows stays in the socket.
    pub(super) async fn read_head(&mut self) -> String {
        let begin = self.log.lock().unwrap()[self.number].len();
        loop {
            let ended = self.read_some(1).await == 0;
            let log = self.log.lock().unwrap();
            if ended || log[self.number][begin..].ends_with(b"\r\n\r\n") {
                return String::from_utf8(log[self.number][begin..].to_vec()).unwrap();
            }
        }
    }

    /// Reads until the client has closed.
    pub(super) async fn read_to_end(&mut self) {
        while self.read_some(4096).await > 0 {}
    }

    /// Writes; a client that has gone is no failure of the server.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// Answers each request of the connection by what `reply` says of its path, without the version.
    pub(super) async fn serve(&mut self, reply: impl Fn(&str) -> String) {
        loop {
            let head = self.read_head().await;
            let Some(path) = head.split(' ').nth(1) else { return };
            let path = match path.strip_prefix("/v1.") {
                Some(rest) => &rest[rest.find('/').unwrap_or(0)..],
                None => path,
            };
            if !self.write(reply(path).as_bytes()).await {
                return;
            }
        }
    }
}

/// A whole reply of an engine.
pub(super) fn engine_reply(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} Some\r\nApi-Version: 1.41\r\nServer: Docker/20.10.24 (linux)\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
