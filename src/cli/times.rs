//! Instants and lengths of time, for people.

use std::time::Duration;

use prost_types::Timestamp;

use super::duration;
use crate::docker::format_instant;
use crate::model::EngineInstant;

/// A node's time: to the millisecond, so that a column of them is one.
pub(super) fn time(at: Option<&Timestamp>) -> String {
    let Some(at) = at.and_then(engine_instant) else { return "?".into() };
    let text = at.to_string();
    // Six of its nine digits, and the Z.
    text.get(..text.len().saturating_sub(7)).map_or_else(|| "?".into(), |text| format!("{text}Z"))
}

/// An engine's instant, as Docker writes it.
pub(super) fn instant(at: &Timestamp) -> String {
    engine_instant(at).map_or_else(|| "?".into(), format_instant)
}

fn engine_instant(at: &Timestamp) -> Option<EngineInstant> {
    EngineInstant::new(at.seconds, u32::try_from(at.nanos).unwrap_or(0)).ok()
}

/// A length of time.
pub(super) fn length(duration: &prost_types::Duration) -> String {
    duration::show(Duration::try_from(*duration).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_one_column_have_as_many_digits_and_a_start_has_those_of_the_engine() {
        let at = |nanos| Timestamp { seconds: 1_714_558_830, nanos };
        assert_eq!(time(Some(&at(100_000_000))), "2024-05-01T10:20:30.100Z");
        assert_eq!(time(Some(&at(0))), "2024-05-01T10:20:30.000Z");
        assert_eq!(instant(&at(100_000_007)), "2024-05-01T10:20:30.100000007Z");
    }
}
