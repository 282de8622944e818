//! Who takes part: to see it, and to change it, one node at a time.
//!
//! A new node is a learner first, which gets the log and has no vote. It is promoted once it has caught up. Its id is
//! a place in the log that was free when it was admitted: so no id is ever given twice, and a node that has lost its
//! data, and with it the votes that it gave, never comes back under the id that it had.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use openraft::async_runtime::WatchReceiver as _;
use openraft::errors::{ClientWriteError, RaftError};
use openraft::raft::Precondition;
use openraft::{ChangeMembers, Instant as _};
use tokio::time::{Instant, sleep, timeout};

use super::node::Consensus;
use super::type_config::{LogId, Member};
use crate::model::{LogIndex, NodeId, Term};

/// A learner that lacks no more entries than this has caught up: what it lacks is on its way.
const CAUGHT_UP: u64 = 64;

/// How long voters may take to be heard again, before those that were not count as unreachable.
const HEARD_WITHIN: Duration = Duration::from_secs(3);

/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long a change may take to be committed.
const CHANGE: Duration = Duration::from_secs(10);

/// What a member does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It has a vote.
    Voter,
    /// It gets the log, and has no vote.
    Learner,
}

/// One member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberView {
    /// Its id.
    pub node: NodeId,
    /// What the membership says of it.
    pub member: Member,
    /// What it does.
    pub role: Role,
    /// Up to where it has the log; only known to the leader.
    pub has: Option<LogIndex>,
    /// How long ago it was heard, in milliseconds; only known to the leader.
    pub heard_ms: Option<u64>,
}

/// Who takes part, as one node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembersView {
    /// The node that sees it so.
    pub node: NodeId,
    /// The term that it knows.
    pub term: Term,
    /// Who leads.
    pub leader: Option<NodeId>,
    /// The last entry of its log.
    pub last: LogIndex,
    /// The last entry that it has applied.
    pub applied: LogIndex,
    /// Everyone.
    pub members: Vec<MemberView>,
    /// The entry that made it so.
    entry: Option<LogId>,
}

/// The membership stays as it is, or, where that is said, nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MembersError {
    /// Only the leader changes it.
    #[error("changing the membership: this node does not lead: {}", match leader { Some(node) => format!("ask node {node}"), None => "no leader is known, try again".to_owned() })]
    NotLeader {
        /// Who leads, if known.
        leader: Option<NodeId>,
    },
    /// There is no such member.
    #[error("node {node} is no member: `relatch cluster status` shows those that are")]
    NoMember {
        /// The node.
        node: NodeId,
    },
    /// Another member has that name, and has, or had, a vote.
    #[error(
        "a member is called {name:?} already: node {node}; if its data is lost, remove it first \
         (`relatch cluster remove {node}`), and then let this one join as a new node"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// Whose it is.
        node: NodeId,
    },
    /// Another member has that address.
    #[error("node {node} is reached at {address} already: give each node an address of its own")]
    AddressTaken {
        /// The address.
        address: String,
        /// Whose it is.
        node: NodeId,
    },
    /// The learner lacks too much of the log to be given a vote.
    #[error("node {node} has not caught up: it has the log up to entry {has} of {last}; try again later")]
    Behind {
        /// The node.
        node: NodeId,
        /// What it has.
        has: LogIndex,
        /// What there is.
        last: LogIndex,
    },
    /// So few voters would be reachable that nothing could be agreed any more.
    #[error(
        "of the {voters} voters that there would be, {reachable} can be reached, and {needed} are needed to agree on \
         anything: bring nodes back first"
    )]
    LosesQuorum {
        /// How many voters there would be.
        voters: usize,
        /// How many of them can be reached now.
        reachable: usize,
        /// How many are needed.
        needed: usize,
    },
    /// The node is a voter, or is not, where the other was needed.
    #[error("node {node} is {}", match role { Role::Voter => "a voter already", Role::Learner => "no voter: promote it first" })]
    OtherRole {
        /// The node.
        node: NodeId,
        /// What it is.
        role: Role,
    },
    /// Another change was made meanwhile, or is not committed yet.
    #[error("another change of the membership is under way: try again ({detail})")]
    UnderWay {
        /// What the library said.
        detail: String,
    },
    /// It may be committed, or not.
    #[error("whether the membership was changed is not known ({detail}): look at `relatch cluster status`")]
    Unknown {
        /// Why.
        detail: String,
    },
}

