//! Who may call this node as a peer: nodes of its own cluster that mean this very node, each in one process only.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tonic::service::Interceptor;
use tonic::{Request, Status};

use super::peers::{Caller, introduced};
use crate::env::Clock;
use crate::model::{NodeId, ProcessNonce};

/// What a process sent before it ended may come this much after the first word of its successor.
const LATE_MS: u64 = 5_000;

/// Refused calls of one cause are told once in so long.
const TELL_AGAIN_MS: u64 = 60_000;

/// Checks every call of a peer. Clones share what was seen.
///
/// Two processes that call themselves the same node are both refused, until one starts anew: data that was copied must
/// not vote twice.
#[derive(Clone)]
pub struct CallerCheck {
    own: Caller,
    clock: Arc<dyn Clock>,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    nodes: BTreeMap<NodeId, Lives>,
    /// When a cause of refusal was last told.
    told: BTreeMap<String, u64>,
}

/// The processes that called themselves one node.
struct Lives {
    current: ProcessNonce,
    /// Those before, and when each was replaced.
    before: BTreeMap<ProcessNonce, u64>,
    /// True once one of those called although it had been replaced: two live at the same time.
    doubled: bool,
}

impl CallerCheck {
    /// The check of the calls to `own`.
    #[must_use]
    pub fn new(own: Caller, clock: Arc<dyn Clock>) -> Self {
        Self { own, clock, seen: Arc::default() }
    }

    /// Whether a call may be answered.
    ///
    /// # Errors
    ///
    /// Why not.
    fn check(&self, caller: &Caller, to: NodeId) -> Result<(), String> {
        let Caller { cluster, node, .. } = &self.own;
        if caller.cluster != *cluster {
            return Err(format!(
                "node {} is of cluster {}, this node of cluster {cluster}: one of them is configured with a wrong address",
                caller.node, caller.cluster
            ));
        }
        if to != *node {
            return Err(format!(
                "the call is for node {to}, this is node {node}: an address is used by another node than before"
            ));
        }
        if caller.node == *node && caller.process != self.own.process {
            return Err(format!(
                "another process calls itself node {node} too: its data was copied; end one of the two"
            ));
        }
        let now_ms = self.clock.monotonic_ms();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let lives = seen.nodes.entry(caller.node).or_insert_with(|| Lives {
            current: caller.process.clone(),
            before: BTreeMap::new(),
            doubled: false,
        });
        if lives.meet(&caller.process, now_ms) {
            return Ok(());
        }
        Err(format!(
            "two processes call themselves node {}: its data was copied; end both, and start the one that is right",
            caller.node
        ))
    }

    /// True if a cause was not told lately.
    fn is_news(&self, cause: &str) -> bool {
        let now_ms = self.clock.monotonic_ms();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.told.retain(|_, told_ms| now_ms.saturating_sub(*told_ms) < TELL_AGAIN_MS);
        seen.told.insert(cause.to_owned(), now_ms).is_none()
    }
}

impl Lives {
    /// Takes note of a process that calls. False if it must not be answered.
    fn meet(&mut self, process: &ProcessNonce, now_ms: u64) -> bool {
        if let Some(replaced_ms) = self.before.get(process) {
            let late = now_ms.saturating_sub(*replaced_ms) > LATE_MS;
            self.doubled |= late;
            return false;
        }
        if self.current == *process {
            return !self.doubled;
        }
        // A third one begins anew: whoever started it ended the others, or is found out in its turn.
        let before = std::mem::replace(&mut self.current, process.clone());
        self.before.insert(before, now_ms);
        self.doubled = false;
        true
    }
}

impl Interceptor for CallerCheck {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let checked =
            introduced(request.metadata()).and_then(|(caller, to)| self.check(&caller, to).map(|()| caller));
        match checked {
            Ok(caller) => {
                request.extensions_mut().insert(caller);
                Ok(request)
            }
            Err(cause) => {
                if self.is_news(&cause) {
                    tracing::warn!(%cause, "a peer's call is refused");
                }
                Err(Status::failed_precondition(cause))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::model::ClusterId;

    #[derive(Debug, Default)]
    struct HandClock(AtomicU64);

    impl Clock for HandClock {
        fn monotonic_ms(&self) -> u64 {
            self.0.load(Ordering::SeqCst)
        }
        fn wall_ms(&self) -> u64 {
            0
        }
        fn boottime_ms(&self) -> u64 {
            self.monotonic_ms()
        }
    }

    fn caller(node: u64, process: char) -> Caller {
        Caller {
            cluster: ClusterId::new("c".repeat(32)).unwrap(),
            node: NodeId(node),
            process: ProcessNonce::new(process.to_string().repeat(32)).unwrap(),
        }
    }

    fn check() -> (CallerCheck, Arc<HandClock>) {
        let clock = Arc::new(HandClock::default());
        (CallerCheck::new(caller(1, 'a'), clock.clone()), clock)
    }

    #[test]
    fn another_cluster_and_another_nodes_call_count_for_nothing() {
        let (check, _) = check();
        check.check(&caller(2, 'b'), NodeId(1)).unwrap();
        let stranger = Caller { cluster: ClusterId::new("d".repeat(32)).unwrap(), ..caller(2, 'b') };
        assert!(check.check(&stranger, NodeId(1)).unwrap_err().contains("cluster"));
        assert!(check.check(&caller(2, 'b'), NodeId(3)).unwrap_err().contains("this is node 1"));
        assert!(check.check(&caller(1, 'b'), NodeId(1)).unwrap_err().contains("copied"));
    }

    #[test]
    fn two_living_processes_of_one_node_are_both_refused_until_one_starts_anew() {
        let (check, clock) = check();
        let [first, second, third] = ['b', 'c', 'd'].map(|process| caller(2, process));
        check.check(&first, NodeId(1)).unwrap();
        check.check(&second, NodeId(1)).unwrap();
        check.check(&first, NodeId(1)).unwrap_err();
        check.check(&second, NodeId(1)).expect("a word of the first came late: it may have ended since");
        clock.0.store(LATE_MS + 1, Ordering::SeqCst);
        check.check(&first, NodeId(1)).unwrap_err();
        assert!(check.check(&second, NodeId(1)).unwrap_err().contains("end both"));
        check.check(&third, NodeId(1)).unwrap();
        check.check(&second, NodeId(1)).unwrap_err();
    }

    #[test]
    fn a_cause_is_told_once_a_minute() {
        let (check, clock) = check();
        assert!(check.is_news("a") && check.is_news("b"));
        assert!(!check.is_news("a"));
        clock.0.store(TELL_AGAIN_MS, Ordering::SeqCst);
        assert!(check.is_news("a"));
    }
}
