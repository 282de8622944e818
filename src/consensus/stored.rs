//! The stored forms of what Raft keeps. They are our own, not the library's: a new version of it must not
//! change what lies on disk. JSON, with no field that is not named here.

use std::collections::{BTreeMap, BTreeSet};

use openraft::EntryPayload;
use openraft::vote::RaftLeaderId as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::type_config::{Entry, LogId, Member, Membership, Proposal, StoredMembership, Vote};
use crate::ledger::Stamped;
use crate::model::{ClusterId, NodeId};
use crate::storage::{Database, StorageError};

/// The log: index → [`StoredEntry`].
pub(super) const LOG: &str = "log_v1";
/// What there is one of, by the keys below.
pub(super) const RAFT: &str = "raft_v1";
/// The ledger's records, by their own keys.
pub(super) const LEDGER: &str = "ledger_v1";

/// The column families that a database for [`super::Consensus`] is opened with.
pub const FAMILIES: &[&str] = &[LOG, RAFT, LEDGER];

/// In [`RAFT`]: whose data this is, [`StoredOwner`].
pub(super) const OWNER: &str = "owner";
/// In [`RAFT`]: the vote, [`StoredVote`].
pub(super) const VOTE: &str = "vote";
/// In [`RAFT`]: the last entry known as committed, [`StoredLogId`].
pub(super) const COMMITTED: &str = "committed";
/// In [`RAFT`]: the last entry that was purged from the log, [`StoredLogId`].
pub(super) const PURGED: &str = "purged";
/// In [`RAFT`]: the last entry that [`LEDGER`] contains, [`StoredLogId`]. Written as one with its changes.
pub(super) const APPLIED: &str = "applied";
/// In [`RAFT`]: the last membership that was applied, [`StoredConfiguration`].
pub(super) const MEMBERSHIP: &str = "membership";

/// Greater than every key of every family.
pub(super) const END: &str = "~";

/// The key of a log entry: it orders as the index does, and a person can read it.
pub(super) fn log_key(index: u64) -> String {
    format!("{index:020}")
}

/// Whose data it is. A vote must never be cast under another node's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredOwner {
    pub(super) cluster: ClusterId,
    pub(super) node: NodeId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredLogId {
    pub(super) term: u64,
    pub(super) index: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredVote {
    term: u64,
    node: u64,
    committed: bool,
}

/// Voters (two sets while one membership gives way to another) and every node, learners included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredMembers {
    voters: Vec<BTreeSet<u64>>,
    nodes: BTreeMap<u64, Member>,
}

