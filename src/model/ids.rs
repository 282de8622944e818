//! Identities. Each is a type of its own, so that no two can be mistaken for each other.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is not an identity of the kind named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {} is not valid: {rule}", excerpt(value))]
pub struct InvalidId {
    /// What the text was to be, as in `container id`.
    pub kind: &'static str,
    /// The text itself.
    pub value: String,
    /// The rule that it breaks.
    pub rule: &'static str,
}

/// As much of a wrong text as an error shows: whoever reads the rule knows what they sent.
#[must_use]
pub fn excerpt(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

/// How many characters of a wrong text an error shows.
const SHOWN_CHARS: usize = 100;

// Ids are copied into every index and every event: a copy shares the text.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $rule:literal, $valid:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text against the rule of its kind.
            ///
            /// # Errors
            ///
            /// [`InvalidId`] names the rule that the text breaks.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidId> {
                let text = text.as_ref();
                let valid: fn(&str) -> bool = $valid;
                if valid(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(InvalidId { kind: $kind, value: text.to_owned(), rule: $rule })
                }
            }

            /// The identity as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                // Straight into its place: a start reads millions of them.
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("a ", $kind))
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        $name::new(text).map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }
    };
}

fn lower_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn printable(text: &str, longest: usize) -> bool {
    !text.is_empty() && text.len() <= longest && text.bytes().all(|b| b.is_ascii_graphic())
}

text_id!(
    /// A cluster, minted once when it is made. Two clusters never share one.
    ClusterId, "cluster id", "it is 32 lower-case hex digits", |t| lower_hex(t, 32)
);
text_id!(
    /// One decision about one target, or one approved start within a run: to a dispatcher, both are orders.
    /// Random, minted by the proposer (a start's may be the caller's).
    RunId, "run id", "it is 32 lower-case hex digits", |t| lower_hex(t, 32)
);
text_id!(
    /// One hold. Random, minted by whoever asks for it.
    HoldId, "hold id", "it is 32 lower-case hex digits", |t| lower_hex(t, 32)
);
text_id!(
    /// One life of one process: it changes at every start.
    ProcessNonce, "process nonce", "it is 32 lower-case hex digits", |t| lower_hex(t, 32)
);
text_id!(
    /// A dispatcher's journal. Minted with the journal; a lost journal comes back under another.
    JournalId, "journal id", "it is 32 lower-case hex digits", |t| lower_hex(t, 32)
);
text_id!(
    /// A container's full id, as Docker mints it. A name or a short id is never one.
    ContainerId, "container id", "it is the full id of 64 lower-case hex digits", |t| lower_hex(t, 64)
);
/// The shortest beginning of a container's id that stands for it, as `docker ps` prints it.
const SHORT_ID: usize = 12;

impl ContainerId {
    /// True if the text is this id, or a beginning of it that is long enough to stand for it.
    #[must_use]
    pub fn answers_to(&self, text: &str) -> bool {
        text.len() >= SHORT_ID && self.0.starts_with(text)
    }
}

text_id!(
    /// What the engine calls itself (`/info`, `ID`).
    EngineId, "engine id", "it is 1 to 256 printable ASCII characters without spaces", |t| printable(t, 256)
);
text_id!(
    /// The caller's own name for a request. The same id means the same request, however often it arrives.
    RequestId, "request id", "it is 1 to 128 printable ASCII characters without spaces", |t| printable(t, 128)
);
text_id!(
    /// A Docker Engine's unique name in the cluster.
    HostName, "host name",
    "it is 1 to 63 of a-z, 0-9, '.', '_' and '-', and begins with a letter or digit",
    |t| {
        t.len() <= 63
            && t.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && t.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'))
    }
);

/// One node of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_container_id_is_refused_with_the_rule() {
        let error = ContainerId::new("abc123").unwrap_err();
        assert_eq!(
            error.to_string(),
            "container id \"abc123\" is not valid: it is the full id of 64 lower-case hex digits"
        );
    }

    #[test]
    fn an_error_shows_the_beginning_of_a_long_text_and_the_whole_rule() {
        let error = HostName::new("ä".repeat(60_000)).unwrap_err().to_string();
        assert!(error.len() < 500, "{} bytes", error.len());
        assert!(error.contains("ä\"… is not valid: it is 1 to 63"), "{error}");
    }

    #[test]
    fn an_identity_that_was_stored_is_checked_when_it_is_read() {
        assert!(serde_json::from_str::<RunId>("\"nonsense\"").is_err());
        let id = RunId::new("0123456789abcdef0123456789abcdef").unwrap();
        let text = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<RunId>(&text).unwrap(), id);
    }

    #[test]
    fn a_host_name_has_no_slash_and_no_capital() {
        assert!(HostName::new("edge-1").is_ok());
        for bad in ["", "Edge", "a/b", "-a", "ä"] {
            assert!(HostName::new(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
