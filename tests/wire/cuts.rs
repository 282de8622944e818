//! The property: whatever an engine reads, and wherever it then stops, what is claimed is what that allows.

use std::time::Duration;

use proptest::prelude::*;
use relatch::model::{EngineProof, Exchange, Reply, Wire};

use crate::direct::{engine, request, restart};
use crate::judged::judged;
use crate::looks::engine_reply;
use crate::script::{End, Reads, Script};
use crate::server::{Server, heads};

/// A server that neither answers nor ends: how long it is waited for.
const DEADLINE: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
struct Cut {
    unix: bool,
    reads: Reads,
    /// Which of the replies, and how much of it is written.
    reply: usize,
    written: usize,
    ends: End,
}

/// Each with its status, if it is whole and an engine's.
fn replies() -> Vec<(String, Option<u16>)> {
    vec![
        (engine_reply(204, ""), Some(204)),
        (engine_reply(400, "{\"message\":\"bad\"}"), Some(400)),
        (engine_reply(404, "{\"message\":\"no such container\"}"), Some(404)),
        (engine_reply(500, "{\"message\":\"boom\"}"), Some(500)),
        ("HTTP/1.1 404 X\r\nServer: nginx\r\nContent-Length: 2\r\n\r\nno".to_owned(), None),
        (
            "HTTP/1.1 404 X\r\nApi-Version: 1.41\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
                .to_owned(),
            Some(404),
        ),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 X\r\nServer: Libpod/5\r\nContent-Length: 0\r\n\r\n"
                .to_owned(),
            Some(400),
        ),
    ]
}

fn cut() -> impl Strategy<Value = Cut> {
    let reads = prop_oneof![4 => (0_usize..230).prop_map(Reads::Bytes), 1 => Just(Reads::Head)];
    let ends = prop_oneof![Just(End::Fin), Just(End::Reset), Just(End::Stall)];
    let written = prop_oneof![1 => Just(0), 2 => 0_usize..250, 2 => Just(usize::MAX)];
    let parts = (any::<bool>(), reads, 0..replies().len(), written, ends);
    parts.prop_map(|(unix, reads, reply, written, ends)| Cut { unix, reads, reply, written, ends })
}

/// What is claimed of this cut, against what the server saw of it.
async fn holds(cut: &Cut) -> Result<(), TestCaseError> {
    let (reply, status) = replies().swap_remove(cut.reply);
    let written = &reply.as_bytes()[..cut.written.min(reply.len())];
    let is_whole = written.len() == reply.len();
    let server = Server::of_posts(cut.unix);
    server.script(Script { answers: written.to_vec(), ..Script::cut(cut.reads, cut.ends) });
    let engine = engine(&server);
    let exchange = restart(&engine, DEADLINE).await;
    let arrived = server.after(1).await;
    prop_assert_eq!(arrived.len(), 1, "one connection");
    prop_assert!(heads(&arrived[0].bytes) <= 1);
    let seen = arrived[0].bytes.len() as u64;
    prop_assert!(request(&engine).as_bytes().starts_with(&arrived[0].bytes));
    // The server waits for the first byte before it does anything: so there was a write call, even if it then read
    // nothing.
    let Exchange::Written { wire, bytes, reply } = &exchange else {
        return Err(TestCaseError::fail(format!("a write call was made: {exchange:?}")));
    };
    prop_assert_eq!(*wire, if cut.unix { Wire::Unix } else { Wire::Tcp });
    prop_assert!(*bytes >= seen, "{bytes} bytes were written, {seen} were seen");
    let run = judged(&exchange);
    let is_refusal = match reply {
        Reply::Lost(lost) => {
            prop_assert!(!exchange.has_ended());
            prop_assert!(lost.status.is_none() || cut.written > 0);
            false
        }
        Reply::Complete { status: told, proof, .. } => {
            prop_assert!(is_whole, "{told} of {} bytes", written.len());
            prop_assert_eq!(*proof == EngineProof::Proven, status.is_some());
            prop_assert_eq!(status.unwrap_or(404), *told);
            cut.unix && matches!(status, Some(400 | 404))
        }
    };
    let wanted = if is_refusal { "NOT_APPLIED" } else { "UNRESOLVED" };
    prop_assert_eq!(run.status.word(), wanted, "{:#?}", run);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn wherever_an_engine_stops_no_more_is_claimed_than_that_allows(cut in cut()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(holds(&cut))?;
    }
}