/// A membership and the entry that made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredConfiguration {
    pub(super) entry: Option<StoredLogId>,
    pub(super) members: StoredMembers,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredEntry {
    pub(super) id: StoredLogId,
    payload: StoredPayload,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredPayload {
    /// What a new leader commits first.
    Blank,
    Command(Box<Stamped>),
    Members(StoredMembers),
}

impl From<&LogId> for StoredLogId {
    fn from(id: &LogId) -> Self {
        Self { term: id.committed_leader_id().term, index: id.index() }
    }
}

impl From<StoredLogId> for LogId {
    fn from(stored: StoredLogId) -> Self {
        Self::new_term_index(stored.term, stored.index)
    }
}

impl From<&Vote> for StoredVote {
    fn from(vote: &Vote) -> Self {
        let leader = vote.leader_id();
        Self { term: leader.term(), node: *leader.node_id(), committed: vote.is_committed() }
    }
}

impl From<StoredVote> for Vote {
    fn from(stored: StoredVote) -> Self {
        if stored.committed {
            Self::new_committed(stored.term, stored.node)
        } else {
            Self::new(stored.term, stored.node)
        }
    }
}

impl From<&Membership> for StoredMembers {
    fn from(membership: &Membership) -> Self {
        Self {
            voters: membership.get_joint_config().clone(),
            nodes: membership.nodes().map(|(id, member)| (*id, member.clone())).collect(),
        }
    }
}

impl TryFrom<StoredMembers> for Membership {
    type Error = String;
    fn try_from(stored: StoredMembers) -> Result<Self, String> {
        Self::new(stored.voters, stored.nodes).map_err(|error| error.to_string())
    }
}

impl From<&StoredMembership> for StoredConfiguration {
    fn from(stored: &StoredMembership) -> Self {
        Self { entry: stored.log_id().as_ref().map(Into::into), members: stored.membership().into() }
    }
}

impl TryFrom<StoredConfiguration> for StoredMembership {
    type Error = String;
    fn try_from(stored: StoredConfiguration) -> Result<Self, String> {
        Ok(Self::new(stored.entry.map(Into::into), stored.members.try_into()?))
    }
}

impl From<Entry> for StoredEntry {
    fn from(entry: Entry) -> Self {
        let payload = match entry.payload {
            EntryPayload::Blank => StoredPayload::Blank,
            EntryPayload::Normal(Proposal(stamped)) => StoredPayload::Command(Box::new(stamped)),
            EntryPayload::Membership(membership) => StoredPayload::Members((&membership).into()),
        };
        Self { id: (&entry.log_id).into(), payload }
    }
}

impl StoredEntry {
    pub(super) fn into_entry(self) -> Result<Entry, String> {
        let payload = match self.payload {
            StoredPayload::Blank => EntryPayload::Blank,
            StoredPayload::Command(stamped) => EntryPayload::Normal(Proposal(*stamped)),
            StoredPayload::Members(members) => EntryPayload::Membership(members.try_into()?),
        };
        Ok(Entry { log_id: self.id.into(), payload })
    }
}

/// Writes a stored form.
///
/// # Panics
///
/// Never: every stored form has text keys and writes into memory.
pub(super) fn encode(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("a stored form is JSON")
}

/// Reads a stored form that stood under `key`.
pub(super) fn decode<T: DeserializeOwned>(
    database: &Database,
    key: &str,
    value: &[u8],
) -> Result<T, StorageError> {
    serde_json::from_slice(value).map_err(|error| malformed(database, key, &error))
}

/// What stood under `key` is not what belongs there.
pub(super) fn malformed(database: &Database, key: &str, cause: &dyn std::fmt::Display) -> StorageError {
    StorageError::Malformed { path: database.path().to_owned(), detail: format!("key {key}: {cause}") }
}

/// Reads a stored form from [`RAFT`].
pub(super) fn load<T: DeserializeOwned>(database: &Database, key: &str) -> Result<Option<T>, StorageError> {
    database.get(RAFT, key)?.map(|value| decode(database, key, &value)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Stamped;

    #[test]
    fn keys_of_the_log_order_as_indexes_do() {
        assert!(log_key(9) < log_key(10));
        assert!(log_key(u64::MAX).as_str() < END);
    }

    /// The stored forms are a promise to every later build: these texts must read back for ever.
    #[test]
    fn the_stored_forms_are_these_texts_and_no_others() {
        let cases = [
            (
                encode(&StoredVote { term: 3, node: 1, committed: true }),
                r#"{"term":3,"node":1,"committed":true}"#,
            ),
            (encode(&StoredLogId { term: 3, index: 9 }), r#"{"term":3,"index":9}"#),
            (
                encode(&StoredEntry {
                    id: StoredLogId { term: 1, index: 0 },
                    payload: StoredPayload::Members(StoredMembers {
                        voters: vec![BTreeSet::from([1])],
                        nodes: BTreeMap::from([(1, Member::default())]),
                    }),
                }),
                r#"{"id":{"term":1,"index":0},"payload":{"members":{"voters":[[1]],"nodes":{"1":{"address":""}}}}}"#,
            ),
            (
                encode(&StoredEntry { id: StoredLogId { term: 1, index: 1 }, payload: StoredPayload::Blank }),
                r#"{"id":{"term":1,"index":1},"payload":"blank"}"#,
            ),
        ];
        for (written, text) in cases {
            assert_eq!(String::from_utf8(written).unwrap(), text);
        }
        let unknown = r#"{"term":3,"index":9,"more":1}"#;
        assert!(serde_json::from_str::<StoredLogId>(unknown).is_err());
    }

    /// What the first build wrote, command included, is read by this one.
    #[test]
    fn an_entry_of_the_first_format_reads_back() {
        let text = r#"{"id":{"term":2,"index":5},"payload":{"command":{"level":1,"clock":70,"wall":0,"node":1,"command":"tick"}}}"#;
        let stored: StoredEntry = serde_json::from_str(text).unwrap();
        let entry = stored.into_entry().unwrap();
        let command = Stamped { level: 1, ..super::super::tests::tick_of(NodeId(1), 70) };
        let payload = EntryPayload::Normal(Proposal(command));
        assert_eq!(entry, Entry { log_id: LogId::new_term_index(2, 5), payload });
        assert_eq!(String::from_utf8(encode(&StoredEntry::from(entry))).unwrap(), text);
    }

    #[test]
    fn every_kind_of_entry_reads_back_as_it_was() {
        let membership = Membership::new(
            vec![BTreeSet::from([1, 2]), BTreeSet::from([2])],
            BTreeMap::from([
                (1, Member::default()),
                (2, Member { address: "n2:7371".to_owned(), ..Member::default() }),
            ]),
        )
        .unwrap();
        let command = Proposal(super::super::tests::tick_of(NodeId(1), 7));
        for payload in
            [EntryPayload::Blank, EntryPayload::Normal(command), EntryPayload::Membership(membership)]
        {
            let entry = Entry { log_id: LogId::new_term_index(4, 17), payload };
            let text = encode(&StoredEntry::from(entry.clone()));
            let stored: StoredEntry = serde_json::from_slice(&text).unwrap();
            assert_eq!(stored.into_entry().unwrap(), entry);
        }
    }
}
