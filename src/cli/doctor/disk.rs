//! The data directory: whose it is, what it lies on, and how fast that is.

use std::path::{Path, PathBuf};

use super::check::Check;
use crate::consensus::Tuning;
use crate::env::SystemClock;
use crate::node::container_layer;
use crate::storage::{DataDir, FileSystem, StorageError, SyncSpeed};

const DIRECTORY: &str = "data-directory";
const LAYER: &str = "container-layer";
const SYSTEM: &str = "file-system";
const SPACE: &str = "free-space";
const SYNC: &str = "disk-sync";

const MIB: u64 = 1 << 20;

/// Each of the two databases sets 4 MiB and a bit aside for its next log file, and keeps the last one until that is
/// whole: with less than this, a node that begins does not run for long.
const LEAST_FREE_BYTES: u64 = 32 * MIB;

/// Two databases with 64 MiB of logs each, a hundred thousand runs and a snapshot of them have room in this.
const AMPLE_FREE_BYTES: u64 = 1024 * MIB;

/// Looks at the directory, or at the nearest one above it that exists.
pub(super) fn look(data_dir: anyhow::Result<PathBuf>, ephemeral_data: bool) -> Vec<Check> {
    let data_dir = match data_dir {
        Ok(data_dir) => data_dir,
        Err(error) => return vec![Check::fail(DIRECTORY, error.to_string(), "name one with --data-dir")],
    };
    let there = match DataDir::examine(&data_dir) {
        Ok(there) => there,
        Err(error) => return vec![Check::fail(DIRECTORY, error.to_string(), advice(&error))],
    };
    let seen = if there == data_dir {
        format!("{} can be used", data_dir.display())
    } else {
        format!("{} will be made in {}", data_dir.display(), there.display())
    };
    let mut checks = vec![Check::ok(DIRECTORY, seen), layer(container_layer(&data_dir), ephemeral_data)];
    match FileSystem::of(&there) {
        Ok(system) => checks.extend([kind(&system), space(system.free_bytes)]),
        Err(error) => checks.push(Check::fail(SYSTEM, error.to_string(), "name another one with --data-dir")),
    }
    checks.push(sync(&there));
    checks
}

fn advice(error: &StorageError) -> &'static str {
    match error {
        StorageError::InUse { .. } => {
            "if that is a relatch of yours, it runs already and nothing is wrong; else name another directory with \
             --data-dir"
        }
        _ => "or name another one with --data-dir",
    }
}

fn layer(kind: Option<String>, ephemeral_data: bool) -> Check {
    match kind {
        None => Check::ok(LAYER, "the data does not go away with a container"),
        Some(kind) if ephemeral_data => Check::warn(
            LAYER,
            format!("the data lies in this container's own writable layer ({kind})"),
            "what is open goes away with the container, as --ephemeral-data accepts; a volume would keep it",
        ),
        Some(kind) => Check::fail(
            LAYER,
            format!("the data lies in this container's own writable layer ({kind}), and goes away with it"),
            "mount a volume there, or accept that by --ephemeral-data",
        ),
    }
}

/// One that is not local has been refused before.
fn kind(system: &FileSystem) -> Check {
    if system.is_in_memory {
        return Check::warn(
            SYSTEM,
            format!("{}: its content is in memory, and gone when this machine restarts", system.kind),
            "name a directory on a disk with --data-dir, unless this is a trial",
        );
    }
    Check::ok(SYSTEM, format!("{}, a local disk", system.kind))
}

fn space(free_bytes: u64) -> Check {
    let seen = format!("{} MiB free", free_bytes / MIB);
    match free_bytes {
        AMPLE_FREE_BYTES.. => Check::ok(SPACE, seen),
        LEAST_FREE_BYTES.. => Check::warn(
            SPACE,
            seen,
            "make room: 1 GiB is ample; a node whose disk is full ends, and restarts nothing",
        ),
        _ => Check::fail(
            SPACE,
            seen,
            "make room: with less than 32 MiB a node does not run for long, and 1 GiB is ample",
        ),
    }
}

fn sync(folder: &Path) -> Check {
    match SyncSpeed::measure(folder, &SystemClock) {
        Ok(speed) => judge(&speed),
        Err(error) => Check::fail(SYNC, error.to_string(), "or name another directory with --data-dir"),
    }
}

/// What Raft needs: an append is durable on its leader and its followers before it commits, and both may follow
/// within one heartbeat (100 ms), so that one sync has half of that. One that takes longer than the shortest
/// election timeout (500 ms) is a pause after which a leader may be replaced.
fn judge(speed: &SyncSpeed) -> Check {
    let tuning = Tuning::default();
    let (longest_ms, pause_ms) = (tuning.heartbeat_ms / 2, tuning.election_least_ms);
    let SyncSpeed { median_ms, worst_ms, rounds } = *speed;
    let seen = format!(
        "{median_ms} ms to make an append durable (median of {rounds}; the slowest took {worst_ms} ms)"
    );
    let advice = format!(
        "use a faster disk, or one that fewer share: a median of at most {longest_ms} ms is two syncs within a \
         heartbeat, and {pause_ms} ms is when a leader is given up"
    );
    if median_ms <= longest_ms && worst_ms < pause_ms {
        Check::ok(SYNC, seen)
    } else {
        Check::warn(SYNC, seen, advice)
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::*;

    #[test]
    fn a_disk_that_is_slow_on_the_whole_or_now_and_then_is_warned_of() {
        let status = |median_ms, worst_ms| judge(&SyncSpeed { median_ms, worst_ms, rounds: 31 }).status;
        assert_eq!(status(2, 90), Status::Ok);
        assert_eq!(status(51, 90), Status::Warn);
        assert_eq!(status(2, 500), Status::Warn);
    }

    #[test]
    fn little_room_is_warned_of_and_none_fails() {
        assert_eq!(space(2048 * MIB).status, Status::Ok);
        assert_eq!(space(1023 * MIB).status, Status::Warn);
        assert_eq!(space(31 * MIB).status, Status::Fail);
    }

    #[test]
    fn a_writable_layer_fails_unless_it_is_accepted() {
        assert_eq!(layer(None, false).status, Status::Ok);
        assert_eq!(layer(Some("overlay".into()), false).status, Status::Fail);
        assert_eq!(layer(Some("overlay".into()), true).status, Status::Warn);
    }

    #[test]
    fn what_is_in_memory_is_warned_of() {
        let system =
            |is_in_memory| FileSystem { kind: "x".into(), is_local: true, is_in_memory, free_bytes: 0 };
        assert_eq!(kind(&system(true)).status, Status::Warn);
        assert_eq!(kind(&system(false)).status, Status::Ok);
    }
}
