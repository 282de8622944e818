//! What Raft keeps: owner, vote, places, memberships, and the log with its commands.

use relatch::consensus::fuzzing::{Form, rewrite};

use super::same::nothing_is_lost;

/// What is read is written as it was, and reads back as itself.
pub fn check(data: &[u8]) {
    for form in Form::ALL {
        let Ok(written) = rewrite(form, data) else { continue };
        nothing_is_lost(data, &written);
        let again = rewrite(form, &written).unwrap_or_else(|error| {
            panic!("{form:?} {} is not read: {error}", String::from_utf8_lossy(&written))
        });
        assert!(again == written, "{form:?} has two forms: {}", String::from_utf8_lossy(&again));
    }
}
