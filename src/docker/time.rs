//! The instants that engines write, and the same form for people.
//!
//! Docker writes Go's `time.RFC3339Nano`: UTC, up to nine digits of a second, closing zeros left out. Podman
//! writes the same, but with the offset of its own zone. A container that never started has Go's zero
//! time, or an empty field.

use jiff::Timestamp;

use super::reply::harmless;
use crate::model::{EngineInstant, StartedAt};

/// `0001-01-01T00:00:00Z`, Go's zero time, in seconds since 1970.
const ZERO_TIME_UNIX_S: i64 = -62_135_596_800;

/// How much of a text that is no instant is kept to be shown.
const KEPT_BYTES: usize = 64;

/// A text that is no instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an instant: write it as 2026-01-31T12:00:00.123456789Z")]
pub struct NotAnInstant(pub String);

/// Reads an RFC 3339 instant with `Z` or an offset, and up to nine digits of a second.
///
/// # Errors
///
/// [`NotAnInstant`] shows the form. Nothing is rounded or guessed: an instant that was read wrong could pass
/// for a later start.
pub fn parse_instant(text: &str) -> Result<EngineInstant, NotAnInstant> {
    let refused = || NotAnInstant(harmless(text, KEPT_BYTES));
    if !is_rfc3339(text) {
        return Err(refused());
    }
    let instant: Timestamp = text.parse().map_err(|_| refused())?;
    // `as_nanosecond` has one sign for the whole, so that instants before 1970 come out right.
    let nanos = instant.as_nanosecond();
    let unix_s = i64::try_from(nanos.div_euclid(1_000_000_000)).map_err(|_| refused())?;
    let fraction = u32::try_from(nanos.rem_euclid(1_000_000_000)).map_err(|_| refused())?;
    EngineInstant::new(unix_s, fraction).map_err(|_| refused())
}

/// Reads `State.StartedAt` (or `FinishedAt`) of an inspect.
#[must_use]
pub fn parse_started_at(text: &str) -> StartedAt {
    if text.is_empty() {
        return StartedAt::Empty;
    }
    match parse_instant(text) {
        Ok(instant) if instant.unix_s() == ZERO_TIME_UNIX_S && instant.nanos() == 0 => StartedAt::Zero,
        Ok(instant) => StartedAt::At(instant),
        Err(_) => StartedAt::Unreadable(harmless(text, KEPT_BYTES)),
    }
}

/// Writes an instant as Docker does: RFC 3339 in UTC, with as many digits of a second as it has.
///
/// [`parse_instant`] reads it back as the same instant.
#[must_use]
pub fn format_instant(instant: EngineInstant) -> String {
    match Timestamp::new(instant.unix_s(), i32::try_from(instant.nanos()).unwrap_or(0)) {
        Ok(timestamp) => timestamp.to_string(),
        // Beyond the year 9999; no engine writes that.
        Err(_) => instant.to_string(),
    }
}

