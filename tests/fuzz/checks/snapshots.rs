//! Snapshots: one that was damaged anywhere is refused as a whole.

use std::fs::File;
use std::io::{Seek as _, Write as _};

use relatch::consensus::fuzzing::{ReadAgain, read_snapshot, write_snapshot};
use relatch::model::ClusterId;

use super::ledger::records;

/// The data is a snapshot's file, and then the records of one.
pub fn check(data: &[u8]) {
    let cluster = ClusterId::new("c".repeat(32)).expect("32 hex digits");
    if let Ok(ReadAgain { bytes, .. }) = read(data, &cluster) {
        super::same::nothing_is_lost(&as_list(data), &as_list(&bytes));
    }
    // The first bytes say what is done to the snapshot of the records.
    let Some((place, lines)) = data.split_first_chunk::<4>() else { return };
    let records: Vec<_> = records(lines).into_iter().take(16).collect();
    let whole = write_snapshot(&cluster, &records);
    let again = read(&whole, &cluster).unwrap_or_else(|error| panic!("it is refused: {error}"));
    assert_eq!((again.records, &again.bytes), (records, &whole));

    let [first, second, third, change] = place.map(usize::from);
    let at = (first << 16 | second << 8 | third) % whole.len();
    let mut changed = whole.clone();
    let other = u8::try_from(change).unwrap_or(0);
    changed[at] = if other == changed[at] { other ^ 1 } else { other };
    refused(&changed, &cluster, &format!("byte {at} changed from {:?} to {:?}", whole[at], changed[at]));
    refused(&whole[..at], &cluster, &format!("cut at {at}"));
    let mut longer = whole.clone();
    longer.insert(at, changed[at]);
    // White space between two words of the last line says nothing; anywhere else it breaks the checksum.
    let says_nothing = changed[at].is_ascii_whitespace() && at > whole.len() - last_line(&whole).len();
    if !says_nothing {
        refused(&longer, &cluster, &format!("{:?} put in at {at}", changed[at]));
    }
}

fn refused(snapshot: &[u8], cluster: &ClusterId, what: &str) {
    if read(snapshot, cluster).is_ok() {
        panic!("it is read although {what}:\n{}", String::from_utf8_lossy(snapshot));
    }
}

fn read(snapshot: &[u8], cluster: &ClusterId) -> Result<ReadAgain, String> {
    let mut file: File = tempfile::tempfile().expect("a temporary file");
    file.write_all(snapshot).and_then(|()| file.rewind()).expect("writing the temporary file");
    read_snapshot(file, cluster)
}

fn last_line(whole: &[u8]) -> &[u8] {
    let body = &whole[..whole.len() - 1];
    let begins = body.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    &whole[begins..]
}

/// The lines but the last, whose checksum is of the others' exact bytes, as one JSON list.
fn as_list(snapshot: &[u8]) -> Vec<u8> {
    let body = &snapshot[..snapshot.len() - last_line(snapshot).len()];
    let lines: Vec<&[u8]> = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
    [b"[".as_slice(), &lines.join(b",".as_slice()), b"]"].concat()
}
