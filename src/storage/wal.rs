//! Reads RocksDB's write-ahead logs, and the log of its files (the manifest), before RocksDB does, and says where
//! one is damaged.
//!
//! RocksDB drops a log's torn tail by itself, but only where the file was cut. A tail of zeros, which a file system
//! leaves after a loss of power when a file's length reached the disk before its content, it takes for damage; and
//! damage that looks like a cut, such as a flipped bit in a record's length, it takes for a tail, and drops every
//! acknowledged record after it. Here the two are told apart:
//!
//! * a *torn tail* ends where the file ends, in zeros or in the middle of a record, and no whole record follows.
//!   Nobody was told of it, since what is acknowledged was synced. It is cut off. Should it come back with the next
//!   loss of power, then RocksDB needs that log no more: it begins no new one before it has stored what was in it.
//! * anything else is *damage*: the database is refused, with the file and the offset.
//!
//! Where RocksDB refuses the database all the same, what was cut off is put back ([`Cut::undo`]).
//!
//! An older log is RocksDB's to judge where it is torn: what it is still needed for, and how long it was when the next
//! one was begun, stands in the manifest and in the next log (`track_and_verify_wals`).
//!
//! The format (RocksDB's `db/log_format.h`): blocks of 32 KiB; in them records of a masked CRC-32C (4 bytes), a
//! length (2 bytes, little-endian), a type (1 byte), and as many bytes as the length says. The checksum is over
//! type and bytes. What is left of a block and too short for a header is zero.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::error::StorageError;

const BLOCK: usize = 32 << 10;
const HEADER: usize = 7;

/// Checks every log of the database at `path`, and cuts off a torn tail. Nobody writes to it meanwhile.
///
/// # Errors
///
/// [`StorageError::Damaged`], and nothing was changed then; [`StorageError::Failed`].
pub(super) fn mend_tail(path: &Path) -> Result<Vec<Cut>, StorageError> {
    let logs = logs(path)?;
    let current = path.join("CURRENT");
    let manifest = fs::read_to_string(&current).map(|name| path.join(name.trim_end()));
    let manifest = manifest.ok().filter(|manifest| manifest.is_file());
    // RocksDB would begin anew in its place, and at the start after that delete what it finds there. A first start
    // that was ended makes it before any of these.
    if manifest.is_none()
        && let Some(data) = of_kind(path, "sst")?.into_iter().chain(logs.clone()).find(|file| !is_empty(file))
    {
        let detail = format!("it names no list of files that is there, and {} is there", data.display());
        return Err(StorageError::Damaged { path: current, offset: 0, detail });
    }
    let mut torn = Vec::new();
    for log in logs.iter().chain(&manifest) {
        let content = fs::read(log).map_err(|error| StorageError::failed("reading", log, error))?;
        match examine(&content) {
            Verdict::Whole => {}
            Verdict::Damaged { offset } => {
                let detail = "a record there does not match its checksum".to_owned();
                return Err(StorageError::Damaged { path: log.clone(), offset: offset as u64, detail });
            }
            Verdict::Torn { .. } if later(&logs, log).any(|other| !is_empty(other)) => {}
            Verdict::Torn { offset } => {
                torn.push(Cut { file: log.clone(), offset: offset as u64, tail: content[offset..].to_vec() });
            }
        }
    }
    for Cut { file, offset, tail } in &torn {
        tracing::warn!(
            log = %file.display(),
            offset,
            bytes = tail.len(),
            "cutting off a torn tail, as a crash leaves it: nobody was told of that; if there was no crash, something \
             else cut this file, and what was answered may be missing: restore from a backup"
        );
        let cut = OpenOptions::new().write(true).open(file).and_then(|open| open.set_len(*offset));
        cut.map_err(|error| StorageError::failed("cutting", file, error))?;
    }
    Ok(torn)
}

/// A torn tail that was cut off.
#[derive(Debug)]
pub(super) struct Cut {
    file: PathBuf,
    offset: u64,
    tail: Vec<u8>,
}

impl Cut {
    /// Puts it back, since the database is refused: whoever looks into it then finds it as it was.
    ///
    /// # Errors
    ///
    /// [`StorageError::Failed`].
    pub(super) fn undo(&self) -> Result<(), StorageError> {
        let Self { file, offset, tail } = self;
        let put_back = || OpenOptions::new().write(true).open(file)?.write_all_at(tail, *offset);
        put_back().map_err(|error| StorageError::failed("putting back the tail of", file, error))?;
        tracing::warn!(log = %file.display(), offset, "the tail is put back: the database is refused all the same");
        Ok(())
    }
}

fn is_empty(log: &Path) -> bool {
    log.metadata().is_ok_and(|found| found.len() == 0)
}

/// The logs, oldest first.
fn logs(path: &Path) -> Result<Vec<PathBuf>, StorageError> {
    of_kind(path, "log")
}

/// The files of one kind, oldest first.
fn of_kind(path: &Path, kind: &str) -> Result<Vec<PathBuf>, StorageError> {
    let failed = |error: std::io::Error| StorageError::failed("listing", path, error);
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.extension().is_some_and(|extension| extension == kind) {
            files.push(file);
        }
    }
    // Their names are numbers, of at least six digits.
    files.sort_by_key(|file| (file.as_os_str().len(), file.clone()));
    Ok(files)
}

/// The logs after this one; none after a manifest.
fn later<'a>(logs: &'a [PathBuf], log: &PathBuf) -> impl Iterator<Item = &'a PathBuf> {
    logs.iter().skip_while(move |other| *other != log).skip(1)
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Whole,
    /// From `offset` on nothing is whole.
    Torn {
        offset: usize,
    },
    Damaged {
        offset: usize,
    },
}

