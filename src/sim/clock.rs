//! The engine's wall clock: real time, read so that no two readings are equal.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicI64, Ordering},
};

use jiff::Timestamp;

/// What dockerd writes where a time has never been set.
pub(crate) const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// Real wall-clock time plus a scripted offset. Instants for `StartedAt` are strictly increasing even if the
/// machine's clock is coarse or steps back, unless the script itself moves the offset back.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    last_nanos: Mutex<i128>,
    offset_ms: AtomicI64,
}

impl Clock {
    /// The time now, later than every earlier reading.
    pub(crate) fn next(&self) -> Timestamp {
        let mut last = self.last_nanos.lock().unwrap_or_else(PoisonError::into_inner);
        let offset = i128::from(self.offset_ms.load(Ordering::Relaxed)) * 1_000_000;
        let nanos = (Timestamp::now().as_nanosecond() + offset).max(*last + 1);
        *last = nanos;
        Timestamp::from_nanosecond(nanos).unwrap_or(Timestamp::MAX)
    }

    /// Moves the engine's clock against the machine's. A step back takes effect at once: it is meant as a fault.
    pub(crate) fn set_offset_ms(&self, offset_ms: i64) {
        let mut last = self.last_nanos.lock().unwrap_or_else(PoisonError::into_inner);
        self.offset_ms.store(offset_ms, Ordering::Relaxed);
        *last = 0;
    }
}

/// RFC 3339 with nine digits of fraction. dockerd trims trailing zeros; a full nanosecond field is as valid and
/// makes the texts sort.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.9fZ").to_string()
}

/// The form of the HTTP `Date` header.
pub(crate) fn http_date(time: Timestamp) -> String {
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
