//! The leader's work: resolve a request to one container, have it decided, drive what was decided, and
//! settle it by evidence.
//!
//! **Runs are driven from applied state, not from the request that opened them.** A request only proposes
//! (`admit.rs`); the supervisor (`supervisor.rs`) sees an open interlock in the applied ledger and drives it
//! (`drive.rs`). One that this process did not propose in this term, or gave up on, is never dispatched: it
//! is revoked at its dispatcher, and what the journal says settles it or leaves it to observation.

mod admit;
mod ask;
mod drive;
mod explain;
mod facts;
mod follow;
#[cfg(feature = "failpoints")]
#[doc(hidden)]
pub mod fuzzing;
mod grace;
mod hints;
mod hold;
mod look;
mod narrate;
mod near;
mod operator;
mod request;
mod resolve;
mod send;
mod shared;
mod supervisor;
mod take_over;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;

use crate::consensus::Consensus;
use crate::env::{Clock, Randomness};
use crate::ledger::{Command, Hold, Ledger, LiftHold, LimitsChange, Outcome, Proposer, Run, StartDecision};
use crate::model::{ClusterTime, ContainerId, HoldId, Holes, HostName, LogIndex, Term};

pub use request::{
    Answer, ApproveRequest, Checked, Explanation, HoldRequest, Placed, RecoveryRequest, RequestError,
    ResolveRequest,
};
pub use shared::{HostLink, NamedLimits};

/// How many hints a slow listener may miss nothing of. One that missed some looks at its container anyway.
const HINTS: usize = 256;

/// What a coordinator is made of.
pub struct Parts {
    /// The agreed ledger.
    pub consensus: Consensus,
    /// The hosts that this node can reach.
    pub hosts: BTreeMap<HostName, HostLink>,
    /// This node, in this life.
    pub proposer: Proposer,
    /// The machine's clocks.
    pub clock: Arc<dyn Clock>,
    /// For run ids.
    pub randomness: Arc<dyn Randomness>,
    /// The container that this process runs in, if it does.
    pub own_container: Option<ContainerId>,
    /// Limits that this node was started with.
    pub named_limits: NamedLimits,
    /// The guards that a test took out.
    pub holes: Holes,
}

/// The coordinator of this node. A cheap handle.
#[derive(Clone)]
pub struct Coordinator {
    shared: Arc<shared::Shared>,
    ready: watch::Receiver<bool>,
}

/// The coordinator's task. Whoever started it awaits its end.
#[must_use = "the coordinator's task ends in order only if it is shut down"]
pub struct Supervision {
    stop: watch::Sender<bool>,
    tasks: [JoinHandle<()>; 3],
}

impl Supervision {
    /// Stops driving. What is open stays open, and is replayed at the next start.
    pub async fn shutdown(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            // A panic aborts the process before this could see it.
            let _ended = task.await;
        }
    }
}

impl Coordinator {
    /// Begins to supervise.
    pub fn start(parts: Parts) -> (Self, Supervision) {
        let (admitting, mut admits) = watch::channel(None::<Term>);
        let (commits, mut committing) = watch::channel(true);
        let shared = Arc::new(shared::Shared {
            consensus: parts.consensus,
            hosts: parts.hosts,
            proposer: parts.proposer,
            clock: parts.clock,
            randomness: parts.randomness,
            own_container: parts.own_container,
            named_limits: parts.named_limits,
            holes: parts.holes,
            pledges: shared::Pledges::default(),
            hints: broadcast::Sender::new(HINTS),
            admitting,
            is_ending: AtomicBool::new(false),
            commits,
        });
        let (stop, stopped) = watch::channel(false);
        let (readiness, ready) = watch::channel(false);
        let supervisor = tokio::spawn(supervisor::supervise(Arc::clone(&shared), stopped.clone()));
        let narrator = tokio::spawn(narrate::narrate(Arc::clone(&shared), stopped.clone()));
        let mut stopping = stopped;
        let announcer = tokio::spawn(async move {
            loop {
                let now = admits.borrow_and_update().is_some() && *committing.borrow_and_update();
                readiness.send_if_modified(|known| std::mem::replace(known, now) != now);
                tokio::select! {
                    changed = admits.changed() => if changed.is_err() { return },
                    changed = committing.changed() => if changed.is_err() { return },
                    _ = stopping.wait_for(|stop| *stop) => { readiness.send_replace(false); return }
                }
            }
        });
        (Self { shared, ready }, Supervision { stop, tasks: [supervisor, announcer, narrator] })
    }

    /// Decides a request. It is decided even if the caller goes away meanwhile.
    ///
    /// # Errors
    ///
    /// [`RequestError`]; a refusal by the rules of admission is an answer instead.
    pub async fn request(&self, request: RecoveryRequest) -> Result<Answer, RequestError> {
        self.in_a_task(move |shared, term| async move { admit::decide(&shared, term, request).await }).await
    }

