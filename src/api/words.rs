//! What a run holds besides its status, in words.

use crate::model::{Exchange, GraceSource, JournalWord, LostReply, Reply, Wire};

/// What the wire showed, in one line.
pub(super) fn exchange(exchange: &Exchange) -> String {
    match exchange {
        Exchange::NeverWritten(why) => format!("nothing was written: {}", why.detail),
        Exchange::Written { wire, bytes, reply } => {
            let wire = match wire {
                Wire::Unix => "a unix socket",
                Wire::Tcp => "TCP",
            };
            format!("{bytes} bytes written over {wire}; {}", self::reply(reply))
        }
    }
}

fn reply(reply: &Reply) -> String {
    match reply {
        Reply::Complete { status, message, .. } if message.is_empty() => format!("reply {status}"),
        Reply::Complete { status, message, .. } => format!("reply {status}: {message}"),
        Reply::Lost(LostReply { status: Some(status), detail, .. }) => {
            format!("half a reply, {status}: {detail}")
        }
        Reply::Lost(LostReply { status: None, detail, .. }) => format!("no reply: {detail}"),
    }
}

/// What the journal says, in one line.
pub(super) fn journal(word: &JournalWord) -> String {
    match word {
        JournalWord::NoIntent => "no intent, and the run is revoked there".into(),
        JournalWord::Intent => "an intent stands: the request may have been sent".into(),
        JournalWord::NotSent => "nothing was sent, and nothing will be".into(),
        JournalWord::Unreachable { detail } => format!("unreachable: {detail}"),
    }
}

/// Where a grace came from.
pub(super) fn grace_source(source: GraceSource) -> &'static str {
    match source {
        GraceSource::Request => "request",
        GraceSource::Label => "label",
        GraceSource::StopTimeout => "stop-timeout",
        GraceSource::Policy => "policy",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_says_how_far_it_came() {
        let written = |reply| exchange(&Exchange::Written { wire: Wire::Unix, bytes: 180, reply });
        let lost = |status| LostReply { status, timed_out: false, detail: "connection reset".into() };
        assert_eq!(
            written(Reply::Lost(lost(None))),
            "180 bytes written over a unix socket; no reply: connection reset"
        );
        assert!(written(Reply::Lost(lost(Some(204)))).ends_with("half a reply, 204: connection reset"));
        let complete = |message: &str| Reply::Complete {
            status: 500,
            proof: crate::model::EngineProof::Proven,
            message: message.into(),
        };
        assert!(written(complete("cannot restart")).ends_with("; reply 500: cannot restart"));
        assert!(written(complete("")).ends_with("; reply 500"));
    }
}