/// `YYYY-MM-DDTHH:MM:SS[.fraction](Z|±HH:MM)`. The parser behind takes more than engines write (a space for
/// the `T`, a zone name, a 60th second): none of that may become evidence.
fn is_rfc3339(text: &str) -> bool {
    const SHAPE: &[u8] = b"dddd-dd-ddTdd:dd:dd";
    let fits = |bytes: &[u8], shape: &[u8]| {
        bytes.len() == shape.len()
            && bytes.iter().zip(shape).all(|(b, s)| if *s == b'd' { b.is_ascii_digit() } else { b == s })
    };
    let Some((head, rest)) = text.as_bytes().split_at_checked(SHAPE.len()) else { return false };
    let rest = match rest.strip_prefix(b".") {
        Some(rest) => {
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            if !(1..=9).contains(&digits) {
                return false;
            }
            &rest[digits..]
        }
        None => rest,
    };
    let leap_second = head.ends_with(b":60");
    let zone = rest == b"Z" || fits(rest, b"+dd:dd") || fits(rest, b"-dd:dd");
    fits(head, SHAPE) && zone && !leap_second
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(unix_s: i64, nanos: u32) -> StartedAt {
        StartedAt::At(EngineInstant::new(unix_s, nanos).unwrap())
    }

    #[test]
    fn each_form_that_docker_and_podman_write_is_read_to_the_nanosecond() {
        for (text, expected) in [
            ("2024-05-01T10:20:30.123456789Z", at(1_714_558_830, 123_456_789)),
            ("2024-05-01T10:20:30.1234567Z", at(1_714_558_830, 123_456_700)),
            ("2024-05-01T10:20:30.1Z", at(1_714_558_830, 100_000_000)),
            ("2024-05-01T10:20:30.000000001Z", at(1_714_558_830, 1)),
            ("2024-05-01T10:20:30Z", at(1_714_558_830, 0)),
            ("2024-05-01T12:20:30.123456789+02:00", at(1_714_558_830, 123_456_789)),
            ("2024-05-01T04:50:30.5-05:30", at(1_714_558_830, 500_000_000)),
            ("1969-12-31T23:59:59.5Z", at(-1, 500_000_000)),
            // Podman, in the zone of its machine: what Go leaves out of the fraction, and each kind of offset.
            ("2024-05-01T10:20:30.123456789+00:00", at(1_714_558_830, 123_456_789)),
            ("2024-05-01T16:05:30.000001+05:45", at(1_714_558_830, 1_000)),
            ("2024-05-01T00:20:30-10:00", at(1_714_558_830, 0)),
            ("2024-05-02T00:20:30.999999999+14:00", at(1_714_558_830, 999_999_999)),
            ("0001-01-01T00:00:00Z", StartedAt::Zero),
            ("0001-01-01T00:00:00+00:00", StartedAt::Zero),
            ("", StartedAt::Empty),
        ] {
            assert_eq!(parse_started_at(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_instant_is_never_guessed() {
        for text in [
            "yesterday",
            "2024-05-01",
            "2024-05-01T10:20:30",
            "2024-05-01 10:20:30Z",
            "2024-05-01T10:20:60Z",
            "2024-05-01T10:20:30.Z",
            "2024-05-01T10:20:30.1234567891Z",
            "2024-13-01T10:20:30Z",
            "2024-05-01T10:20:30Z[UTC]",
            "2024-05-01T10:20:30+02:00[Europe/Berlin]",
            " 2024-05-01T10:20:30Z",
            "2024-05-01T10:20:30.1½",
        ] {
            assert!(matches!(parse_started_at(text), StartedAt::Unreadable(_)), "{text:?} was read");
        }
    }

    #[test]
    fn a_text_that_is_no_instant_is_kept_short_and_harmless() {
        let StartedAt::Unreadable(kept) = parse_started_at(&format!("\x1b[2J{}", "x".repeat(5000))) else {
            panic!("it was read");
        };
        assert!(kept.len() <= KEPT_BYTES + '…'.len_utf8() && !kept.contains('\x1b'), "{kept:?}");
    }

    #[test]
    fn an_instant_is_written_as_docker_writes_it() {
        let write = |unix_s, nanos| format_instant(EngineInstant::new(unix_s, nanos).unwrap());
        assert_eq!(write(1_714_558_830, 123_456_789), "2024-05-01T10:20:30.123456789Z");
        assert_eq!(write(1_714_558_830, 120_000_000), "2024-05-01T10:20:30.12Z");
        assert_eq!(write(1_714_558_830, 0), "2024-05-01T10:20:30Z");
    }

    proptest! {
        #[test]
        fn an_instant_that_was_written_reads_back_as_itself(
            unix_s in -62_135_596_799_i64..253_000_000_000,
            nanos in 0_u32..1_000_000_000,
        ) {
            let instant = EngineInstant::new(unix_s, nanos).unwrap();
            prop_assert_eq!(parse_instant(&format_instant(instant)), Ok(instant));
            // As the ledger shows it, in a history.
            prop_assert_eq!(parse_instant(&instant.to_string()), Ok(instant));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,40}") {
            let _ = parse_started_at(&text);
        }
    }
}