impl Consensus {
    /// Who takes part, as this node sees it.
    #[must_use]
    pub fn members(&self) -> MembersView {
        let metrics = self.inner.raft.metrics();
        let metrics = metrics.borrow_watched();
        let membership = metrics.membership_config.membership();
        let voters: BTreeSet<u64> = membership.voter_ids().collect();
        let view = |(id, member): (&u64, &Member)| MemberView {
            node: NodeId(*id),
            member: member.clone(),
            role: if voters.contains(id) { Role::Voter } else { Role::Learner },
            has: metrics
                .replication
                .as_ref()
                .map(|known| LogIndex(known.get(id).and_then(Option::as_ref).map_or(0, |id| id.index()))),
            heard_ms: metrics.heartbeat.as_ref().and_then(|heard| {
                let heard = heard.get(id)?.as_ref()?;
                Some(u64::try_from(heard.elapsed().as_millis()).unwrap_or(u64::MAX))
            }),
        };
        MembersView {
            node: self.inner.node,
            term: Term(metrics.current_term),
            leader: metrics.current_leader.map(NodeId),
            last: LogIndex(metrics.last_log_index.unwrap_or(0)),
            applied: LogIndex(metrics.last_applied.as_ref().map_or(0, |id| id.index())),
            members: membership.nodes().map(view).collect(),
            entry: *metrics.membership_config.log_id(),
        }
    }

    /// Admits a node as a learner, and gives its id. A node that asks again gets the same answer; a learner of the
    /// same name that never had a vote gives way.
    ///
    /// # Errors
    ///
    /// [`MembersError`]
    pub async fn admit(&self, member: Member) -> Result<NodeId, MembersError> {
        let view = self.leading()?;
        let named = view.members.iter().find(|known| known.member.name == member.name);
        if let Some(known) = named.filter(|known| known.member == member) {
            return Ok(known.node);
        }
        if let Some(known) = named.filter(|known| known.role == Role::Voter) {
            return Err(MembersError::NameTaken { name: member.name, node: known.node });
        }
        let replaced = named.map(|known| known.node);
        let at = view.members.iter().find(|known| known.member.address == member.address);
        if let Some(known) = at.filter(|known| Some(known.node) != replaced) {
            return Err(MembersError::AddressTaken { address: member.address, node: known.node });
        }
        let node = NodeId(view.last.0 + 1);
        let added = ChangeMembers::AddNodes(BTreeMap::from([(node.0, member)]));
        let change = match replaced {
            Some(old) => {
                ChangeMembers::Batch(vec![ChangeMembers::RemoveNodes(BTreeSet::from([old.0])), added])
            }
            None => added,
        };
        self.change(&view, change).await?;
        Ok(node)
    }

    /// Gives a learner a vote.
    ///
    /// # Errors
    ///
    /// [`MembersError`]
    pub async fn promote(&self, node: NodeId) -> Result<(), MembersError> {
        let view = self.leading()?;
        let known = view.find(node)?;
        if known.role == Role::Voter {
            return Err(MembersError::OtherRole { node, role: Role::Voter });
        }
        let has = known.has.unwrap_or(LogIndex(0));
        if has.0 + CAUGHT_UP < view.last.0 || has == LogIndex(0) {
            return Err(MembersError::Behind { node, has, last: view.last });
        }
        self.keeps_quorum(|known| known.role == Role::Voter || known.node == node).await?;
        self.change(&view, ChangeMembers::AddVoterIds(BTreeSet::from([node.0]))).await
    }

