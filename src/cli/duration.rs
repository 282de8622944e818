//! Lengths of time as people type them: `10s`, `1m30s`, `500ms`.

use std::time::Duration;

const UNITS: &[(&str, u64)] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// Reads one or more numbers, each with its unit, larger units first.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let shape = || format!("{text:?} is no length of time: write it as 10s, 1m30s, 2h or 500ms");
    let mut rest = text;
    let mut total_ms: u64 = 0;
    let mut smaller_than = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let letters = rest[digits..].bytes().take_while(u8::is_ascii_alphabetic).count();
        let (number, unit) = (&rest[..digits], &rest[digits..digits + letters]);
        let number: u64 = number.parse().map_err(|_| shape())?;
        let unit_ms = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ms)| *ms).ok_or_else(shape)?;
        if unit_ms >= smaller_than {
            return Err(shape());
        }
        smaller_than = unit_ms;
        total_ms = number.checked_mul(unit_ms).and_then(|ms| total_ms.checked_add(ms)).ok_or_else(shape)?;
        rest = &rest[digits + letters..];
    }
    if smaller_than == u64::MAX { Err(shape()) } else { Ok(Duration::from_millis(total_ms)) }
}

/// Reads a grace: the engine takes whole seconds.
pub(super) fn parse_whole_seconds(text: &str) -> Result<u32, String> {
    let duration = parse(text)?;
    if duration.subsec_nanos() != 0 {
        return Err(format!("{text:?} is not whole seconds, and the engine takes no fraction"));
    }
    u32::try_from(duration.as_secs()).map_err(|_| format!("{text:?} is far above any limit"))
}

/// Writes a length of time for people: two units at most.
pub(super) fn show(duration: Duration) -> String {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 if ms.is_multiple_of(1_000) => format!("{}s", ms / 1_000),
        1_000..60_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => two(ms / 60_000, "m", ms % 60_000 / 1_000, "s"),
        3_600_000.. => two(ms / 3_600_000, "h", ms % 3_600_000 / 60_000, "m"),
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_time_has_units() {
        for (text, ms) in [
            ("0s", 0),
            ("10s", 10_000),
            ("1m", 60_000),
            ("1m30s", 90_000),
            ("500ms", 500),
            ("2h1m", 7_260_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn what_is_no_length_of_time_is_refused_with_an_example() {
        for text in
            ["", "10", "s", "1.5s", "-1s", "10 s", "1s1m", "1s1s", "1d", "99999999999999999999s", "5µs"]
        {
            let error = parse(text).unwrap_err();
            assert!(error.contains("1m30s"), "{text:?}: {error}");
        }
        assert!(parse("9999999999999999h").is_err(), "it does not fit and was taken");
    }

    #[test]
    fn a_grace_is_whole_seconds() {
        assert_eq!(parse_whole_seconds("1m"), Ok(60));
        assert!(parse_whole_seconds("1500ms").is_err());
        assert!(parse_whole_seconds("9999999h").is_err());
    }

    #[test]
    fn a_length_of_time_is_shown_in_two_units_at_most() {
        for (ms, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1s"),
            (1_550, "1.5s"),
            (90_000, "1m30s"),
            (600_000, "10m"),
            (3_661_000, "1h1m"),
        ] {
            assert_eq!(show(Duration::from_millis(ms)), text);
        }
    }
}
