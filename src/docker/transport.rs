//! One fresh connection at a time, and how it is carried.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::timeout;

use super::endpoint::Endpoint;

/// Opens a fresh connection. The error is one line: what was tried, the operating system's own words, and a
/// hint for the next step.
pub(super) async fn connect(endpoint: &Endpoint, limit_ms: u64) -> Result<UnixStream, String> {
    match timeout(Duration::from_millis(limit_ms), UnixStream::connect(endpoint.socket())).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(format!("connecting to {endpoint}: {error}{}", hint(&error))),
        Err(_) => Err(format!("connecting to {endpoint}: not connected within {limit_ms} ms")),
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; is the engine installed and running, and is the path right?",
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
/// had brought by then is still to be read; what it had not is an error for `work`.
pub(super) async fn carry<C, W>(connection: &mut Option<C>, work: W) -> W::Output
where
    C: Future + Unpin,
    W: Future,
{
    let mut work = pin!(work);
    poll_fn(|cx| {
        loop {
            if let Poll::Ready(output) = work.as_mut().poll(cx) {
                return Poll::Ready(output);
            }
            let Some(carried) = connection else { return Poll::Pending };
            if Pin::new(carried).poll(cx).is_pending() {
                return Poll::Pending;
            }
            *connection = None;
        }
    })
    .await
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
            assert!(hint(&kind.into()).contains(next), "{kind:?}");
        }
    }

    #[tokio::test]
    async fn what_waits_for_a_connection_that_has_ended_learns_of_it() {
        let (waits, waited) = tokio::sync::oneshot::channel::<()>();
        // As hyper's does, it keeps what others wait for until it is dropped.
        let connection = poll_fn(move |_| {
            let _kept = &waits;
            Poll::Ready(())
        });
        assert!(carry(&mut Some(connection), waited).await.is_err());
    }
}
