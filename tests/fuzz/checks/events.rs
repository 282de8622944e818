//! The lines of an engine's events.

use futures::StreamExt as _;
use relatch::docker::EventHint;

use super::choice;
use super::engine::{InMemory, Script, is_harmless, reply, wait};

/// The lines say the same however they are cut into pieces, and nothing that they do not say.
pub fn check(data: &[u8]) {
    let (kind, lines) = choice(data);
    if kind & 128 != 0 {
        // All of the answer, head included.
        let (_, ended) = (heard(lines.to_vec(), 1 << 20), heard(lines.to_vec(), 1));
        drop(ended);
        return;
    }
    let sizes = [usize::from(kind & 63) + 1, 1 << 20];
    let [some, all] = sizes.map(|size| heard(chunked(lines, size), size));
    assert_eq!(some, all, "cut into pieces of {} bytes", sizes[0]);
    // What comes after the last line break was not told to its end.
    let ended = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut told = lines[..ended].split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
    for hint in all {
        assert!(hint.action.len() <= 128 + '…'.len_utf8() && is_harmless(&hint.action), "{hint:?}");
        assert!(
            told.any(|line| line.contains("\\u") || line.contains(hint.container_id.as_str())),
            "nobody told of {hint:?}"
        );
    }
}

fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut answer = b"HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(size) {
        answer.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        answer.extend(chunk);
        answer.extend(b"\r\n");
    }
    answer.extend(b"0\r\n\r\n");
    answer
}

fn heard(answer: Vec<u8>, at_once: usize) -> Vec<EventHint> {
    let replies = vec![reply(200, b"OK"), answer];
    let engine = InMemory::new(Script { replies, at_once, ..Script::default() }).client();
    wait(async {
        match engine.events().await {
            Ok(hints) => hints.collect().await,
            Err(error) => {
                assert!(error.to_string().len() < 8_000, "{error}");
                Vec::new()
            }
        }
    })
}
