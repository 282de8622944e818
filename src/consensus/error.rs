//! What can go wrong between a caller and the agreed log.

use std::path::PathBuf;

use super::state_machine::LoadLedgerError;
use crate::model::{ClusterId, LogIndex, NodeId, Term};
use crate::storage::StorageError;

/// Consensus cannot start, or cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConsensusError {
    /// The data cannot be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The stored ledger cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadLedgerError),
    /// The data is another node's. To go on with it would be to vote under a wrong name.
    #[error(
        "starting node {node} of cluster {cluster}: the data is of node {found_node} of cluster {found_cluster}: \
         use that node's settings, or another data directory"
    )]
    OtherOwner {
        /// The node that was to start.
        node: NodeId,
        /// Its cluster.
        cluster: ClusterId,
        /// The node whose data it is.
        found_node: NodeId,
        /// That node's cluster.
        found_cluster: ClusterId,
    },
    /// The log has lost its end. What was answered and is gone with it cannot be told from what never was.
    #[error(
        "reading {}: the log ends at index {end}, and {} shows that it had reached index {reached}: its end is gone, \
         and with it what was answered: restore this directory from a backup, or begin anew with an empty one as a \
         new node",
        log.display(), witness.display()
    )]
    LogBehind {
        /// The log's database.
        log: PathBuf,
        /// The last entry that there is.
        end: LogIndex,
        /// The last entry that there was, at least.
        reached: LogIndex,
        /// The file or folder that shows it.
        witness: PathBuf,
    },
    /// The settings contradict each other.
    #[error("checking the settings of consensus: {detail}")]
    Settings {
        /// Which, and how.
        detail: String,
    },
    /// The library refused.
    #[error("{verb} consensus: {detail}")]
    Raft {
        /// What was done, as in `starting`.
        verb: &'static str,
        /// What it said.
        detail: String,
    },
}

/// A proposal without an outcome. Each but [`ProposeError::Unknown`] is a "no": it was not appended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// This node does not lead the term that the proposal was tied to. The proposal was not appended, and
    /// never will be.
    #[error("proposing in term {term}: this node does not lead it: {}", ask(*leader))]
    NotLeader {
        /// The term that it was tied to.
        term: Term,
        /// Who leads now, if known.
        leader: Option<NodeId>,
    },
    /// Nobody knows what becomes of it: it may be committed already, or later, or never.
    #[error("proposing in term {term}: unknown, it may still be committed: {detail}")]
    Unknown {
        /// The term that it was tied to.
        term: Term,
        /// Why there is no answer.
        detail: String,
    },
    /// The command would not read back from the log as itself. It was not appended: an entry that no node
    /// can read would end them all.
    #[error("proposing in term {term}: the command cannot be stored: {detail}")]
    Unstorable {
        /// The term that it was tied to.
        term: Term,
        /// What does not fit.
        detail: String,
    },
    /// Consensus on this node had ended before the proposal was handed over. It was not appended.
    #[error("proposing in term {term}: consensus has ended on this node: restart it")]
    Stopped {
        /// The term that it was tied to.
        term: Term,
    },
}

/// This node could not show that it still leads the term.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityLost {
    /// It does not lead.
    #[error("confirming term {term}: this node does not lead: {}", ask(*leader))]
    NotLeader {
        /// The term to be confirmed.
        term: Term,
        /// Who leads now, if known.
        leader: Option<NodeId>,
    },
    /// It leads, but another term.
    #[error("confirming term {term}: this node leads term {found} now")]
    OtherTerm {
        /// The term to be confirmed.
        term: Term,
        /// The term that it leads.
        found: Term,
    },
    /// A quorum did not confirm it, or its entries were not applied, within the time allowed.
    #[error("confirming term {term}: {detail}")]
    Unconfirmed {
        /// The term to be confirmed.
        term: Term,
        /// What was missing.
        detail: String,
    },
    /// Consensus on this node has ended.
    #[error("confirming term {term}: consensus has ended on this node: restart it")]
    Stopped {
        /// The term to be confirmed.
        term: Term,
    },
}

fn ask(leader: Option<NodeId>) -> String {
    match leader {
        Some(node) => format!("ask node {node}"),
        None => "no leader is known, try again".to_owned(),
    }
}
