//! `identity.json`: whose data a directory holds.

use relatch::storage::fuzzing::{read_identity, store_identity};

use super::same::nothing_is_lost;

/// What is read is stored as it was, and reads back as itself.
pub fn check(data: &[u8]) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("identity.json");
    std::fs::write(&path, data).expect("writing the file");
    let Ok(identity) = read_identity(&path) else { return };
    let identity = identity.expect("it is there");
    store_identity(&identity, &path).expect("storing it");
    nothing_is_lost(data, &std::fs::read(&path).expect("reading the file"));
    assert_eq!(read_identity(&path).expect("it is read back"), Some(identity));
}
