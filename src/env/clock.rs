//! The three clocks of a machine.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_gettime};

/// The clocks of one machine, each in whole milliseconds. The three never mix: an instant of one says
/// nothing on another.
pub trait Clock: Send + Sync {
    /// Time since some point in the past. It never steps back, and stands still while the machine is
    /// suspended (`CLOCK_MONOTONIC`).
    fn monotonic_ms(&self) -> u64;

    /// Time since 1970-01-01T00:00:00Z. It steps whenever somebody sets it.
    fn wall_ms(&self) -> u64;

    /// Like [`Clock::monotonic_ms`], but it goes on while the machine is suspended (`CLOCK_BOOTTIME`).
    fn boottime_ms(&self) -> u64;
}

/// The machine's own clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn monotonic_ms(&self) -> u64 {
        milliseconds(clock_gettime(ClockId::Monotonic))
    }

    fn wall_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn boottime_ms(&self) -> u64 {
        milliseconds(clock_gettime(ClockId::Boottime))
    }
}

fn milliseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_of_this_machine_do_not_step_back_between_two_looks() {
        let clock = SystemClock;
        let (monotonic, boottime) = (clock.monotonic_ms(), clock.boottime_ms());
        assert!(clock.monotonic_ms() >= monotonic);
        assert!(clock.boottime_ms() >= boottime);
    }

    #[test]
    fn the_boot_time_counts_at_least_what_the_monotonic_clock_counts() {
        let clock = SystemClock;
        let monotonic = clock.monotonic_ms();
        assert!(clock.boottime_ms() >= monotonic);
    }
}
