//! Turns what Raft and the database report into two signals: whom this node leads, and what is fatal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use openraft::RaftMetrics;
use openraft::async_runtime::WatchReceiver as _;
use openraft::errors::Fatal;
use openraft::type_config::alias::WatchReceiverOf;
use tokio::sync::watch;

use super::type_config::TypeConfig;
use crate::model::{NodeId, Term};

type Metrics = WatchReceiverOf<TypeConfig, RaftMetrics<TypeConfig>>;

/// What the rest of the process may watch.
pub(super) struct Signals {
    pub(super) leadership: watch::Receiver<Option<Term>>,
    pub(super) leader: watch::Receiver<Option<Leader>>,
    pub(super) fatal: watch::Receiver<Option<String>>,
}

/// Who leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leader {
    /// The node.
    pub node: NodeId,
    /// The term that it leads.
    pub term: Term,
    /// Where its peers reach it.
    pub address: String,
}

/// Ends with the core that it watches.
pub(super) struct Watcher {
    node: NodeId,
    stopping: Arc<AtomicBool>,
    leadership: watch::Sender<Option<Term>>,
    leader: watch::Sender<Option<Leader>>,
    fatal: watch::Sender<Option<String>>,
}

impl Watcher {
    pub(super) fn start(
        metrics: Metrics,
        node: NodeId,
        database: watch::Receiver<Option<String>>,
        stopping: Arc<AtomicBool>,
    ) -> Signals {
        let watcher = Self {
            node,
            stopping,
            leadership: watch::Sender::new(None),
            leader: watch::Sender::new(None),
            fatal: watch::Sender::new(None),
        };
        let signals = Signals {
            leadership: watcher.leadership.subscribe(),
            leader: watcher.leader.subscribe(),
            fatal: watcher.fatal.subscribe(),
        };
        tokio::spawn(watcher.run(metrics, database));
        signals
    }

    async fn run(self, mut metrics: Metrics, mut database: watch::Receiver<Option<String>>) {
        let end = loop {
            if let Some(end) = self.look(&metrics, &database) {
                break end;
            }
            tokio::select! {
                changed = metrics.changed() => if changed.is_err() {
                    // The core is gone without a word: it panicked.
                    break self.look(&metrics, &database).unwrap_or_else(|| Some("the core of Raft is gone".to_owned()));
                },
                // The latch lives as long as the database, which the core holds.
                Ok(()) = database.changed() => {}
            }
        };
        self.leadership.send_replace(None);
        self.leader.send_replace(None);
        if let Some(why) = end {
            tracing::error!(node = %self.node, %why, "consensus cannot go on");
            self.fatal.send_replace(Some(why));
        }
    }

    /// Publishes what is now. `Some` once it is over: with the reason, or without one after an ordered end.
    fn look(&self, metrics: &Metrics, database: &watch::Receiver<Option<String>>) -> Option<Option<String>> {
        if let Some(cause) = database.borrow().clone() {
            return Some(Some(cause));
        }
        let metrics = metrics.borrow_watched();
        match &metrics.running_state {
            Ok(()) => {}
            Err(Fatal::Stopped) if self.stopping.load(Ordering::SeqCst) => return Some(None),
            Err(fatal) => return Some(Some(format!("the core of Raft ended: {fatal}"))),
        }
        let leads = led_term(&metrics, self.node);
        self.leadership.send_if_modified(|known| std::mem::replace(known, leads) != leads);
        let leader = known_leader(&metrics);
        self.leader.send_if_modified(|known| std::mem::replace(known, leader.clone()) != leader);
        None
    }
}

/// The term that `node` leads, if it has applied an entry of that very term.
fn led_term(metrics: &RaftMetrics<TypeConfig>, node: NodeId) -> Option<Term> {
    let leads = metrics.state.is_leader() && metrics.current_leader == Some(node.0);
    let applied = metrics.last_applied.as_ref()?;
    (leads && applied.committed_leader_id().term == metrics.current_term)
        .then_some(Term(metrics.current_term))
}

/// Who leads, if it is a member that this node knows.
fn known_leader(metrics: &RaftMetrics<TypeConfig>) -> Option<Leader> {
    let node = metrics.current_leader?;
    let member = metrics.membership_config.membership().get_node(&node)?;
    Some(Leader { node: NodeId(node), term: Term(metrics.current_term), address: member.address.clone() })
}

#[cfg(test)]
mod tests {
    use openraft::ServerState;

    use super::super::type_config::LogId;
    use super::*;

    fn metrics(state: ServerState, term: u64, applied: Option<(u64, u64)>) -> RaftMetrics<TypeConfig> {
        let mut metrics = RaftMetrics::new_initial(1);
        metrics.state = state;
        metrics.current_term = term;
        metrics.current_leader = state.is_leader().then_some(1);
        metrics.last_applied = applied.map(|(term, index)| LogId::new_term_index(term, index));
        metrics
    }

    #[test]
    fn a_leader_leads_only_once_it_has_applied_an_entry_of_its_own_term() {
        let led = |state, term, applied| led_term(&metrics(state, term, applied), NodeId(1));
        assert_eq!(led(ServerState::Leader, 3, None), None);
        assert_eq!(led(ServerState::Leader, 3, Some((2, 90))), None, "what is older may be incomplete");
        assert_eq!(led(ServerState::Leader, 3, Some((3, 91))), Some(Term(3)));
        assert_eq!(led(ServerState::Follower, 3, Some((3, 91))), None);
        assert_eq!(led(ServerState::Candidate, 4, Some((3, 91))), None);
    }
}
