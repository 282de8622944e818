//! What the wire showed of one restart or start request. Facts only: what they prove is the ledger's to say.

use serde::{Deserialize, Serialize};

/// The kind of connection that carried a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// A unix socket on the same machine. No proxy stands between that could have sent a request twice.
    Unix,
    /// TCP, plain or under TLS. A proxy may stand in between.
    Tcp,
}

/// Whether a reply shows that an engine itself wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineProof {
    /// `Server: Docker/…`, `Server: Libpod/…` or an `Api-Version` header.
    Proven,
    /// None of them.
    Unproven,
}

/// One request, from the connection to the reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Exchange {
    /// The write gate was closed before the first write call: no byte of the request was ever written.
    NeverWritten(NotWritten),
    /// The first write call was made: bytes may have left, however few are known to have.
    Written {
        /// Over which kind of connection.
        wire: Wire,
        /// Bytes that the write calls took, of the request in plain text.
        bytes: u64,
        /// What came back.
        reply: Reply,
    },
}

/// Why nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotWritten {
    /// The kind of cause.
    pub cause: NotWrittenCause,
    /// One line for people, such as `connecting to /run/docker.sock: permission denied`.
    pub detail: String,
}

/// The kinds of cause for which nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotWrittenCause {
    /// No connection to the engine: no socket, refused, permission, full backlog, handshake, time limit.
    Unreachable,
    /// Leadership of the interlock's term was gone or could not be confirmed.
    AuthorityLost,
    /// The dispatcher has accepted a higher term, or an equal or higher interlock of this container.
    Fenced,
    /// The dispatcher revoked the run.
    Revoked,
    /// The ticket was void: its dispatch-by had passed.
    TicketExpired,
    /// The container is no longer the incarnation of the interlock, or no longer fit to be restarted or started.
    IncarnationChanged,
    /// The container could not be looked at once more.
    Unreadable,
    /// The intent could not be written to the journal.
    JournalFailed,
    /// A hold stands.
    Held,
}

/// What came back for a request that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reply {
    /// Nothing, or not a whole reply.
    Lost(LostReply),
    /// A whole reply, head and body.
    Complete {
        /// The HTTP status.
        status: u16,
        /// Whether an engine itself wrote it.
        proof: EngineProof,
        /// The engine's text, bounded and harmless.
        message: String,
    },
}

/// How a reply was lost. None of these says anything about the effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LostReply {
    /// The status line, if that much arrived.
    pub status: Option<u16>,
    /// True if the client deadline ended the wait.
    pub timed_out: bool,
    /// One line for people.
    pub detail: String,
}

impl Exchange {
    /// True once the first write call was made, whatever it took.
    #[must_use]
    pub fn was_written(&self) -> bool {
        matches!(self, Self::Written { .. })
    }

    /// True if nothing of this exchange can still be on its way: it never began, or the engine's own reply is
    /// whole. What a proxy answers by itself says nothing of the request that it still holds.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        match self {
            Self::NeverWritten(_) => true,
            Self::Written { reply, .. } => {
                matches!(reply, Reply::Complete { proof: EngineProof::Proven, .. })
            }
        }
    }
}
