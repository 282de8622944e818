//! The durable parts of a data directory, each judged by what the others show: one that is gone, or has lost its end,
//! must not be taken for one that never was.

use std::path::Path;

use super::error::NodeError;
use crate::consensus::{self, ConsensusError};
use crate::dispatch::{Journal, JournalError};
use crate::env::Randomness;
use crate::model::{Holes, NodeId};
use crate::storage::{DataDir, Database, StorageError};

const JOURNAL: &str = "journal";
const LOG: &str = "raft";

/// Opens the journal, and the database of the log.
///
/// # Errors
///
/// [`NodeError`] if one of them is gone, damaged, another cluster's, or behind what the other one shows.
pub(super) fn open(
    dir: &DataDir,
    node: NodeId,
    randomness: &dyn Randomness,
    holes: Holes,
) -> Result<(Journal, Database), NodeError> {
    let journal = journal(dir, randomness, holes)?;
    let lost = || NodeError::LogLost { data_dir: dir.path().to_owned() };
    let path = dir.part(LOG);
    if dir.is_initialized() && !path.exists() {
        return Err(lost());
    }
    let database = Database::open(path, consensus::FAMILIES)?;
    if dir.is_initialized() && consensus::is_empty(&database)? {
        return Err(lost());
    }
    let cluster = &dir.identity().cluster;
    consensus::require_owner(&database, cluster, node).map_err(|error| of_log(error, dir))?;
    // This dispatcher acts for this node alone, and only for what is applied here.
    let reached = journal.highest_interlock();
    consensus::require_reached(&database, dir.path(), reached, &dir.part(JOURNAL))?;
    Ok((journal, database))
}

fn journal(dir: &DataDir, randomness: &dyn Randomness, holes: Holes) -> Result<Journal, NodeError> {
    let path = dir.part(JOURNAL);
    let lost = || NodeError::JournalLost { journal: path.clone() };
    let was_there = dir.is_initialized();
    if was_there && !path.exists() {
        return Err(lost());
    }
    let may_begin = !was_there || is_empty(&path)?;
    let database = Database::open(&path, Journal::FAMILIES)?;
    if Journal::is_new(&database)? {
        if !may_begin {
            return Err(lost());
        }
        if was_there {
            tracing::warn!(
                journal = %path.display(),
                "beginning a new journal in an empty folder: it proves nothing of the restarts that were decided \
                 before; those that are open stay so until their container shows what became of them"
            );
        }
    }
    let cluster = &dir.identity().cluster;
    Journal::open(database, cluster, randomness, holes).map_err(|error| of_journal(error, dir))
}

fn is_empty(folder: &Path) -> Result<bool, StorageError> {
    let mut entries = folder.read_dir().map_err(|error| StorageError::failed("listing", folder, error))?;
    Ok(entries.next().is_none())
}

/// Says of which directory a journal of another cluster was read.
fn of_journal(error: JournalError, dir: &DataDir) -> NodeError {
    match error {
        JournalError::OtherCluster { bound, asked } => NodeError::OtherCluster {
            data_dir: dir.path().to_owned(),
            part: "journal",
            found: format!("cluster {bound}"),
            identity: format!("cluster {asked}"),
        },
        error => error.into(),
    }
}

/// Says of which directory another node's log was read.
fn of_log(error: ConsensusError, dir: &DataDir) -> NodeError {
    match error {
        ConsensusError::OtherOwner { node, cluster, found_node, found_cluster } => NodeError::OtherCluster {
            data_dir: dir.path().to_owned(),
            part: "log",
            found: format!("node {found_node} of cluster {found_cluster}"),
            identity: format!("node {node} of cluster {cluster}"),
        },
        error => error.into(),
    }
}
