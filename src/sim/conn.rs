//! One accepted connection: a raw socket whose bytes are counted, and the ways to end it.

use std::{future::Future, io};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
    net::{TcpStream, UnixStream},
    sync::watch,
};

use super::{
    engine::Engine,
    wire::End,
    wire_log::{Ended, Event},
};

/// More than any request of a Docker client needs.
pub(crate) const BUFFER_LIMIT: usize = 64 * 1024;

/// Either kind of stream.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer).await,
            Self::Unix(stream) => stream.read(buffer).await,
        }
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes).await,
            Self::Unix(stream) => stream.write(bytes).await,
        }
    }

    /// Returns once there is something to read, without reading it.
    async fn readable(&self) {
        // An error shows itself in the next read.
        let _ = match self {
            Self::Tcp(stream) => stream.ready(Interest::READABLE).await,
            Self::Unix(stream) => stream.ready(Interest::READABLE).await,
        };
    }

    async fn end_writing(&mut self) {
        // A client that is gone needs no FIN.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown().await,
            Self::Unix(stream) => stream.shutdown().await,
        };
    }

    fn reset_on_close(&self) {
        if let Self::Tcp(stream) = self
            && let Err(error) = stream.set_zero_linger()
        {
            tracing::warn!(%error, "a connection will be closed and not reset");
        }
    }
}

/// An exchange that has begun and is not logged as ended.
#[derive(Debug)]
struct Exchange {
    request: u64,
    received_bytes: u64,
    sent_before: u64,
    status: Option<u16>,
}

/// A connection. Dropping it closes it and logs its end.
#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) engine: Engine,
    pub(crate) number: u64,
    /// Read from the socket and not yet taken as part of a request.
    pub(crate) buffered: Vec<u8>,
    socket: Socket,
    received: u64,
    sent: u64,
    ended: Ended,
    exchange: Option<Exchange>,
    idle_drops: watch::Receiver<(u64, End)>,
}

impl Conn {
    pub(crate) fn accepted(engine: Engine, socket: Socket, listener: &str) -> Self {
        let number = engine.next_connection();
        engine.log().append(Event::Accepted { connection: number, listener: listener.to_owned() });
        let mut idle_drops = engine.inner.idle_drops.subscribe();
        idle_drops.mark_unchanged();
        Self {
            number,
            buffered: Vec::new(),
            socket,
            received: 0,
            sent: 0,
            // What holds if the task is ended from outside.
            ended: Ended::Shutdown,
            exchange: None,
            idle_drops,
            engine,
        }
    }

    /// Reads at most `limit` bytes into the buffer.
    pub(crate) async fn fill(&mut self, limit: usize) -> Result<(), Ended> {
        let mut chunk = [0; 4096];
        let limit = limit.clamp(1, chunk.len());
        match self.socket.read(&mut chunk[..limit]).await {
            Ok(0) => Err(Ended::ClientClosed),
            Ok(count) => {
                self.received += count as u64;
                self.buffered.extend_from_slice(&chunk[..count]);
                Ok(())
            }
            Err(error) => Err(ended_by(&error)),
        }
    }

    /// As [`Conn::fill`], or learns that idle connections are being dropped.
    pub(crate) async fn fill_or_drop(&mut self, limit: usize) -> Result<Option<End>, Ended> {
        let mut drops = self.idle_drops.clone();
        tokio::select! {
            biased;
            _ = drops.changed() => Ok(Some(drops.borrow().1)),
            filled = self.fill(limit) => filled.map(|()| None),
        }
    }

    /// Returns once a byte can be read, without reading it.
    pub(crate) async fn readable(&self) {
        self.socket.readable().await;
    }

    /// Takes the first `count` buffered bytes.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.buffered.split_off(count.min(self.buffered.len()));
        std::mem::replace(&mut self.buffered, rest)
    }

    /// Waits for `work`, or learns that the client has left. What it sends meanwhile is kept and counted.
    pub(crate) async fn while_connected<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Ended> {
        tokio::pin!(work);
        loop {
            let has_room = self.buffered.len() < BUFFER_LIMIT;
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                filled = self.fill(BUFFER_LIMIT), if has_room => filled?,
            }
        }
    }

    /// Hands all `bytes` to the socket.
    pub(crate) async fn send(&mut self, mut bytes: &[u8]) -> Result<(), Ended> {
        while !bytes.is_empty() {
            match self.socket.write(bytes).await {
                Ok(count) => {
                    self.sent += count as u64;
                    bytes = &bytes[count..];
                }
                Err(error) => return Err(ended_by(&error)),
            }
        }
        Ok(())
    }

    /// Ends the connection as the script says; with [`End::Stall`], returns when the client has left.
    pub(crate) async fn finish(&mut self, end: End) -> Ended {
        match end {
            End::Fin => {
                self.socket.end_writing().await;
                Ended::Fin
            }
            End::Rst => {
                self.socket.reset_on_close();
                Ended::Rst
            }
            End::Stall => match self.while_connected(std::future::pending::<()>()).await {
                Err(ended) => ended,
                Ok(()) => Ended::Complete,
            },
        }
    }

    /// As [`Conn::finish`], but reads not a byte more: a stall lasts until the engine is shut down.
    pub(crate) async fn finish_unread(&mut self, end: End) -> Ended {
        match end {
            End::Stall => std::future::pending().await,
            _ => self.finish(end).await,
        }
    }

    /// From now on an exchange is going on.
    pub(crate) fn begin_exchange(&mut self, request: u64, head_bytes: u64) {
        let exchange = Exchange { request, received_bytes: head_bytes, sent_before: self.sent, status: None };
        self.exchange = Some(exchange);
    }

    /// Bytes of the request's body were taken.
    pub(crate) fn count_body(&mut self, bytes: u64) {
        if let Some(exchange) = &mut self.exchange {
            exchange.received_bytes += bytes;
        }
    }

    /// A reply with this status is about to be sent.
    pub(crate) fn begin_reply(&mut self, status: Option<u16>) {
        if let Some(exchange) = &mut self.exchange {
            exchange.status = status;
        }
    }

    /// The exchange is over.
    pub(crate) fn end_exchange(&mut self, ended: Ended) {
        let Some(exchange) = self.exchange.take() else { return };
        let sent_bytes = self.sent - exchange.sent_before;
        self.engine.log().append(Event::Exchanged {
            connection: self.number,
            request: exchange.request,
            received_bytes: exchange.received_bytes,
            // A status that never began to leave was not said.
            status: exchange.status.filter(|_| sent_bytes > 0),
            sent_bytes,
            ended,
        });
    }

    /// Says how the connection ended, before it is dropped.
    pub(crate) fn close(mut self, ended: Ended) {
        self.ended = ended;
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.end_exchange(self.ended);
        self.engine.log().append(Event::Closed {
            connection: self.number,
            received_bytes: self.received,
            sent_bytes: self.sent,
            ended: self.ended,
        });
    }
}

fn ended_by(error: &io::Error) -> Ended {
    match error.kind() {
        io::ErrorKind::ConnectionReset => Ended::ClientReset,
        _ => Ended::ClientClosed,
    }
}
