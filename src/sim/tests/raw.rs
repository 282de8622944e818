//! A client that speaks bytes.

use std::{io, net::SocketAddr, path::Path, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
};

/// No test waits longer for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// One connection.
pub(crate) struct Raw {
    stream: Box<dyn Stream>,
    read: Vec<u8>,
}

/// A whole reply.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().expect("a message").to_owned()
    }
}

impl Raw {
    pub(crate) async fn unix(path: &Path) -> io::Result<Self> {
        Ok(Self { stream: Box::new(UnixStream::connect(path).await?), read: Vec::new() })
    }

    pub(crate) async fn tcp(addr: SocketAddr) -> io::Result<Self> {
        Ok(Self { stream: Box::new(TcpStream::connect(addr).await?), read: Vec::new() })
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("writing to the engine");
    }

    pub(crate) async fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    pub(crate) async fn send_request(&mut self, method: &str, target: &str) {
        self.send(format!("{method} {target} HTTP/1.1\r\nHost: docker\r\n\r\n").as_bytes()).await;
    }

    pub(crate) async fn ask(&mut self, method: &str, target: &str) -> Reply {
        self.send_request(method, target).await;
        self.reply().await
    }

    async fn fill(&mut self) -> io::Result<usize> {
        let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.read)).await;
        read.unwrap_or_else(|_| panic!("no more than {:?}", String::from_utf8_lossy(&self.read)))
    }

    /// Reads until `wanted` has arrived, and gives back everything up to its end.
    pub(crate) async fn read_until(&mut self, wanted: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = self.read.windows(wanted.len()).position(|window| window == wanted) {
                let rest = self.read.split_off(at + wanted.len());
                return std::mem::replace(&mut self.read, rest);
            }
            let count = self.fill().await.expect("reading from the engine");
            assert!(count > 0, "ended after {:?}", String::from_utf8_lossy(&self.read));
        }
    }

    pub(crate) async fn read_exactly(&mut self, count: usize) -> Vec<u8> {
        while self.read.len() < count {
            let count = self.fill().await.expect("reading from the engine");
            assert!(count > 0, "ended after {:?}", String::from_utf8_lossy(&self.read));
        }
        let rest = self.read.split_off(count);
        std::mem::replace(&mut self.read, rest)
    }

    /// Reads until the connection ends; says what came, and the error if it did not end in order.
    pub(crate) async fn read_to_end(&mut self) -> (Vec<u8>, Option<io::ErrorKind>) {
        loop {
            match self.fill().await {
                Ok(0) => return (std::mem::take(&mut self.read), None),
                Ok(_) => {}
                Err(error) => return (std::mem::take(&mut self.read), Some(error.kind())),
            }
        }
    }

    /// Reads one reply with a body of known length.
    pub(crate) async fn reply(&mut self) -> Reply {
        let head = String::from_utf8(self.read_until(b"\r\n\r\n").await).expect("an ASCII head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let mut reply = Reply { status, head, body: Vec::new() };
        let length = reply.header("content-length").map_or(0, |length| length.parse().expect("a length"));
        reply.body = self.read_exactly(length).await;
        reply
    }

    /// Whether nothing arrives for a while. That something does *not* happen can only be waited for.
    pub(crate) async fn is_silent(&mut self) -> bool {
        self.read.is_empty()
            && tokio::time::timeout(Duration::from_millis(100), self.stream.read_buf(&mut self.read))
                .await
                .is_err()
    }

    /// Whether a chunked body ends as it should.
    pub(crate) async fn read_to_end_of_chunks(&mut self) -> bool {
        self.read_until(b"0\r\n\r\n").await.ends_with(b"0\r\n\r\n")
    }
}
