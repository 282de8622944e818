//! Ways into this module for `tests/fuzz` alone: what people type, and what is shown to them.

use std::time::Duration;

use super::recover::parse_expect;
use super::{duration, text};
use crate::model::{ContainerId, EngineInstant};

/// Reads a length of time.
///
/// # Errors
///
/// How one is written.
pub fn duration(text: &str) -> Result<Duration, String> {
    duration::parse(text)
}

/// Reads a grace, in whole seconds.
///
/// # Errors
///
/// How one is written.
pub fn grace_s(text: &str) -> Result<u32, String> {
    duration::parse_whole_seconds(text)
}

/// Writes a length of time.
#[must_use]
pub fn show(length: Duration) -> String {
    duration::show(length)
}

/// Reads `--expect`.
///
/// # Errors
///
/// How it is written.
pub fn expect(text: &str) -> Result<(ContainerId, EngineInstant), String> {
    parse_expect(text).map(|expect| (expect.container_id, expect.started_at))
}

/// A text of foreign origin as a terminal gets it.
#[must_use]
pub fn plain(text: &str) -> String {
    text::plain(text)
}
