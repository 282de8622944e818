//! Ways into this module for `tests/fuzz` alone: what an old disk holds is read, and written again.

use std::fs::File;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::snapshot::{Header, SnapshotFile, Writer};
use super::stored::{
    StoredConfiguration, StoredEntry, StoredLogId, StoredMembers, StoredOwner, StoredVote, encode,
};
use super::type_config::{StoredMembership, Vote};
use crate::ledger::Record;
use crate::model::ClusterId;

/// The forms in which Raft's part of the database is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Whose data it is.
    Owner,
    /// The place of an entry.
    LogId,
    /// A vote.
    Vote,
    /// A membership.
    Configuration,
    /// An entry of the log, its command included.
    Entry,
}

impl Form {
    /// Every form.
    pub const ALL: [Self; 5] = [Self::Owner, Self::LogId, Self::Vote, Self::Configuration, Self::Entry];
}

/// Reads a stored form, takes it through the library's own type, and writes it.
///
/// # Errors
///
/// Why it is refused.
pub fn rewrite(form: Form, stored: &[u8]) -> Result<Vec<u8>, String> {
    match form {
        Form::Owner => read::<StoredOwner>(stored).map(written),
        Form::LogId => read::<StoredLogId>(stored).map(|id| written(StoredLogId::from(&id.into()))),
        Form::Vote => read::<StoredVote>(stored).map(|vote| written(StoredVote::from(&Vote::from(vote)))),
        Form::Configuration => {
            let membership = StoredMembership::try_from(read::<StoredConfiguration>(stored)?)?;
            Ok(written(StoredConfiguration::from(&membership)))
        }
        Form::Entry => {
            let entry = read::<StoredEntry>(stored)?.into_entry()?;
            Ok(written(StoredEntry::from(entry)))
        }
    }
}

fn read<T: DeserializeOwned>(stored: &[u8]) -> Result<T, String> {
    serde_json::from_slice(stored).map_err(|error| error.to_string())
}

fn written(value: impl Serialize) -> Vec<u8> {
    encode(&value)
}

/// A snapshot that was read and checked, as it is written again.
#[derive(Debug)]
pub struct ReadAgain {
    /// All of it, as this build writes it.
    pub bytes: Vec<u8>,
    /// Its records, by the keys under which they stood.
    pub records: Vec<(String, Record)>,
}

/// Reads a whole snapshot as an installation does, and writes it again.
///
/// # Errors
///
/// Why it is refused.
pub fn read_snapshot(file: File, cluster: &ClusterId) -> Result<ReadAgain, String> {
    let mut file = SnapshotFile { file, path: PathBuf::from("snapshot") };
    let (header, records) = file.read(cluster).map_err(|error| error.to_string())?;
    header.meta()?;
    let bytes = write(header, &records);
    Ok(ReadAgain { bytes, records })
}

/// The snapshot of these records.
#[must_use]
pub fn write_snapshot(cluster: &ClusterId, records: &[(String, Record)]) -> Vec<u8> {
    let members = StoredMembers::from(StoredMembership::default().membership());
    let membership = StoredConfiguration { entry: None, members };
    write(Header::new(cluster.clone(), Some(StoredLogId { term: 1, index: 1 }), membership), records)
}

fn write(header: Header, records: &[(String, Record)]) -> Vec<u8> {
    let write = || {
        let mut writer = Writer::begin(Vec::new(), header)?;
        for (key, record) in records {
            writer.record(key.clone(), record.clone())?;
        }
        writer.end()
    };
    write().expect("writing into memory cannot fail")
}
