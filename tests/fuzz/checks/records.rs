//! The ledger's commands and records, as they are stored.

use std::fmt::Debug;

use relatch::ledger::{Outcome, Record, Stamped};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::same::nothing_is_lost;

/// What is read is written as it was, and reads back as itself.
pub fn check(data: &[u8]) {
    as_itself::<Stamped>(data);
    as_itself::<Outcome>(data);
    if let Some(record) = as_itself::<Record>(data) {
        let key = record.key().to_string();
        assert!(key.as_str() < "~", "{key:?} lies beyond the end of every family");
        assert!(!key.contains(char::is_control), "{key:?} is no text for a line");
    }
}

/// The value, if it is one.
pub fn as_itself<T: Serialize + DeserializeOwned + PartialEq + Debug>(data: &[u8]) -> Option<T> {
    let value: T = serde_json::from_slice(data).ok()?;
    let written = serde_json::to_vec(&value).expect("a stored form is JSON");
    nothing_is_lost(data, &written);
    match serde_json::from_slice::<T>(&written) {
        Ok(again) => assert_eq!(again, value),
        Err(error) => panic!("{error}: {} is not read back", String::from_utf8_lossy(&written)),
    }
    Some(value)
}
