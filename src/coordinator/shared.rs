//! What every task of the coordinator holds.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{broadcast, watch};

use crate::consensus::{Consensus, ProposeError};
use crate::dispatch::Dispatcher;
use crate::env::{Clock, Randomness, failpoint};
use crate::ledger::{Command, Guard, Ledger, Limits, LimitsChange, Outcome, Proposer, Run};
#[cfg(feature = "failpoints")]
use crate::model::Hole;
use crate::model::{ContainerId, Holes, HostName, RunId, Term};

/// The longest that a proposal is waited for before its fate counts as unknown.
const PROPOSE_MS: u64 = 5_000;

/// The longest that a quorum's word on this node's leadership is waited for.
pub(super) const AUTHORITY_MS: u64 = 2_000;

/// The pause before a fact whose proposal had no answer is proposed again.
const RETRY: Duration = Duration::from_millis(200);

/// A host that this node can reach.
#[derive(Clone)]
pub struct HostLink {
    /// Who sends to it, and looks at its containers.
    pub dispatcher: Dispatcher,
    /// How strongly that fences.
    pub guard: Guard,
}

pub(super) struct Shared {
    pub(super) consensus: Consensus,
    pub(super) hosts: BTreeMap<HostName, HostLink>,
    pub(super) proposer: Proposer,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) randomness: Arc<dyn Randomness>,
    pub(super) own_container: Option<ContainerId>,
    pub(super) named_limits: NamedLimits,
    pub(super) holes: Holes,
    pub(super) pledges: Pledges,
    /// Containers of which an engine told something.
    pub(super) hints: broadcast::Sender<ContainerId>,
    /// The term in which this node admits requests.
    pub(super) admitting: watch::Sender<Option<Term>>,
    /// True once this node has begun to end.
    pub(super) is_ending: AtomicBool,
    /// False from a proposal whose fate is unknown until one is committed: a disk may hang.
    pub(super) commits: watch::Sender<bool>,
}

/// Limits that a node's command line names; what it does not name stays as it is in force.
#[derive(Debug, Clone, Copy, Default)]
pub struct NamedLimits {
    /// The longest grace.
    pub grace_max_s: Option<u32>,
    /// The margin of the client deadline.
    pub margin_ms: Option<u64>,
}

impl NamedLimits {
    /// What is to be changed of the limits in force. The default grace never stays above the longest one.
    #[must_use]
    pub fn over(self, in_force: &Limits) -> LimitsChange {
        let news = |wanted: Option<u32>, known: u32| wanted.filter(|wanted| *wanted != known);
        LimitsChange {
            grace_max_s: news(self.grace_max_s, in_force.grace_max_s),
            grace_default_s: self.grace_max_s.filter(|most| *most < in_force.grace_default_s),
            margin_ms: self.margin_ms.filter(|wanted| *wanted != in_force.margin_ms),
            ..LimitsChange::default()
        }
    }
}

/// Leadership of the term is gone: whoever leads next goes on from the ledger and the journals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("leadership of term {0} is gone")]
pub(super) struct Deposed(pub(super) Term);

impl Shared {
    /// Proposes, and takes note of whether anything can be committed at all.
    pub(super) async fn propose(&self, term: Term, command: Command) -> Result<Outcome, ProposeError> {
        let proposed = self.consensus.propose(term, command, PROPOSE_MS).await;
        match &proposed {
            Ok(_) => self.notice_whether_it_commits(true),
            Err(ProposeError::Unknown { .. }) => self.notice_whether_it_commits(false),
            Err(_) => {}
        }
        proposed.map(|(_, outcome)| outcome)
    }

    fn notice_whether_it_commits(&self, commits: bool) {
        self.commits.send_if_modified(|known| std::mem::replace(known, commits) != commits);
    }

    /// Commits a fact, however often it must be proposed, as long as this node leads `term`. Facts are
    /// idempotent, so an unknown fate is simply proposed again.
    pub(super) async fn commit(&self, term: Term, fact: Command) -> Result<Outcome, Deposed> {
        loop {
            let evidence =
                matches!(fact, Command::RecordExchange(_) | Command::Attest(_) | Command::Observe(_));
            let proposed = if evidence && failpoint::loses("coordinator-commit-evidence") {
                Err(ProposeError::Unknown { term, detail: "the failpoint lost it".to_owned() })
            } else {
                self.propose(term, fact.clone()).await
            };
            match proposed {
                Ok(outcome) => {
                    if let Outcome::Rejected(why) = &outcome {
                        tracing::warn!(%term, %why, "the ledger did not accept a fact");
                    }
                    return Ok(outcome);
                }
                Err(ProposeError::NotLeader { .. } | ProposeError::Stopped { .. }) => {
                    return Err(Deposed(term));
                }
                Err(error @ ProposeError::Unstorable { .. }) => {
                    tracing::error!(%error, "a fact cannot be stored; its run stays as it is");
                    return Ok(Outcome::Recorded { changed: false });
                }
                #[cfg(feature = "failpoints")]
                Err(ProposeError::Unknown { .. }) if self.holes.open(Hole::FailedSettlementSettles) => {
                    self.consensus.apply_uncommitted(term, fact);
                    return Ok(Outcome::Recorded { changed: true });
                }
                Err(ProposeError::Unknown { detail, .. }) => {
                    tracing::warn!(%term, %detail, "a fact's proposal had no answer; it is proposed again");
                    if !self.leads(term) {
                        return Err(Deposed(term));
                    }
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// True if the rules of this level are in force.
    pub(super) fn knows_rules(&self, level: u32) -> bool {
        self.consensus.read(Ledger::rules_level) >= level
    }

    pub(super) fn leads(&self, term: Term) -> bool {
        *self.consensus.leadership().borrow() == Some(term)
    }

    pub(super) fn run(&self, id: &RunId) -> Option<Run> {
        self.consensus.read(|ledger| ledger.run(id).cloned())
    }

    pub(super) fn host(&self, name: &HostName) -> Option<&HostLink> {
        self.hosts.get(name)
    }
}

/// Runs that this process has proposed in some term and will dispatch, once it sees them applied.
///
/// Taking a pledge and withdrawing it exclude each other: of a proposal that was given up, nothing is ever
/// dispatched, however late it commits.
#[derive(Debug, Default)]
pub(super) struct Pledges(Mutex<BTreeMap<RunId, Term>>);

impl Pledges {
    /// Pledges to dispatch `run`, if it is opened in `term`.
    pub(super) fn make(&self, run: &RunId, term: Term) {
        self.pledges().insert(run.clone(), term);
    }

    /// Ends the pledge. True if it stood for `term`, and so the caller is to act on it.
    pub(super) fn take(&self, run: &RunId, term: Term) -> bool {
        self.pledges().remove(run) == Some(term)
    }

    fn pledges(&self) -> std::sync::MutexGuard<'_, BTreeMap<RunId, Term>> {
        // Each change is one call on the map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pledge_is_taken_once_and_only_in_its_term() {
        let pledges = Pledges::default();
        let run = RunId::new("0".repeat(32)).unwrap();
        pledges.make(&run, Term(3));
        assert!(!pledges.take(&run, Term(4)), "a later term does not dispatch it");
        assert!(!pledges.take(&run, Term(3)), "and it is gone");
        pledges.make(&run, Term(3));
        assert!(pledges.take(&run, Term(3)));
        assert!(!pledges.take(&run, Term(3)));
    }
}
