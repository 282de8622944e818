//! The write gate: the one place through which the bytes of a restart or start request pass.
//!
//! It lies under the HTTP library and above TLS, so it sees the request in plain text. It is *armed*,
//! *writing* or *closed*:
//!
//! ```text
//!            first write call, permitted
//!   armed ───────────────────────────────▶ writing     bytes may have left: uncertain from here on
//!     │
//!     └── refused by the permit, or sealed ──▶ closed   no byte was written, and none ever will be
//! ```
//!
//! **Invariant 4(a): only `closed` is proof.** No change leads from writing to closed or back, and the
//! state becomes `writing` *before* the inner write call is made: what the call then does (an error, a part,
//! `Pending`) no longer matters. [`NeverWritten`] can be made in this file alone.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::model::{Exchange, Hole, Holes, NotWritten, NotWrittenCause};

/// Whoever may still say no, asked at the last moment there is: inside the first write call.
pub trait Permit: Send + Sync {
    /// Checks whether the request may still be sent, and if so runs `write`, once, while it still holds the
    /// lock under which it checked. Between the check and the write nothing can then change.
    ///
    /// It is called at most once for a request, on the task that polls the exchange: it must not block for
    /// long, and must not panic.
    ///
    /// # Errors
    ///
    /// Why the request may not be sent; `write` was then not run.
    fn admit(&self, write: &mut dyn FnMut()) -> Result<(), NotWritten>;
}

/// Proof that no byte of a request was ever written, and never will be; with the reason.
///
/// There is no way to make one outside the write gate's own file.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "this is the proof that nothing was sent; without it the run stays uncertain"]
pub struct NeverWritten(NotWritten);

impl NeverWritten {
    /// Why nothing was written.
    #[must_use]
    pub fn why(&self) -> &NotWritten {
        &self.0
    }

    /// Why nothing was written; the proof is spent.
    #[must_use]
    pub fn into_why(self) -> NotWritten {
        self.0
    }
}

impl From<NeverWritten> for NotWritten {
    fn from(proof: NeverWritten) -> Self {
        proof.0
    }
}

impl From<NeverWritten> for Exchange {
    fn from(proof: NeverWritten) -> Self {
        Self::NeverWritten(proof.0)
    }
}

/// A stream to which nothing was written, with the sole right to write to it. The gate before it is armed.
#[derive(Debug)]
pub(super) struct Armed<S>(S);

impl<S: AsyncRead + AsyncWrite + Unpin> Armed<S> {
    /// Arms a fresh connection; of one that failed, keeps why. Where there is no connection, nothing can
    /// carry the request: that is the other way in which a gate is closed before the first write.
    pub(super) fn over(connected: Result<S, String>) -> Result<Self, NeverWritten> {
        connected
            .map(Self)
            .map_err(|detail| NeverWritten(NotWritten { cause: NotWrittenCause::Unreachable, detail }))
    }

    /// Gives the connection up, and with it the right to write to it.
    pub(super) fn close(self, why: NotWritten) -> NeverWritten {
        NeverWritten(why)
    }

    /// Puts the gate before the stream, still armed, and hands out its keeper.
    pub(super) fn guarded_by(self, permit: Arc<dyn Permit>, holes: Holes) -> (Gate<S>, Keeper) {
        let latch = Arc::new(Latch { phase: Mutex::new(Phase::Armed), holes });
        (Gate { inner: self.0, latch: Arc::clone(&latch), permit }, Keeper(latch))
    }
}

/// What the gate says when it is sealed.
#[derive(Debug)]
pub(super) enum Seal {
    /// No write call was made, and none can be any more.
    Closed(NeverWritten),
    /// The first write call was made; the inner writes took this many bytes.
    Writing { bytes: u64 },
}

#[derive(Debug)]
enum Phase {
    Armed,
    Writing { since: Instant, bytes: u64 },
    Closed(NotWritten),
}

/// The gate's state, shared between the stream and the [`Keeper`].
///
/// Its lock is never held while foreign code runs, and is taken inside the permit's: always in that order.
#[derive(Debug)]
struct Latch {
    phase: Mutex<Phase>,
    holes: Holes,
}

