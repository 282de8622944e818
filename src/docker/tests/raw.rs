//! A raw server on a unix socket or a port, which does to each connection what a script says, and keeps what really
//! arrived.

use std::future::Future;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::{Endpoint, Engine, EngineLimits};
use crate::env::Stream;

type Log = Arc<Mutex<Vec<Vec<u8>>>>;

/// The server. It ends with the value.
pub(super) struct RawEngine {
    endpoint: String,
    /// Of its socket; it goes with the value.
    _dir: TempDir,
    log: Log,
    ended: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

/// One connection, as the script has it.
pub(super) struct Visit {
    pub(super) stream: Box<dyn Stream>,
    log: Log,
    number: usize,
}

/// Where it accepts.
enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener, Option<TlsAcceptor>),
}

impl Listener {
    async fn accept(&self) -> (Box<dyn Stream>, Option<TlsAcceptor>) {
        match self {
            Self::Unix(listener) => (Box::new(listener.accept().await.unwrap().0), None),
            Self::Tcp(listener, tls) => (Box::new(listener.accept().await.unwrap().0), tls.clone()),
        }
    }
}

impl RawEngine {
    /// Accepts on a unix socket without end, and runs the script for each connection; the connection is closed
    /// with the script's end.
    pub(super) fn start<F, R>(script: F) -> Self
    where
        F: Fn(Visit) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let listener = Listener::Unix(UnixListener::bind(&socket).unwrap());
        Self::run(dir, socket.to_str().unwrap().to_owned(), listener, script)
    }

    /// The same on a port, under TLS if there is some. Where the handshake fails, the script is not run, but
    /// counts as ended.
    pub(super) async fn start_tcp<F, R>(tls: Option<TlsAcceptor>, script: F) -> Self
    where
        F: Fn(Visit) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("tcp://{}", listener.local_addr().unwrap());
        Self::run(tempfile::tempdir().unwrap(), endpoint, Listener::Tcp(listener, tls), script)
    }

    fn run<F, R>(dir: TempDir, endpoint: String, listener: Listener, script: F) -> Self
    where
        F: Fn(Visit) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let log = Log::default();
        let (ends, ended) = watch::channel(0);
        let (accepted, script) = (Arc::clone(&log), Arc::new(script));
        let task = tokio::spawn(async move {
            loop {
                let (stream, tls) = listener.accept().await;
                let number = {
                    let mut log = accepted.lock().unwrap();
                    log.push(Vec::new());
                    log.len() - 1
                };
                let (log, script, ends) = (Arc::clone(&accepted), Arc::clone(&script), ends.clone());
                tokio::spawn(async move {
                    let shaken: Result<Box<dyn Stream>, _> = match tls {
                        None => Ok(stream),
                        Some(tls) => match tls.accept(stream).into_fallible().await {
                            Ok(stream) => Ok(Box::new(stream)),
                            Err((_, stream)) => Err(stream),
                        },
                    };
                    match shaken {
                        Ok(stream) => script(Visit { stream, log, number }).await,
                        // Closed with something unread, the connection would be reset, and the alert lost.
                        Err(mut stream) => drop(stream.read_to_end(&mut Vec::new()).await),
                    }
                    ends.send_modify(|count| *count += 1);
                });
            }
        });
        Self { endpoint, _dir: dir, log, ended, task }
    }

    /// Where it listens.
    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    pub(super) fn engine(&self) -> Engine {
        patient(Endpoint::parse(&self.endpoint).unwrap())
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

/// An engine whose socket is, or would be, `s` in that folder.
pub(super) fn engine_at(dir: &TempDir) -> Engine {
    patient(Endpoint::parse(dir.path().join("s").to_str().unwrap()).unwrap())
}

/// An engine with limits far beyond what a test takes.
pub(super) fn patient(endpoint: Endpoint) -> Engine {
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
