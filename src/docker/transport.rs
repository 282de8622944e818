//! One fresh connection at a time, how it is carried, and how much may come over it.

use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, Join, ReadBuf, ReadHalf, WriteHalf};
use tokio::time::timeout;

use super::endpoint::Endpoint;
use crate::env::{Sockets, Stream, is_mount_point};

/// Opens a fresh connection, within one limit for all of it: the look-up of a name, the connection, and the TLS
/// handshake. The error is one line: what was tried, the system's own words, and a hint for the next step.
pub(super) async fn connect(
    sockets: &dyn Sockets,
    endpoint: &Endpoint,
    limit_ms: u64,
) -> Result<Box<dyn Stream>, String> {
    let connected = AtomicBool::new(false);
    let whole = async {
        let connecting = match endpoint {
            Endpoint::Unix(socket) => sockets.connect_unix(socket.as_path()),
            Endpoint::Tcp(at) | Endpoint::Tls(at, _) => sockets.connect_tcp(at.host(), at.port()),
        };
        let stream = connecting.await.map_err(|error| format!("{error}{}", hint(endpoint, &error)))?;
        connected.store(true, Ordering::Relaxed);
        match endpoint {
            Endpoint::Unix(_) | Endpoint::Tcp(_) => Ok(stream),
            Endpoint::Tls(_, peer) => {
                peer.shake_hands(stream).await.map_err(|why| format!("TLS handshake: {why}"))
            }
        }
    };
    let ended = timeout(Duration::from_millis(limit_ms), whole).await.unwrap_or_else(|_| {
        Err(if connected.load(Ordering::Relaxed) {
            format!("TLS handshake: not ended within {limit_ms} ms; does an engine with TLS listen there?")
        } else {
            format!("not connected within {limit_ms} ms{}", hint(endpoint, &io::ErrorKind::TimedOut.into()))
        })
    });
    ended.map_err(|why| format!("connecting to {endpoint}: {why}"))
}

fn hint(endpoint: &Endpoint, error: &io::Error) -> &'static str {
    match endpoint {
        Endpoint::Unix(socket) => unix_hint(error.kind(), socket.as_path()),
        Endpoint::Tcp(_) | Endpoint::Tls(..) => tcp_hint(error),
    }
}

fn tcp_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "; nothing listens on that port: is the engine running, and told to listen there (dockerd -H tcp://…)?"
        }
        io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "; is that machine up, and does a firewall let this port through?"
        }
        io::ErrorKind::PermissionDenied => "; a firewall of this machine forbids it",
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => {
            "; what listens there hung up at once: is it the engine, or a proxy whose engine is away?"
        }
        // The resolver's errors have neither a kind nor a number of their own.
        _ if error.raw_os_error().is_none() => "; is the host's name right, and does it resolve here?",
        _ => "",
    }
}

fn unix_hint(kind: io::ErrorKind, path: &Path) -> &'static str {
    match kind {
        io::ErrorKind::NotFound => "; is the engine installed and running, and is the path right?",
        // What is no socket refuses as well (`connect(2)`).
        io::ErrorKind::ConnectionRefused if path.is_dir() => {
            "; it is a folder, as Docker makes one where the source of a bind mount is missing: remove it, and \
             mount the folder that the engine's socket is in"
        }
        io::ErrorKind::ConnectionRefused if is_mount_point(path) => {
            "; this socket is mounted by itself, and nobody listens behind it any more: that lasts, even if the \
             engine is back, until it is mounted anew. Restart the container that it is mounted into, and mount its \
             folder instead"
        }
        io::ErrorKind::ConnectionRefused => {
            "; nothing listens on this socket: is the engine running? (A socket that was bind-mounted by itself \
             stays stale after the engine restarts: mount its folder, or restart this container.)"
        }
        io::ErrorKind::PermissionDenied => {
            "; run as root or as a member of the socket's group (often `docker`)"
        }
        // A full backlog of a unix socket fails at once, it does not wait (`connect(2)`).
        io::ErrorKind::WouldBlock => "; the engine does not accept connections: its backlog is full",
        _ => "",
    }
}

