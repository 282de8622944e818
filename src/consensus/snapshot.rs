//! A snapshot: the ledger's records in a file of JSON lines.
//!
//! The first line says whose state it is and up to which entry; then one line for each record; the last line
//! holds the number of records and the SHA-256 of every byte before it. Whatever does not check out, in
//! checksum, cluster, count or form, is refused before anything is changed.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::stored::{StoredConfiguration, StoredLogId};
use super::type_config::{SnapshotMeta, TypeConfig};
use crate::ledger::Record;
use crate::model::{ClusterId, hex};
use crate::storage::StorageError;

/// The newest form that this build knows.
const FORMAT: u32 = 1;

/// A snapshot's file, open for reading. It stays readable when a newer one takes its name.
#[derive(Debug)]
pub struct SnapshotFile {
    pub(super) file: File,
    pub(super) path: PathBuf,
}

/// A snapshot, as the library hands it around.
pub(super) type Snapshot = openraft::type_config::alias::SnapshotOf<TypeConfig, SnapshotFile>;

/// What a snapshot says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    format: u32,
    pub(super) cluster: ClusterId,
    /// The last entry that it contains.
    pub(super) last: Option<StoredLogId>,
    pub(super) membership: StoredConfiguration,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Header(Header),
    Record(Stored),
    End(End),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    key: String,
    record: Record,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    records: u64,
    sha256: String,
}

impl Header {
    pub(super) fn new(
        cluster: ClusterId,
        last: Option<StoredLogId>,
        membership: StoredConfiguration,
    ) -> Self {
        Self { format: FORMAT, cluster, last, membership }
    }

    /// What Raft knows the snapshot by.
    pub(super) fn meta(&self) -> Result<SnapshotMeta, String> {
        Ok(SnapshotMeta {
            last_log_id: self.last.map(Into::into),
            last_membership: self.membership.clone().try_into()?,
        })
    }
}

/// Writes a snapshot's lines.
pub(super) struct Writer<W> {
    out: W,
    hash: Sha256,
    records: u64,
}

impl<W: Write> Writer<W> {
    pub(super) fn begin(out: W, header: Header) -> io::Result<Self> {
        let mut writer = Self { out, hash: Sha256::new(), records: 0 };
        writer.line(&Line::Header(header))?;
        Ok(writer)
    }

    pub(super) fn record(&mut self, key: String, record: Record) -> io::Result<()> {
        self.records += 1;
        self.line(&Line::Record(Stored { key, record }))
    }

    pub(super) fn end(mut self) -> io::Result<W> {
        let end = End { records: self.records, sha256: hex(&self.hash.clone().finalize()) };
        self.line(&Line::End(end))?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.hash.update(&text);
        self.out.write_all(&text)
    }
}

impl SnapshotFile {
    /// Opens a snapshot's file.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, StorageError> {
        let file = File::open(path).map_err(|error| StorageError::failed("opening", path, error))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// What it says of itself. Nothing but the first line is checked.
    pub(super) fn header(&mut self) -> Result<Header, StorageError> {
        let mut lines = self.lines()?;
        match lines.next()? {
            Some(Line::Header(header)) => lines.own(header),
            _ => Err(lines.malformed("it does not begin with a header")),
        }
    }

    /// Checks that it is this cluster's, complete, and as it was written, without a look into its records.
    pub(super) fn check(&mut self, cluster: &ClusterId) -> Result<Header, StorageError> {
        let header = self.header()?;
        let mut lines = self.lines()?;
        if header.cluster != *cluster {
            let detail = format!("it is of cluster {}, this node of cluster {cluster}", header.cluster);
            return Err(lines.malformed(&detail));
        }
        let mut hash = Sha256::new();
        let mut last = Vec::new();
        while let Some(text) = lines.next_text()? {
            hash.update(&last);
            last = text;
        }
        let Line::End(end) = lines.parse(&last)? else {
            return Err(lines.malformed("it ends before its last line: it was cut"));
        };
        if end.sha256 != hex(&hash.finalize()) || end.records.checked_add(2) != Some(lines.count) {
            return Err(lines.malformed("its checksum does not match: it was damaged"));
        }
        Ok(header)
    }

    /// Checks the whole of it, and reads its records.
    pub(super) fn read(
        &mut self,
        cluster: &ClusterId,
    ) -> Result<(Header, Vec<(String, Record)>), StorageError> {
        let header = self.check(cluster)?;
        let mut lines = self.lines()?;
        let mut records = Vec::new();
        while let Some(line) = lines.next()? {
            match line {
                Line::Record(stored) => records.push((stored.key, stored.record)),
                Line::Header(_) if lines.count == 1 => {}
                Line::End(end) if Some(lines.count) == end.records.checked_add(2) => {}
                Line::Header(_) | Line::End(_) => {
                    return Err(lines.malformed("a header or an end stands among its records"));
                }
            }
        }
        Ok((header, records))
    }

    fn lines(&mut self) -> Result<Lines<'_>, StorageError> {
        self.file.rewind().map_err(|error| StorageError::failed("reading", &self.path, error))?;
        Ok(Lines { path: &self.path, input: BufReader::new(&self.file), count: 0 })
    }
}

/// Reads line after line.
struct Lines<'a> {
    path: &'a Path,
    input: BufReader<&'a File>,
    count: u64,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<Option<Line>, StorageError> {
        self.next_text()?.map(|text| self.parse(&text)).transpose()
    }

    fn next_text(&mut self) -> Result<Option<Vec<u8>>, StorageError> {
        let mut text = Vec::new();
        self.input
            .read_until(b'\n', &mut text)
            .map_err(|error| StorageError::failed("reading", self.path, error))?;
        if text.is_empty() {
            return Ok(None);
        }
        self.count += 1;
        if text.last() != Some(&b'\n') {
            return Err(self.malformed("it ends within a line: it was cut"));
        }
        Ok(Some(text))
    }

    fn parse(&self, text: &[u8]) -> Result<Line, StorageError> {
        serde_json::from_slice(text).map_err(|error| self.malformed(&error.to_string()))
    }

    fn own(&self, header: Header) -> Result<Header, StorageError> {
        if header.format == FORMAT {
            return Ok(header);
        }
        Err(self.malformed(&format!(
            "it has format {}, this build knows {FORMAT}: upgrade this node",
            header.format
        )))
    }

    fn malformed(&self, detail: &str) -> StorageError {
        let detail = format!("snapshot, line {}: {detail}", self.count);
        StorageError::Malformed { path: self.path.to_owned(), detail }
    }
}
