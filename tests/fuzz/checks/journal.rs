//! The records of a dispatcher's journal.

use relatch::dispatch::fuzzing::rewrite;

use super::same::nothing_is_lost;

/// A first line that is the key of a record, and the record itself; or a record alone, under each kind of key.
pub fn check(data: &[u8]) {
    if let Some(end) = data.iter().position(|byte| *byte == b'\n')
        && let Ok(key) = std::str::from_utf8(&data[..end])
    {
        record(key, &data[end + 1..]);
    }
    for key in ["head".to_owned(), format!("floor/{}", "1".repeat(64)), format!("run/{}", "2".repeat(32))] {
        record(&key, data);
    }
}

fn record(key: &str, stored: &[u8]) {
    let Ok((written_key, written)) = rewrite(key, stored) else { return };
    assert_eq!(written_key, key);
    nothing_is_lost(stored, &written);
    assert_eq!(rewrite(key, &written), Ok((written_key, written.clone())));
}