/// Carries a connection for as long as `work` needs it, in this one task. Whoever drops the future drops
/// the socket with it: no connection is ever left behind to be polled by another task.
///
/// A connection that has ended is dropped at once: hyper lets those who wait for one go only then. What it
/// had brought by then is still to be read; what it had not is an error for `work`. How it ended is told beside,
/// since that error may not say: whoever came too late only hears that it is closed.
pub(super) async fn carry<C, W>(connection: &mut Option<C>, work: W) -> (W::Output, Option<C::Output>)
where
    C: Future + Unpin,
    W: Future,
{
    let mut work = pin!(work);
    let mut ended = None;
    let output = poll_fn(|cx| {
        loop {
            if let Poll::Ready(output) = work.as_mut().poll(cx) {
                return Poll::Ready(output);
            }
            let Some(carried) = connection else { return Poll::Pending };
            ended = Some(ready!(Pin::new(carried).poll(cx)));
            *connection = None;
        }
    })
    .await;
    (output, ended)
}

/// A stream from which so much is read and no more: then reading fails, as `FileTooLarge`.
pub(super) type Bounded = Join<BoundedRead, WriteHalf<Box<dyn Stream>>>;

/// The side of [`Bounded`] that is read.
#[derive(Debug)]
pub(super) struct BoundedRead {
    stream: ReadHalf<Box<dyn Stream>>,
    left_bytes: usize,
}

/// Bounds what is read from a stream. One read goes beyond the bound before that is found out; hyper's are of
/// less than 1 MiB.
pub(super) fn bounded(stream: Box<dyn Stream>, left_bytes: usize) -> Bounded {
    let (stream, writer) = tokio::io::split(stream);
    tokio::io::join(BoundedRead { stream, left_bytes }, writer)
}

impl AsyncRead for BoundedRead {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let too_long = || io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than any that is read");
        let read = buf.filled().len() - before;
        self.left_bytes = self.left_bytes.checked_sub(read).ok_or_else(too_long)?;
        Poll::Ready(Ok(()))
    }
}

/// True if the bound of [`Bounded`] ended the connection.
pub(super) fn is_too_long(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::FileTooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_in_which_a_connect_fails_says_what_to_do_next() {
        for (kind, next) in [
            (io::ErrorKind::NotFound, "is the path right?"),
            (io::ErrorKind::ConnectionRefused, "mount its folder"),
            (io::ErrorKind::PermissionDenied, "group"),
            (io::ErrorKind::WouldBlock, "backlog is full"),
        ] {
            assert!(unix_hint(kind, Path::new("/nonexistent")).contains(next), "{kind:?}");
        }
        let folder = unix_hint(io::ErrorKind::ConnectionRefused, &std::env::temp_dir());
        assert!(folder.contains("it is a folder"), "{folder}");
        for (kind, next) in [
            (io::ErrorKind::ConnectionRefused, "-H tcp://"),
            (io::ErrorKind::TimedOut, "firewall"),
            (io::ErrorKind::HostUnreachable, "is that machine up"),
            (io::ErrorKind::ConnectionReset, "hung up"),
            (io::ErrorKind::Other, "does it resolve"),
        ] {
            assert!(tcp_hint(&kind.into()).contains(next), "{kind:?}");
        }
        // Too many open files: no name is at fault.
        assert_eq!(tcp_hint(&io::Error::from_raw_os_error(24)), "");
    }

    #[tokio::test]
    async fn what_waits_for_a_connection_that_has_ended_learns_of_it() {
        let (waits, waited) = tokio::sync::oneshot::channel::<()>();
        // As hyper's does, it keeps what others wait for until it is dropped.
        let connection = poll_fn(move |_| {
            let _kept = &waits;
            Poll::Ready(())
        });
        let (waited, ended) = carry(&mut Some(connection), waited).await;
        assert!(waited.is_err() && ended.is_some(), "{waited:?}, {ended:?}");
    }
}