fn examine(log: &[u8]) -> Verdict {
    // What comes after its last byte that is not zero. Each record ends in the text of a key or a value, so that
    // zeros which reach into one were not written by anybody.
    let written = log.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut offset = 0;
    while offset < log.len() {
        // A record that is cut, or that ends in zeros, may also be one whose length is damaged.
        let may_be_torn = match read(log, offset) {
            Read::Record { end } => {
                offset = end;
                continue;
            }
            Read::Padding { end } if log[offset..end.min(log.len())].iter().all(|byte| *byte == 0) => {
                offset = end;
                continue;
            }
            Read::Padding { .. } => false,
            Read::Short => true,
            Read::Bad { end } => written < end,
        };
        if may_be_torn && !is_followed(log, offset) {
            return Verdict::Torn { offset };
        }
        return Verdict::Damaged { offset };
    }
    Verdict::Whole
}

enum Read {
    /// A whole record, and where it ends.
    Record { end: usize },
    /// The end of a block, too short for a header.
    Padding { end: usize },
    /// A record that the file or the block ends in.
    Short,
    /// A record with another checksum.
    Bad { end: usize },
}

fn read(log: &[u8], offset: usize) -> Read {
    let block_end = (offset / BLOCK + 1) * BLOCK;
    if block_end - offset < HEADER {
        return Read::Padding { end: block_end };
    }
    let Some(header) = log.get(offset..offset + HEADER) else { return Read::Short };
    let length = usize::from(u16::from_le_bytes([header[4], header[5]]));
    let end = offset + HEADER + length;
    if end > log.len().min(block_end) {
        return Read::Short;
    }
    if matches(header, &log[offset + 6..end]) { Read::Record { end } } else { Read::Bad { end } }
}

/// Whether the checksum in a header is that of these bytes, which begin with the type.
fn matches(header: &[u8], bytes: &[u8]) -> bool {
    stored_checksum(header) == masked(crc32c::crc32c(bytes))
}

fn stored_checksum(header: &[u8]) -> u32 {
    u32::from_le_bytes([header[0], header[1], header[2], header[3]])
}

/// A checksum of data that holds checksums is masked.
fn masked(checksum: u32) -> u32 {
    checksum.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Whether what seems to be torn is damaged: it is whole with another length, or a record after it is whole.
fn is_followed(log: &[u8], offset: usize) -> bool {
    is_whole_with_another_length(log, offset)
        || (offset + 1..log.len()).any(|later| matches!(read(log, later), Read::Record { .. }))
}

fn is_whole_with_another_length(log: &[u8], offset: usize) -> bool {
    let block_end = (offset / BLOCK + 1) * BLOCK;
    let Some(([header @ .., kind], bytes)) = log[offset..log.len().min(block_end)].split_at_checked(HEADER)
    else {
        return false;
    };
    let wanted = stored_checksum(header);
    let empty = crc32c::crc32c(&[*kind]);
    let longer = bytes.iter().scan(empty, |checksum, byte| {
        *checksum = crc32c::crc32c_append(*checksum, &[*byte]);
        Some(*checksum)
    });
    std::iter::once(empty).chain(longer).any(|checksum| masked(checksum) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(bytes: &[u8]) -> Vec<u8> {
        let typed = [&[1], bytes].concat();
        let checksum = masked(crc32c::crc32c(&typed));
        let length = u16::try_from(bytes.len()).unwrap();
        [&checksum.to_le_bytes()[..], &length.to_le_bytes(), &typed].concat()
    }

    /// Ten records of 57 bytes.
    fn log() -> Vec<u8> {
        (0..10).flat_map(|n| record(format!("{n:050}").as_bytes())).collect()
    }

    #[test]
    fn a_log_that_is_cut_anywhere_is_whole_or_torn_from_its_last_whole_record() {
        let log = log();
        for length in 0..=log.len() {
            let offset = length / 57 * 57;
            let expected = if offset == length { Verdict::Whole } else { Verdict::Torn { offset } };
            assert_eq!(examine(&log[..length]), expected, "cut to {length}");
        }
    }

    #[test]
    fn a_log_that_is_zero_from_anywhere_on_is_torn_from_its_last_whole_record() {
        for from in 1..log().len() {
            let mut log = log();
            log[from..].fill(0);
            log.extend([0; 100]);
            assert_eq!(examine(&log), Verdict::Torn { offset: from / 57 * 57 }, "from {from}");
        }
    }

    /// Also where the power was lost as well.
    #[test]
    fn any_bit_that_is_flipped_is_damage_in_its_record_and_never_a_tail() {
        let sound = log();
        let half = &record(format!("{:050}", 10).as_bytes())[..30];
        for tail in [&[][..], &[0; 600], half] {
            for at in 0..sound.len() * 8 {
                let mut log = [&sound[..], tail].concat();
                log[at / 8] ^= 1 << (at % 8);
                let verdict = examine(&log);
                let offset = at / 8 / 57 * 57;
                assert!(
                    matches!(verdict, Verdict::Damaged { offset: found } if found == offset),
                    "bit {at} before {} bytes: {verdict:?}",
                    tail.len()
                );
            }
        }
    }

    #[test]
    fn a_hole_of_zeros_before_whole_records_is_damage() {
        let mut log = log();
        log[57..3 * 57].fill(0);
        assert!(matches!(examine(&log), Verdict::Damaged { offset: 57 }));
    }
}