    /// Takes a member out for good.
    ///
    /// # Errors
    ///
    /// [`MembersError`]
    pub async fn remove(&self, node: NodeId) -> Result<(), MembersError> {
        let view = self.leading()?;
        match view.find(node)?.role {
            Role::Learner => self.change(&view, ChangeMembers::RemoveNodes(BTreeSet::from([node.0]))).await,
            Role::Voter => {
                self.keeps_quorum(|known| known.role == Role::Voter && known.node != node).await?;
                self.change(&view, ChangeMembers::RemoveVoters(BTreeSet::from([node.0]))).await
            }
        }
    }

    /// Lets another voter lead. Returns once somebody else does.
    ///
    /// # Errors
    ///
    /// [`MembersError`]
    pub async fn transfer(&self, node: NodeId) -> Result<(), MembersError> {
        let view = self.leading()?;
        let known = view.find(node)?;
        if known.role == Role::Learner {
            return Err(MembersError::OtherRole { node, role: Role::Learner });
        }
        if node == view.node {
            return Ok(());
        }
        let unknown = |detail: String| MembersError::Unknown { detail };
        let raft = &self.inner.raft;
        raft.trigger().transfer_leader(node.0).await.map_err(|error| unknown(error.to_string()))?;
        let mut leader = self.leader();
        let led = leader.wait_for(|leader| leader.as_ref().is_some_and(|leader| leader.node == node));
        match timeout(CHANGE, led).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(unknown("consensus has ended on this node".to_owned())),
            Err(_) => Err(unknown(format!("node {node} does not lead after {CHANGE:?}"))),
        }
    }

    /// The membership, if this node may change it.
    fn leading(&self) -> Result<MembersView, MembersError> {
        let view = self.members();
        if self.leadership().borrow().is_none() {
            return Err(MembersError::NotLeader {
                leader: view.leader.filter(|leader| *leader != view.node),
            });
        }
        Ok(view)
    }

    /// Refuses a set of voters of which no majority can be reached: each must be heard after now.
    async fn keeps_quorum(&self, is_voter: impl Fn(&MemberView) -> bool) -> Result<(), MembersError> {
        let begun = Instant::now();
        loop {
            let view = self.leading()?;
            let voters: Vec<_> = view.members.iter().filter(|known| is_voter(known)).collect();
            let needed = voters.len() / 2 + 1;
            let since_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            let is_heard = |known: &&&MemberView| {
                known.node == view.node || known.heard_ms.is_some_and(|ms| ms < since_ms)
            };
            let reachable = voters.iter().filter(is_heard).count();
            if !voters.is_empty() && reachable >= needed {
                return Ok(());
            }
            if voters.is_empty() || begun.elapsed() > HEARD_WITHIN {
                return Err(MembersError::LosesQuorum { voters: voters.len(), reachable, needed });
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Changes the membership, if it is still the one that was looked at.
    async fn change(
        &self,
        seen: &MembersView,
        change: ChangeMembers<u64, Member>,
    ) -> Result<(), MembersError> {
        let unchanged = Precondition::LastMembershipLogId { last_membership_log_id: seen.entry };
        let changed = self.inner.raft.change_membership_if(change, false, [unchanged]);
        match timeout(CHANGE, changed).await {
            Err(_) => Err(MembersError::Unknown { detail: format!("no answer within {CHANGE:?}") }),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(RaftError::Fatal(error))) => Err(MembersError::Unknown { detail: error.to_string() }),
            Ok(Err(RaftError::APIError(error))) => Err(match error {
                ClientWriteError::ForwardToLeader(forward) => {
                    MembersError::NotLeader { leader: forward.leader_id.map(NodeId) }
                }
                ClientWriteError::LogEntryDiscarded(forward) => {
                    MembersError::Unknown { detail: forward.to_string() }
                }
                ClientWriteError::ChangeMembershipError(error) => {
                    MembersError::UnderWay { detail: error.to_string() }
                }
                ClientWriteError::PreconditionFailed(error) => {
                    MembersError::UnderWay { detail: error.to_string() }
                }
            }),
        }
    }
}

impl MembersView {
    /// The member of that id.
    ///
    /// # Errors
    ///
    /// [`MembersError::NoMember`]
    pub fn find(&self, node: NodeId) -> Result<&MemberView, MembersError> {
        self.members.iter().find(|known| known.node == node).ok_or(MembersError::NoMember { node })
    }
}
