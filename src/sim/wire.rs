//! What the script can do to the wire: what is said, how much of it arrives, and how a request is cut.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How the engine leaves an exchange that it does not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum End {
    /// Close in order.
    #[default]
    Fin,
    /// Reset. Over TCP always a RST. A unix socket has none: there the client sees `ECONNRESET` if bytes of its
    /// request were left unread, and an end of stream otherwise, exactly as when a daemon is killed.
    Rst,
    /// Keep the connection open and say nothing more, until the client leaves or the engine is shut down.
    Stall,
}

/// How long something waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Hold {
    /// This many milliseconds.
    Ms(u64),
    /// Until the gate of this name is released. A released gate stays open.
    Until(String),
}

/// What the engine says.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Reply {
    /// What follows from the effect.
    #[default]
    Normal,
    /// This status, whatever the effect was.
    Status(StatusReply),
    /// The normal reply with some headers or JSON fields changed.
    Edited(Edit),
    /// dockerd's 400 to a client whose API version is below its floor.
    VersionRefused {
        /// The floor that the text names, such as `1.44`.
        minimum: String,
    },
    /// Bytes that need not be HTTP. Each character below U+0100 is one byte; others are sent as UTF-8.
    Raw {
        /// The bytes.
        text: String,
    },
}

/// A scripted status.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusReply {
    /// The status code.
    pub status: u16,
    /// Text for `{"message": …}`.
    #[serde(default)]
    pub message: Option<String>,
    /// The body as it is, instead of a message.
    #[serde(default)]
    pub body: Option<String>,
    /// Headers beside, or in place of, the engine's own.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The reply is a proxy's: none of the engine's headers.
    #[serde(default)]
    pub proxy: bool,
}

/// Changes to a normal reply.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// Headers to leave out, by name in any case.
    #[serde(default)]
    pub without_headers: Vec<String>,
    /// Headers to add or replace.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Values to put into the JSON body, by JSON pointer (`/State/StartedAt`). The parent must exist.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// Fields to take out of the JSON body, by JSON pointer.
    #[serde(default)]
    pub unset: Vec<String>,
}

/// How much of the reply reaches the client.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Delivery {
    /// All of it.
    #[default]
    Whole,
    /// Not a byte.
    Nothing {
        /// What comes instead.
        #[serde(default)]
        end: End,
    },
    /// The first half of the status line and headers.
    HalfHead {
        /// What comes then.
        #[serde(default)]
        end: End,
    },
    /// The whole head and the first half of the body.
    HalfBody {
        /// What comes then.
        #[serde(default)]
        end: End,
    },
    /// The first `count` bytes, or all if there are fewer.
    Bytes {
        /// How many.
        count: usize,
        /// What comes then.
        #[serde(default)]
        end: End,
    },
    /// All of it, a few bytes at a time.
    Drip {
        /// The pause before each piece.
        interval_ms: u64,
        /// The size of a piece; 0 is read as 1.
        #[serde(default)]
        bytes: usize,
    },
}

/// Stops reading a request on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CutRequest {
    /// How many bytes are read, exactly. A container's rule needs the request line to know its container, so it
    /// reads at least that; a request that ends earlier is cut at its end.
    pub after_bytes: u64,
    /// What comes then.
    #[serde(default)]
    pub end: End,
}

/// How a connection is treated before its request is whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionRule {
    /// A name for the log.
    #[serde(default)]
    pub name: Option<String>,
    /// Matches a request with this method, as soon as the method is read; without one it matches a connection as it
    /// is accepted.
    #[serde(default)]
    pub method: Option<String>,
    /// How many matches pass it by first.
    #[serde(default)]
    pub skip: u32,
    /// How many it treats before it is spent.
    #[serde(default = "once")]
    pub times: u32,
    /// It is never spent; `times` is ignored.
    #[serde(default)]
    pub forever: bool,
    /// It matches nothing before this long after it was installed.
    #[serde(default)]
    pub after_ms: u64,
    /// What is done.
    pub fault: ConnectionFault,
}

/// What is done to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ConnectionFault {
    /// It is ended as it is accepted, whether or not anything was sent.
    CloseAtOnce {
        /// How.
        #[serde(default)]
        end: End,
    },
    /// It is ended after exactly so many bytes of a request. With 0 it waits for the first byte and leaves it unread.
    CutRequest {
        /// How many bytes are read. A rule on a method has read the method and one space at least.
        after_bytes: u64,
        /// How.
        #[serde(default)]
        end: End,
    },
}

fn once() -> u32 {
    1
}
