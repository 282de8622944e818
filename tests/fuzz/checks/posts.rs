//! What comes back for the one request that changes something.

use std::sync::Arc;
use std::time::Duration;

use relatch::docker::{Permit, Sealed};
use relatch::model::{
    ContainerId, EngineProof, Grace, GraceSource, LostReply, NotWritten, NotWrittenCause, Reply,
};

use super::choice;
use super::engine::{InMemory, Script, Seen, is_harmless, wait};

/// How much of a reply is read at the most: the head that the library takes, the body that is kept, and one read.
const MOST_READ_BYTES: usize = 2 * 1024 * 1024;

/// How long a kept text may be: its own bound, and what is said around it.
const MOST_KEPT_BYTES: usize = 4 * 1024;

/// Says yes, or no.
#[derive(Debug)]
struct Say(bool);

impl Permit for Say {
    fn admit(&self, write: &mut dyn FnMut()) -> Result<(), NotWritten> {
        if self.0 {
            write();
            return Ok(());
        }
        Err(NotWritten { cause: NotWrittenCause::Revoked, detail: "test".to_owned() })
    }
}

/// The first byte says how the bytes after it come: one by one or at once, early, or with an endless rest.
pub fn check(data: &[u8]) {
    let (how, reply) = choice(data);
    let script = Script {
        replies: vec![reply.to_vec()],
        at_once: [1, 3, 64, 1 << 20][usize::from(how & 3)],
        early: how & 4 != 0,
        endless: (how & 8 != 0).then(|| reply.last().copied().unwrap_or(b'x')),
    };
    let (permitted, start) = (how & 16 == 0, how & 32 != 0);
    let engine = InMemory::new(script);
    let id = ContainerId::new("1".repeat(64)).expect("64 hex digits");
    let sealed = wait(async {
        let connection = engine.client().connect().await.expect("it connects");
        let (deadline, permit) = (Duration::from_secs(600), Arc::new(Say(permitted)));
        if start {
            connection.start(&id, deadline, permit).await
        } else {
            let grace = Grace { seconds: 10, source: GraceSource::Request };
            connection.restart(&id, grace, deadline, permit).await
        }
    });
    let seen = engine.seen();
    sent_at_most_once(&seen, if start { "start" } else { "restart?t=10" });
    assert!(seen.read_bytes <= MOST_READ_BYTES, "{} bytes were read", seen.read_bytes);
    match sealed {
        Sealed::NeverWritten(proof) => {
            assert!(seen.written.is_empty(), "a proof that nothing was written: {proof:?}, and {seen:?}");
        }
        Sealed::Written(written) => {
            assert!(permitted, "it was written without a permit");
            assert_eq!(written.bytes, seen.written.len() as u64);
            is_what_came(&written.reply, reply);
        }
    }
}

fn sent_at_most_once(seen: &Seen, action: &str) {
    assert_eq!(seen.connections, 1);
    let written = String::from_utf8_lossy(&seen.written);
    let line = format!("POST /containers/{}/{action} HTTP/1.1\r\n", "1".repeat(64));
    assert!(written.is_empty() || written.starts_with(&line), "{written}");
    assert!(written.matches("POST ").count() <= 1, "{written}");
}

fn is_what_came(kept: &Reply, came: &[u8]) {
    let text = String::from_utf8_lossy(came);
    match kept {
        Reply::Lost(LostReply { status, timed_out, detail }) => {
            assert!(!timed_out, "nothing took any time: {detail}");
            assert!(detail.len() <= MOST_KEPT_BYTES && is_harmless(detail), "{detail:?}");
            if let Some(status) = status {
                assert!(text.contains(&format!(" {status}")), "{status} of {text}");
            }
        }
        Reply::Complete { status, proof, message } => {
            assert!(text.contains(&format!(" {status}")), "{status} of {text}");
            assert!(message.len() <= 1024 + '…'.len_utf8() && is_harmless(message), "{message:?}");
            let words = text.to_lowercase();
            let named = ["docker/", "libpod/", "api-version"].iter().any(|word| words.contains(word));
            assert!(*proof == EngineProof::Unproven || named, "no engine says so in {text}");
            assert!(
                came.windows(2).any(|two| two == b"\n\r" || two == b"\n\n"),
                "a head without an end: {text}"
            );
        }
    }
}