    /// Explains what a request would meet now. Nothing is committed.
    ///
    /// # Errors
    ///
    /// [`RequestError`]
    pub async fn explain(&self, request: RecoveryRequest) -> Result<Explanation, RequestError> {
        explain::explain(&self.shared, self.admitting_term()?, request).await
    }

    /// Ends an open run by an operator's word, unless its dispatcher's word settles it. True if it had been
    /// resolved so before.
    ///
    /// # Errors
    ///
    /// [`RequestError`]
    pub async fn resolve_run(&self, request: ResolveRequest) -> Result<(Run, bool), RequestError> {
        self.in_a_task(move |shared, term| async move { operator::resolve_run(&shared, term, request).await })
            .await
    }

    /// Decides about a start of what a restart left down.
    ///
    /// # Errors
    ///
    /// [`RequestError`]; a refusal is an answer instead.
    pub async fn approve_start(&self, request: ApproveRequest) -> Result<(Run, StartDecision), RequestError> {
        self.in_a_task(
            move |shared, term| async move { operator::approve_start(&shared, term, request).await },
        )
        .await
    }

    /// Places a hold.
    ///
    /// # Errors
    ///
    /// [`RequestError`]
    pub async fn place_hold(&self, request: HoldRequest) -> Result<Placed, RequestError> {
        self.in_a_task(move |shared, term| async move { hold::place_hold(&shared, term, request).await })
            .await
    }

    /// Lets the time of a hold begin anew. None if it does not stand any more.
    ///
    /// # Errors
    ///
    /// [`RequestError`]
    pub async fn renew_hold(&self, hold: HoldId) -> Result<Option<Hold>, RequestError> {
        self.in_a_task(move |shared, term| async move { hold::renew_hold(&shared, term, hold).await }).await
    }

    /// Lifts holds; gives those that it lifted.
    ///
    /// # Errors
    ///
    /// [`RequestError`]
    pub async fn lift_hold(&self, which: LiftHold, by: String) -> Result<Vec<Hold>, RequestError> {
        self.in_a_task(move |shared, term| async move { hold::lift_holds(&shared, term, which, &by).await })
            .await
    }

    /// Changes limits.
    ///
    /// # Errors
    ///
    /// [`RequestError`]
    pub async fn change_limits(&self, change: LimitsChange) -> Result<(), RequestError> {
        self.in_a_task(move |shared, term| async move {
            match shared.ask(term, Command::ChangeLimits(change)).await? {
                Outcome::Done => Ok(()),
                other => Err(ask::unexpected(other)),
            }
        })
        .await
    }

    /// Does what a client asks for to its end, even if the client goes away meanwhile.
    async fn in_a_task<T, F>(
        &self,
        work: impl FnOnce(Arc<shared::Shared>, Term) -> F + Send + 'static,
    ) -> Result<T, RequestError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, RequestError>> + Send,
    {
        let term = self.admitting_term()?;
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move { work(shared, term).await })
            .await
            .map_err(|error| RequestError::Unknown { detail: error.to_string() })?
    }

    /// Admits nothing any more in this term, since this node is ending. What is open goes on.
    pub fn stop_admitting(&self) {
        self.shared.is_ending.store(true, Ordering::Relaxed);
        self.shared.admitting.send_replace(None);
    }

    /// Makes the reads that follow as new as anything that was answered before this call.
    ///
    /// # Errors
    ///
    /// [`RequestError::Unavailable`] if this node does not lead.
    pub async fn linearizable(&self) -> Result<(), RequestError> {
        let term = (*self.shared.consensus.leadership().borrow()).ok_or_else(|| self.no_leader())?;
        admit::confirm(&self.shared, term).await
    }

    /// Reads the applied ledger of this node. Short: apply waits meanwhile.
    pub fn read<T>(&self, f: impl FnOnce(&Ledger) -> T) -> T {
        self.shared.consensus.read(f)
    }

    /// The cluster clock, as this node reckons it now.
    #[must_use]
    pub fn cluster_time(&self) -> ClusterTime {
        self.shared.consensus.cluster_time()
    }

    /// Moves whenever an entry was applied.
    #[must_use]
    pub fn applied(&self) -> watch::Receiver<LogIndex> {
        self.shared.consensus.applied()
    }

    /// True while this node admits requests: it leads, has applied an entry of its term, has replayed, and its
    /// last proposal was committed.
    #[must_use]
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.ready.clone()
    }

    fn admitting_term(&self) -> Result<Term, RequestError> {
        (*self.shared.admitting.borrow()).ok_or_else(|| self.no_leader())
    }

    fn no_leader(&self) -> RequestError {
        self.shared.unavailable("this node does not lead, or has not replayed yet".to_owned())
    }
}
