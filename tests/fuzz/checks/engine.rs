//! An engine in memory: it answers each request on a connection with the next of its replies, byte for byte.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use relatch::docker::{Endpoint, Engine, EngineLimits};
use relatch::env::{Connecting, Sockets, Stream};
use relatch::model::Holes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What an engine answers, and how.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// One for each request; the connection ends with the last.
    pub replies: Vec<Vec<u8>>,
    /// How many bytes one read gives at most; at least 1.
    pub at_once: usize,
    /// The first reply is there before anything was asked.
    pub early: bool,
    /// After the last reply this goes on without end.
    pub endless: Option<u8>,
}

/// What went over the connection.
#[derive(Debug, Default)]
pub struct Seen {
    /// All that was written to the engine.
    pub written: Vec<u8>,
    /// How many bytes of its answers were read.
    pub read_bytes: usize,
    /// How many connections there were.
    pub connections: usize,
}

/// The engine, and what it saw.
#[derive(Debug, Clone)]
pub struct InMemory {
    script: Arc<Script>,
    seen: Arc<Mutex<Seen>>,
}

impl InMemory {
    pub fn new(script: Script) -> Self {
        Self { script: Arc::new(script), seen: Arc::default() }
    }

    /// A client of it, over a unix socket as far as anyone can tell.
    pub fn client(&self) -> Engine {
        let endpoint = Endpoint::parse("/engine").expect("an endpoint");
        // Far beyond what a check takes: nothing here waits for time.
        let limits = EngineLimits { connect_ms: 600_000, inspect_ms: 600_000, list_ms: 600_000 };
        Engine::over(Arc::new(self.clone()), endpoint, limits, Holes::none())
    }

    /// What was seen, and the end of that.
    pub fn seen(&self) -> Seen {
        std::mem::take(&mut *self.seen.lock().expect("no check panics while it looks"))
    }
}

impl Sockets for InMemory {
    fn connect_unix<'a>(&'a self, _: &'a Path) -> Connecting<'a> {
        let mut replies: VecDeque<Vec<u8>> = self.script.replies.iter().cloned().collect();
        let ready = if self.script.early { replies.pop_front() } else { None };
        self.seen.lock().expect("no check panics while it looks").connections += 1;
        let connection = Connection {
            replies,
            ready: ready.unwrap_or_default().into(),
            head: Vec::new(),
            at_once: self.script.at_once.max(1),
            endless: self.script.endless,
            seen: Arc::clone(&self.seen),
            reader: None,
        };
        Box::pin(async move { Ok(Box::new(connection) as Box<dyn Stream>) })
    }

    fn connect_tcp<'a>(&'a self, _: &'a str, _: u16) -> Connecting<'a> {
        Box::pin(async { Err(io::Error::other("there is no TCP here")) })
    }
}

#[derive(Debug)]
struct Connection {
    replies: VecDeque<Vec<u8>>,
    ready: VecDeque<u8>,
    /// Of the request that is being written.
    head: Vec<u8>,
    at_once: usize,
    endless: Option<u8>,
    seen: Arc<Mutex<Seen>>,
    reader: Option<Waker>,
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = self.at_once.min(buf.remaining());
        if self.ready.is_empty() {
            if !self.replies.is_empty() {
                self.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            // Endless answers come in whole reads: what is bounded is how many of them are taken.
            if let Some(byte) = self.endless {
                let room = buf.remaining();
                buf.initialize_unfilled().fill(byte);
                buf.advance(room);
                self.seen.lock().expect("no check panics while it looks").read_bytes += room;
            }
            return Poll::Ready(Ok(()));
        }
        let given = room.min(self.ready.len());
        let bytes: Vec<u8> = self.ready.drain(..given).collect();
        buf.put_slice(&bytes);
        self.seen.lock().expect("no check panics while it looks").read_bytes += given;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.seen.lock().expect("no check panics while it looks").written.extend_from_slice(bytes);
        self.head.extend_from_slice(bytes);
        if self.head.ends_with(b"\r\n\r\n") {
            self.head.clear();
            if let Some(reply) = self.replies.pop_front() {
                self.ready.extend(reply);
            }
            if let Some(reader) = self.reader.take() {
                reader.wake();
            }
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Drives one future to its end, in this thread.
pub fn wait<F: Future>(future: F) -> F::Output {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}

/// A whole reply of an engine, with this body.
pub fn reply(status: u16, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status} Some\r\nApi-Version: 1.41\r\nServer: Docker/20.10.24 (linux)\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// True if nothing in the text steers a terminal, breaks a line, or turns or hides what is written around it.
pub fn is_harmless(text: &str) -> bool {
    let turns_or_hides = |c: char| {
        matches!(
            u32::from(c),
            0x061c | 0x180e | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xfff9..=0xfffb
                | 0xe0000..=0xe007f
        )
    };
    !text.chars().any(|c| c.is_control() || turns_or_hides(c))
}
