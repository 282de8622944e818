//! What every reply of an engine has in common: who wrote it, and its text made fit to be kept and shown.

use std::error::Error;

use bytes::Bytes;
use http::HeaderMap;
use http::header::SERVER;
use serde::Deserialize;

use crate::model::EngineProof;

/// The header in which dockerd and Podman name the version that they speak.
pub(super) const API_VERSION: &str = "api-version";

/// How much of an engine's text is kept.
pub(super) const MESSAGE_BYTES: usize = 1024;

/// Whether the headers of a reply show that an engine itself wrote it, and not a proxy before it.
pub(super) fn engine_proof(headers: &HeaderMap) -> EngineProof {
    let by_name = headers
        .get_all(SERVER)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|server| server.starts_with("Docker/") || server.starts_with("Libpod/"));
    if by_name || headers.contains_key(API_VERSION) { EngineProof::Proven } else { EngineProof::Unproven }
}

/// True for Podman's own name in the headers of a reply.
pub(super) fn is_podman(headers: &HeaderMap) -> bool {
    headers.get(SERVER).and_then(|value| value.to_str().ok()).is_some_and(|s| s.starts_with("Libpod/"))
}

/// The engine's text of a reply: `message` of its JSON, or else the text itself, harmless.
pub(super) fn message_of(body: &Bytes) -> String {
    #[derive(Deserialize)]
    struct Message {
        message: String,
    }
    match serde_json::from_slice::<Message>(body) {
        Ok(json) => harmless(json.message.trim(), MESSAGE_BYTES),
        Err(_) => harmless(String::from_utf8_lossy(body).trim(), MESSAGE_BYTES),
    }
}

/// A text of foreign origin, on one line, without characters that steer a terminal or turn the direction of
/// writing, and with at most `longest_bytes` bytes (and an ellipsis where it was cut).
pub(crate) fn harmless(text: &str, longest_bytes: usize) -> String {
    let mut kept = String::with_capacity(text.len().min(longest_bytes));
    for c in text.chars() {
        let c = match c {
            '\n' | '\r' | '\t' => ' ',
            c if steers(c) => '\u{fffd}',
            c => c,
        };
        if kept.len() + c.len_utf8() > longest_bytes {
            kept.push('…');
            break;
        }
        kept.push(c);
    }
    kept
}

/// Control characters, and those of Unicode that break a line, turn the direction of writing, or are not seen (UTR 36,
/// "Trojan Source").
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// An error and all its causes on one line. hyper's own text leaves the causes out.
pub(super) fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    harmless(&text, MESSAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_an_engines_own_headers_prove_an_engine() {
        for proven in [
            headers(&[("server", "Docker/20.10.24+dfsg1 (linux)")]),
            headers(&[("server", "Libpod/5.4.0 (linux)")]),
            headers(&[("server", "nginx"), ("api-version", "1.41")]),
            headers(&[("server", "nginx"), ("server", "Docker/27.0")]),
        ] {
            assert_eq!(engine_proof(&proven), EngineProof::Proven, "{proven:?}");
        }
        for unproven in
            [headers(&[]), headers(&[("server", "nginx")]), headers(&[("server", "docker-socket-proxy")])]
        {
            assert_eq!(engine_proof(&unproven), EngineProof::Unproven, "{unproven:?}");
        }
    }

    #[test]
    fn the_engines_text_is_its_message_or_else_all_of_it() {
        let message = |body: &'static str| message_of(&Bytes::from_static(body.as_bytes()));
        assert_eq!(message("{\"message\":\"No such container: x\"}\n"), "No such container: x");
        assert_eq!(message("{\"cause\":\"c\",\"message\":\"m\",\"response\":404}"), "m");
        assert_eq!(message("plain text\n"), "plain text");
        assert_eq!(message(""), "");
    }

    #[test]
    fn foreign_text_cannot_steer_a_terminal_or_grow_without_bound() {
        let text = harmless("a\x1b[31m\r\nb\u{202e}c\0", 100);
        assert_eq!(text, "a\u{fffd}[31m  b\u{fffd}c\u{fffd}");
        assert_eq!(harmless(&"ä".repeat(10), 5), "ää…");
        // The Arabic letter mark turns the direction as well, and tags are not seen at all.
        assert_eq!(harmless("a\u{61c}b\u{e0041}c", 100), "a\u{fffd}b\u{fffd}c");
    }
}