impl Latch {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        // Each change below is one assignment, so a panic elsewhere leaves no half-made state behind.
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Armed to writing; false if the gate is not armed.
    fn begin(&self) -> bool {
        let mut phase = self.phase();
        let armed = matches!(*phase, Phase::Armed);
        if armed && !self.holes.open(Hole::WriteIsCountedLate) {
            *phase = Phase::Writing { since: Instant::now(), bytes: 0 };
        }
        armed
    }

    /// Armed to closed; nothing changes in any other state.
    fn close(&self, why: impl FnOnce() -> NotWritten) {
        let mut phase = self.phase();
        if matches!(*phase, Phase::Armed) || self.holes.open(Hole::WrittenCanBeClosed) {
            *phase = Phase::Closed(why());
        }
    }

    fn count(&self, taken: usize) {
        let mut phase = self.phase();
        if self.holes.open(Hole::WriteIsCountedLate) && matches!(*phase, Phase::Armed) {
            *phase = Phase::Writing { since: Instant::now(), bytes: 0 };
        }
        match &mut *phase {
            Phase::Writing { bytes, .. } => *bytes = bytes.saturating_add(taken as u64),
            // Once writing, always writing: a count of bytes in any other state would mean that a proof
            // could be given for a request that is on its way.
            Phase::Armed | Phase::Closed(_) => {
                unreachable!("bytes were written through a gate that is not open")
            }
        }
    }
}

/// The side of the gate that stays with the caller, while the HTTP library owns the stream.
#[derive(Debug)]
pub(super) struct Keeper(Arc<Latch>);

impl Keeper {
    /// When the first write call was made, if it was.
    pub(super) fn first_write_at(&self) -> Option<Instant> {
        match &*self.0.phase() {
            Phase::Writing { since, .. } => Some(*since),
            Phase::Armed | Phase::Closed(_) => None,
        }
    }

    /// Ends the question: takes an armed gate to closed, or says that a write call was made.
    ///
    /// `why` is the reason if the gate was still armed; a refusal by the permit keeps its own.
    pub(super) fn seal(&self, why: impl FnOnce() -> NotWritten) -> Seal {
        self.0.close(why);
        match &*self.0.phase() {
            Phase::Closed(why) => Seal::Closed(NeverWritten(why.clone())),
            Phase::Writing { bytes, .. } => Seal::Writing { bytes: *bytes },
            Phase::Armed => unreachable!("a sealed gate is never armed"),
        }
    }
}

/// A stream whose first write asks the permit. Reads, flushes and shutdowns pass: none of them is a write of
/// the request.
pub(super) struct Gate<S> {
    inner: S,
    latch: Arc<Latch>,
    permit: Arc<dyn Permit>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Gate<S> {
    fn pass(
        &mut self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let writing = matches!(*self.latch.phase(), Phase::Writing { .. });
        let result =
            if writing { write(Pin::new(&mut self.inner), cx) } else { self.first_write(cx, &mut write)? };
        if let Poll::Ready(Ok(taken)) = &result {
            self.latch.count(*taken);
        }
        result
    }

    /// The first write call, or a call on a closed gate. An error means that no write call was made.
    fn first_write(
        &mut self,
        cx: &mut Context<'_>,
        write: &mut impl FnMut(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> io::Result<Poll<io::Result<usize>>> {
        if matches!(*self.latch.phase(), Phase::Closed(_)) {
            return Err(closed());
        }
        let mut result = None;
        let answer = self.permit.admit(&mut || {
            if result.is_none() && self.latch.begin() {
                result = Some(write(Pin::new(&mut self.inner), cx));
            }
        });
        // What was done decides, not what the permit answers: a permit that lets the write run and then
        // refuses has still let it run.
        result.ok_or_else(|| {
            self.latch.close(|| {
                answer.err().unwrap_or_else(|| NotWritten {
                    cause: NotWrittenCause::AuthorityLost,
                    detail: "sending the request: its permit agreed but did not let it be written".to_owned(),
                })
            });
            closed()
        })
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "the write gate is closed")
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Gate<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().pass(cx, |inner, cx| inner.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().pass(cx, |inner, cx| inner.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gate<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

#[cfg(test)]
#[path = "tests/gate.rs"]
mod tests;
