use std::future::poll_fn;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncWriteExt;

use super::*;

/// What a write of so many bytes comes to.
type Answer = fn(usize) -> Poll<io::Result<usize>>;

/// A stream that gives each write the same answer, and counts the calls.
struct Wire {
    calls: Arc<AtomicUsize>,
    answer: Answer,
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        (self.answer)(buf.len())
    }
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        (self.answer)(bufs.iter().map(|buf| buf.len()).sum())
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A permit that runs the write so many times, and then answers.
struct Says {
    writes: usize,
    refusal: Option<NotWrittenCause>,
    asked: AtomicUsize,
}

impl Says {
    fn new(writes: usize, refusal: Option<NotWrittenCause>) -> Arc<Self> {
        Arc::new(Self { writes, refusal, asked: AtomicUsize::new(0) })
    }
}

impl Permit for Says {
    fn admit(&self, write: &mut dyn FnMut()) -> Result<(), NotWritten> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        (0..self.writes).for_each(|_| write());
        self.refusal.map_or(Ok(()), |cause| Err(NotWritten { cause, detail: "refused".to_owned() }))
    }
}

fn taking_all(length: usize) -> Poll<io::Result<usize>> {
    Poll::Ready(Ok(length))
}

fn gate(answer: Answer, permit: Arc<Says>) -> (Gate<Wire>, Keeper, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let armed = Armed::over(Ok(Wire { calls: Arc::clone(&calls), answer })).unwrap();
    let (gate, keeper) = armed.guarded_by(permit, crate::env::holes().unwrap());
    (gate, keeper, calls)
}

fn gave_up() -> NotWritten {
    NotWritten { cause: NotWrittenCause::Unreachable, detail: "gave up".to_owned() }
}

fn proven(seal: Seal) -> NotWritten {
    match seal {
        Seal::Closed(proof) => proof.into_why(),
        Seal::Writing { bytes } => panic!("the gate was open, {bytes} bytes"),
    }
}

fn written(seal: Seal) -> u64 {
    match seal {
        Seal::Writing { bytes } => bytes,
        Seal::Closed(proof) => panic!("the gate was closed: {proof:?}"),
    }
}

#[tokio::test]
async fn the_permit_is_asked_once_and_every_byte_is_counted() {
    let permit = Says::new(1, None);
    let (mut gate, keeper, calls) = gate(taking_all, Arc::clone(&permit));
    gate.write_all(b"twelve bytes").await.unwrap();
    let bufs = [IoSlice::new(b"five "), IoSlice::new(b"more")];
    assert!(gate.is_write_vectored());
    assert_eq!(gate.write_vectored(&bufs).await.unwrap(), 9);
    assert_eq!(written(keeper.seal(gave_up)), 21);
    assert_eq!((permit.asked.load(Ordering::SeqCst), calls.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test]
async fn a_vectored_first_write_asks_the_permit_too() {
    let permit = Says::new(0, Some(NotWrittenCause::Fenced));
    let (mut gate, keeper, calls) = gate(taking_all, Arc::clone(&permit));
    gate.write_vectored(&[IoSlice::new(b"POST")]).await.unwrap_err();
    assert_eq!(proven(keeper.seal(gave_up)).cause, NotWrittenCause::Fenced);
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn after_a_refusal_no_write_passes_and_the_permit_is_not_asked_again() {
    let permit = Says::new(0, Some(NotWrittenCause::Revoked));
    let (mut gate, keeper, calls) = gate(taking_all, Arc::clone(&permit));
    for _ in 0..3 {
        gate.write_all(b"POST").await.unwrap_err();
    }
    assert_eq!(
        proven(keeper.seal(gave_up)),
        NotWritten { cause: NotWrittenCause::Revoked, detail: "refused".to_owned() }
    );
    assert_eq!((permit.asked.load(Ordering::SeqCst), calls.load(Ordering::SeqCst)), (1, 0));
}

#[tokio::test]
async fn a_sealed_gate_lets_no_write_pass() {
    let permit = Says::new(1, None);
    let (mut gate, keeper, calls) = gate(taking_all, Arc::clone(&permit));
    assert_eq!(proven(keeper.seal(gave_up)), gave_up());
    gate.write_all(b"POST").await.unwrap_err();
    assert_eq!(proven(keeper.seal(gave_up)), gave_up());
    assert_eq!((permit.asked.load(Ordering::SeqCst), calls.load(Ordering::SeqCst)), (0, 0));
}

#[tokio::test]
async fn a_first_write_call_that_took_nothing_is_still_a_write_call() {
    let answers: [Answer; 2] = [|_| Poll::Pending, |_| Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))];
    for answer in answers {
        let (mut gate, keeper, _) = gate(answer, Says::new(1, None));
        let first = poll_fn(|cx| Poll::Ready(Pin::new(&mut gate).poll_write(cx, b"POST"))).await;
        assert!(!matches!(first, Poll::Ready(Ok(_))));
        assert!(keeper.first_write_at().is_some());
        assert_eq!(written(keeper.seal(gave_up)), 0);
    }
}

#[tokio::test]
async fn a_flush_or_a_shutdown_is_no_write() {
    let permit = Says::new(1, None);
    let (mut gate, keeper, _) = gate(taking_all, Arc::clone(&permit));
    gate.flush().await.unwrap();
    gate.shutdown().await.unwrap();
    assert_eq!(permit.asked.load(Ordering::SeqCst), 0);
    assert_eq!(proven(keeper.seal(gave_up)), gave_up());
}

#[tokio::test]
async fn what_the_permit_did_decides_and_not_what_it_answers() {
    // It lets the write run, then refuses: bytes are out.
    let (mut gate1, keeper, _) = gate(taking_all, Says::new(1, Some(NotWrittenCause::Fenced)));
    gate1.write_all(b"POST").await.unwrap();
    assert_eq!(written(keeper.seal(gave_up)), 4);

    // It agrees, but does not let the write run: nothing is out, and nothing will be.
    let (mut gate2, keeper, calls) = gate(taking_all, Says::new(0, None));
    gate2.write_all(b"POST").await.unwrap_err();
    assert_eq!(proven(keeper.seal(gave_up)).cause, NotWrittenCause::AuthorityLost);
    assert_eq!(calls.load(Ordering::SeqCst), 0);

    // It lets the write run twice: it runs once.
    let (mut gate3, keeper, calls) = gate(taking_all, Says::new(2, None));
    gate3.write_all(b"POST").await.unwrap();
    assert_eq!(written(keeper.seal(gave_up)), 4);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[test]
fn two_tasks_and_one_gate_closed_or_written_never_both_never_neither() {
    let mut outcomes = [0, 0];
    for _ in 0..2000 {
        let (mut gate, keeper, calls) = gate(taking_all, Says::new(1, None));
        let start = Arc::new(Barrier::new(2));
        let go = Arc::clone(&start);
        let writer = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            go.wait();
            runtime.block_on(gate.write_all(b"POST")).is_ok()
        });
        start.wait();
        let seal = keeper.seal(gave_up);
        let wrote = writer.join().unwrap();
        let closed = matches!(seal, Seal::Closed(_));
        assert_ne!(closed, wrote, "{seal:?}, the write passed: {wrote}");
        assert_eq!(calls.load(Ordering::SeqCst), usize::from(wrote));
        outcomes[usize::from(closed)] += 1;
    }
    println!("written {}, closed {}", outcomes[0], outcomes[1]);
}
