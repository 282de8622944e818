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

/// RFC 3339 in UTC, always with nine digits: `2026-11-30T16:03:27.000000500Z`.
impl fmt::Display for EngineInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.unix_s.div_euclid(86_400), self.unix_s.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{:09}Z", self.nanos)
    }
}

/// The date that lies so many days after 1970-01-01, in the proleptic Gregorian calendar.
///
/// The rule is `civil_from_days` of Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms": years
/// begin in March there, so that the leap day comes last, and 400 years have 146,097 days.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days.saturating_add(719_468);
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
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
    fn an_instant_is_shown_as_people_read_it() {
        let shown = |unix_s| EngineInstant::new(unix_s, 500).unwrap().to_string();
        assert_eq!(shown(0), "1970-01-01T00:00:00.000000500Z");
        assert_eq!(shown(-1), "1969-12-31T23:59:59.000000500Z");
        assert_eq!(shown(951_868_799), "2000-02-29T23:59:59.000000500Z");
        assert_eq!(shown(951_868_800), "2000-03-01T00:00:00.000000500Z");
        assert_eq!(shown(1_796_054_607), "2026-11-30T16:03:27.000000500Z");
    }

    #[test]
    fn a_stored_fraction_of_a_second_or_more_is_refused() {
        assert!(serde_json::from_str::<EngineInstant>(r#"{"unix_s":1,"nanos":1000000000}"#).is_err());
    }
}
