//! The types that Raft runs on.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ledger::{Outcome, Stamped};

openraft::declare_raft_types!(
    /// One term has one leader (`leader_id_std`), so that the term alone is the authority of a fence.
    pub TypeConfig:
        D = Proposal,
        R = Answer,
        NodeId = u64,
        Node = Member,
        Term = u64,
        LeaderId = openraft::impls::leader_id_std::LeaderId<Self::Term, Self::NodeId>,
        AsyncRuntime = openraft::TokioRuntime,
);

pub(super) type Entry = openraft::type_config::alias::EntryOf<TypeConfig>;
pub(super) type LogId = openraft::type_config::alias::LogIdOf<TypeConfig>;
pub(super) type Membership = openraft::Membership<u64, Member>;
pub(super) type SnapshotMeta = openraft::type_config::alias::SnapshotMetaOf<TypeConfig>;
pub(super) type StoredMembership = openraft::type_config::alias::StoredMembershipOf<TypeConfig>;
pub(super) type Vote = openraft::type_config::alias::VoteOf<TypeConfig>;

/// What is proposed: a stamped command, in a type that can be shown in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Proposal(pub Stamped);

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "command of node {} at {}", self.0.node, self.0.clock)
    }
}

/// What applying an entry answers: the ledger's outcome, or nothing for an entry that carries no command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Answer(pub Option<Outcome>);

/// What the membership says of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Where its peers reach it, as `host:port`; empty while it has none.
    pub address: String,
    /// What people call it; empty for the one node of `relatch dev`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What the process said by which it became a member, so that it can ask again when the answer was lost; empty
    /// for the first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub joined_by: String,
}
