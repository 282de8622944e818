//! A way into this module for `tests/fuzz` alone: a record of the journal is read, and written again.

use super::journal::rewrite_record;

/// Reads a record that stood under `key`, and writes it: under its key, as it is stored.
///
/// # Errors
///
/// Why it is refused.
pub fn rewrite(key: &str, stored: &[u8]) -> Result<(String, Vec<u8>), String> {
    rewrite_record(key, stored).map_err(|error| error.to_string())
}
