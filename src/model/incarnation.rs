//! One life of one container, and the instant at which the engine says it began.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::{ContainerId, EngineId};

/// An instant on an engine's own clock, to the nanosecond. Comparable with others of the same engine only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, try_from = "RawInstant")]
pub struct EngineInstant {
    unix_s: i64,
    nanos: u32,
}

/// A fraction of a second that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{nanos} ns is not a fraction of a second: it must be below 1,000,000,000")]
pub struct InvalidInstant {
    /// What was given.
    pub nanos: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInstant {
    unix_s: i64,
    nanos: u32,
}

impl TryFrom<RawInstant> for EngineInstant {
    type Error = InvalidInstant;
    fn try_from(raw: RawInstant) -> Result<Self, InvalidInstant> {
        Self::new(raw.unix_s, raw.nanos)
    }
}

impl EngineInstant {
    /// Seconds since 1970-01-01T00:00:00Z, and nanoseconds after that second.
    ///
    /// # Errors
    ///
    /// [`InvalidInstant`] for a second or more of nanoseconds.
    pub fn new(unix_s: i64, nanos: u32) -> Result<Self, InvalidInstant> {
        if nanos < 1_000_000_000 { Ok(Self { unix_s, nanos }) } else { Err(InvalidInstant { nanos }) }
    }

    /// Seconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn unix_s(self) -> i64 {
        self.unix_s
    }

    /// Nanoseconds after that second.
    #[must_use]
    pub fn nanos(self) -> u32 {
        self.nanos
    }
}

/// What an engine wrote as `State.StartedAt`.
///
/// Only [`StartedAt::At`] can ever be evidence; each of the others is uncertain for a reason of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StartedAt {
    /// An instant.
    At(EngineInstant),
    /// Go's zero time, `0001-01-01T00:00:00Z`: never started.
    Zero,
    /// An empty or missing field.
    Empty,
    /// Text that is no instant, kept (bounded) to be shown.
    Unreadable(String),
}

impl StartedAt {
    /// The instant, where there is one.
    #[must_use]
    pub fn instant(&self) -> Option<EngineInstant> {
        match self {
            Self::At(instant) => Some(*instant),
            Self::Zero | Self::Empty | Self::Unreadable(_) => None,
        }
    }
}

/// One life of one container: engine id, full container id and `StartedAt`, read over one connection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incarnation {
    /// The engine that runs it.
    pub engine_id: EngineId,
    /// Its full id.
    pub container_id: ContainerId,
    /// When this life began, on the engine's clock.
    pub started_at: EngineInstant,
}

impl fmt::Display for EngineInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.unix_s, self.nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_nanosecond_later_is_later() {
        let a = EngineInstant::new(1_700_000_000, 999_999_998).unwrap();
        let b = EngineInstant::new(1_700_000_000, 999_999_999).unwrap();
        let c = EngineInstant::new(1_700_000_001, 0).unwrap();
        assert!(a < b && b < c);
    }

    #[test]
    fn a_stored_fraction_of_a_second_or_more_is_refused() {
        assert!(serde_json::from_str::<EngineInstant>(r#"{"unix_s":1,"nanos":1000000000}"#).is_err());
    }
}
