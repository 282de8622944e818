//! One connection to the server.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use relatch::env::Stream;
use rustix::io::ioctl_fionread;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::script::{End, Entry, Reads, Script};
use crate::shared::Shared;

pub enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<dyn Stream>),
}

impl Socket {
    fn stream(&mut self) -> &mut dyn Stream {
        match self {
            Self::Unix(stream) => stream,
            Self::Tcp(stream) => stream,
            Self::Tls(stream) => stream,
        }
    }

    /// Waits until something has arrived, or the client has ended its side, and takes nothing. Of what TLS holds that
    /// cannot be seen.
    async fn something_waits(&mut self) {
        match self {
            Self::Unix(stream) => {
                let stream = &*stream;
                while let Ok(ready) = stream.ready(Interest::READABLE).await
                    && !ready.is_read_closed()
                    && ioctl_fionread(stream).is_ok_and(|waiting| waiting == 0)
                {
                    // The system may say so for no reason: it is asked again.
                    let again = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
                    let _cleared = stream.try_io(Interest::READABLE, again);
                }
            }
            Self::Tcp(stream) => drop(stream.peek(&mut [0]).await),
            Self::Tls(_) => {}
        }
    }
}

pub struct Visit {
    socket: Socket,
    shared: Arc<Shared>,
    number: usize,
}

/// Notes the end of a visit, also of one that panics.
struct Over(Arc<Shared>, usize);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.note(self.1, |arrived| arrived.over = true);
    }
}

impl Visit {
    pub fn new(socket: Socket, shared: Arc<Shared>, number: usize) -> Self {
        Self { socket, shared, number }
    }

    /// From the accept to the end.
    pub async fn run(self, entry: Option<Entry>, tls: Option<TlsAcceptor>) {
        let _over = Over(Arc::clone(&self.shared), self.number);
        self.enter(entry, tls).await;
    }

    async fn enter(mut self, entry: Option<Entry>, tls: Option<TlsAcceptor>) {
        match (entry, tls) {
            (Some(Entry::Close), _) => {}
            (Some(Entry::Says(bytes)), _) => {
                self.write(&bytes).await;
                self.read_to_end().await;
            }
            (Some(Entry::Ignore), _) => self.read_to_end().await,
            (Some(Entry::Reluctant(tls, told)), _) => self.shake_hands(&tls, Some(told)).await,
            (Some(Entry::Tls(tls)), _) | (None, Some(tls)) => self.shake_hands(&tls, None).await,
            (None, None) => self.serve().await,
        }
    }

    async fn shake_hands(self, tls: &TlsAcceptor, told: Option<oneshot::Receiver<()>>) {
        let Self { socket: Socket::Tcp(stream), shared, number } = self else {
            panic!("TLS is for ports alone")
        };
        let stream = Reluctant { stream, has_read: false, told };
        match tls.accept(stream).into_fallible().await {
            Ok(stream) => {
                let socket = Socket::Tls(Box::new(stream));
                Self { socket, shared, number }.serve().await;
            }
            // Closed with something unread, the connection would be reset, and the alert lost.
            Err((_, mut stream)) => drop(stream.read_to_end(&mut Vec::new()).await),
        }
    }

    async fn serve(mut self) {
        let is_look = self.shared.looks && self.begins_with(b'G').await;
        if is_look { self.answer_looks().await } else { self.act().await }
    }

    /// What the first byte is; from a port it is not taken.
    async fn begins_with(&mut self, wanted: u8) -> bool {
        if let Socket::Tcp(stream) = &self.socket {
            let mut first = [0];
            return stream.peek(&mut first).await.is_ok_and(|count| count == 1) && first == [wanted];
        }
        self.read_some(1).await;
        self.shared.read(self.number, |arrived| arrived.bytes == [wanted])
    }

    async fn answer_looks(&mut self) {
        loop {
            let Some(path) = self.read_head().await else { return };
            let path = match path.strip_prefix("/v1.") {
                Some(rest) => &rest[rest.find('/').unwrap_or(0)..],
                None => &path,
            };
            let reply = self.shared.look(path);
            if !self.write(reply.as_bytes()).await {
                return;
            }
        }
    }

    /// Does to a restart request what the script says.
    async fn act(&mut self) {
        self.socket.something_waits().await;
        let Script { reads, takes_effect, takes, answers, drips, ends } = self.shared.current_script();
        match reads {
            Reads::Head => drop(self.read_head().await),
            Reads::Bytes(wanted) => {
                while let left @ 1.. = wanted.saturating_sub(self.read_so_far())
                    && self.read_some(left).await > 0
                {}
            }
        }
        let container = self.shared.read(self.number, |arrived| {
            String::from_utf8_lossy(&arrived.bytes).split('/').nth(2).map(str::to_owned)
        });
        if let Some(id) = container.filter(|_| takes_effect) {
            self.shared.start_anew(&id);
        }
        tokio::time::sleep(takes).await;
        self.write(&answers).await;
        let (rest, pause) = drips;
        for byte in rest {
            tokio::time::sleep(pause).await;
            if !self.write(&[byte]).await {
                return;
            }
        }
        match ends {
            End::Reset => {}
            End::Stall => self.read_to_end().await,
            End::Fin => {
                let _gone = self.socket.stream().shutdown().await;
                self.read_to_end().await;
            }
        }
    }

    fn read_so_far(&self) -> usize {
        self.shared.read(self.number, |arrived| arrived.bytes.len())
    }

    async fn read_some(&mut self, at_most: usize) -> usize {
        let mut buffer = vec![0; at_most];
        // A reset is an end like any other.
        let count = self.socket.stream().read(&mut buffer).await.unwrap_or(0);
        self.shared.note(self.number, |arrived| arrived.bytes.extend_from_slice(&buffer[..count]));
        count
    }

    async fn read_to_end(&mut self) {
        while self.read_some(4096).await > 0 {}
    }

    /// Reads to the end of a head, byte by byte: what follows stays in the socket. Gives the path.
    async fn read_head(&mut self) -> Option<String> {
        while self.read_some(1).await > 0 {
            if let Some(path) = self.shared.read(self.number, |arrived| path_of_last(&arrived.bytes)) {
                return Some(path);
            }
        }
        None
    }

    /// False if the client has gone, or does not take it.
    async fn write(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            let Ok(count @ 1..) = self.socket.stream().write(bytes).await else { return false };
            self.shared.note(self.number, |arrived| arrived.answered += count);
            bytes = &bytes[count..];
        }
        self.socket.stream().flush().await.is_ok()
    }
}

/// The path of the last head in what arrived, if that is whole.
fn path_of_last(arrived: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(arrived.strip_suffix(b"\r\n\r\n")?);
    head.rsplit("\r\n\r\n").next()?.split(' ').nth(1).map(str::to_owned)
}

/// A connection whose server reads the client's first words, and no more until it is told.
#[derive(Debug)]
struct Reluctant {
    stream: TcpStream,
    has_read: bool,
    told: Option<oneshot::Receiver<()>>,
}

impl AsyncRead for Reluctant {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.has_read
            && let Some(told) = &mut self.told
        {
            let _told = ready!(Pin::new(told).poll(cx));
            self.told = None;
        }
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.has_read = true;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Reluctant {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
