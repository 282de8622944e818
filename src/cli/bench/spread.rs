//! How long something took, many times over.

use std::time::Duration;

use serde::Serialize;

/// The middle and the slow end of many times, in microseconds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spread {
    /// Half of them took at most this.
    pub(super) p50_us: f64,
    /// All but one of a hundred took at most this.
    pub(super) p99_us: f64,
    /// How many there were.
    pub(super) count: usize,
}

impl Spread {
    pub(super) fn of(times: impl IntoIterator<Item = Duration>) -> Self {
        let mut times: Vec<Duration> = times.into_iter().collect();
        times.sort_unstable();
        let at = |hundredths: usize| {
            // The nearest rank: of 100 times, the 50th and the 99th.
            let rank = (times.len() * hundredths).div_ceil(100).max(1);
            times.get(rank - 1).map_or(0.0, |time| micros(*time))
        };
        Self { p50_us: at(50), p99_us: at(99), count: times.len() }
    }
}

/// Microseconds, with their fraction.
pub(super) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// So many in so long, as a rate per second.
pub(super) fn per_s(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_slow_end_are_the_nearest_ranks() {
        let spread = Spread::of((1..=200).rev().map(Duration::from_micros));
        assert_eq!((spread.p50_us.round(), spread.p99_us.round(), spread.count), (100.0, 198.0, 200));
        let one = Spread::of([Duration::from_micros(7)]);
        assert_eq!((one.p50_us.round(), one.p99_us.round()), (7.0, 7.0));
        assert_eq!(Spread::of([]).count, 0);
    }
}
