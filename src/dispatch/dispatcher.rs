//! The dispatcher: one order, walked through journal and gate to the engine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tracing::{Instrument, debug_span};

use super::guard::OrderPermit;
use super::journal::{Journal, JournalError};
use super::order::{Action, Order};
use super::ticket::Ticket;
use crate::docker::{Connection, Engine, NeverWritten, Sealed, Written};
use crate::env::{Clock, failpoint};
use crate::model::{
    ContainerId, Exchange, Fence, Health, Hole, JournalPosition, JournalWord, NotWritten, NotWrittenCause,
    Observation, Reply, RunId, Sighting, Term,
};

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatched {
    /// What the wire showed.
    pub exchange: Exchange,
    /// The journal that says so.
    pub journal: JournalPosition,
}

/// Why an order was not walked to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DispatchError {
    /// What became of it could not be journalled. Nothing is proven.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run was acted for before: this order is answered, not sent.
    #[error("run {run} was acted for before")]
    ActedBefore {
        /// The run.
        run: RunId,
        /// What the journal says of it.
        known: Box<Known>,
    },
}

/// What the journal says of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Its word.
    pub word: JournalWord,
    /// How the exchange ended, if it is known.
    pub exchange: Option<Exchange>,
    /// The journal that says so.
    pub journal: JournalPosition,
}

/// The dispatcher of one engine. A cheap handle.
#[derive(Clone)]
pub struct Dispatcher(Arc<Inner>);

struct Inner {
    engine: Engine,
    journal: Journal,
    clock: Arc<dyn Clock>,
    /// Exchanges for one container run one at a time.
    turns: Mutex<BTreeMap<ContainerId, Arc<tokio::sync::Mutex<()>>>>,
    /// How many orders are being walked.
    under_way: watch::Sender<usize>,
}

/// One order that is being walked.
struct UnderWay<'a>(&'a watch::Sender<usize>);

impl<'a> UnderWay<'a> {
    fn begin(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Dispatcher {
    /// The dispatcher that sends to `engine` and records in `journal`.
    #[must_use]
    pub fn new(engine: Engine, journal: Journal, clock: Arc<dyn Clock>) -> Self {
        let (turns, under_way) = (Mutex::default(), watch::Sender::new(0));
        Self(Arc::new(Inner { engine, journal, clock, turns, under_way }))
    }

    /// The engine that it sends to.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Its journal, and how far that has got.
    #[must_use]
    pub fn position(&self) -> JournalPosition {
        self.0.journal.position()
    }

    /// Looks at the container once more; a ticket if it is still the life that the order names, and
    /// runs, or for a start has exited.
    ///
    /// # Errors
    ///
    /// What stands in the way. The order was not begun.
    pub async fn mint_ticket(&self, order: &Order) -> Result<Ticket, NotWritten> {
        // The ticket's time begins before the look, so that it is never younger than what was seen.
        let ticket = Ticket::mint(order, self.0.clock.as_ref());
        let seen = self.compare(order).await?;
        Ok(ticket.seen_as(seen.name))
    }

    /// Sends the order's one request, if everything still allows it, and waits for how it ends.
    ///
    /// Every answer is in the journal before it is given. An order that comes twice is sent once.
    ///
    /// # Errors
    ///
    /// [`DispatchError`] if the run was acted for before, if a later restart of its container was, or if what
    /// became of it could not be journalled.
    pub async fn dispatch(&self, order: Order, ticket: Ticket) -> Result<Dispatched, DispatchError> {
        let _under_way = UnderWay::begin(&self.0.under_way);
        let turn = self.turn(&order.incarnation.container_id);
        let _turn = turn.lock().await;
        if let Some(known) = self.known(&order.run) {
            return Err(DispatchError::ActedBefore { run: order.run, known: Box::new(known) });
        }
        // It may have been sent: to answer that it was not would be a guess.
        self.0.journal.require_unfolded(&order.run, &order.fence, &order.incarnation.container_id)?;
        let exchange = match self.send(&order, ticket).await {
            Ok(Sealed::NeverWritten(proof)) | Err(proof) => Exchange::from(proof),
            Ok(written @ Sealed::Written(_)) => Exchange::from(written),
        };
        failpoint::reach("dispatch-before-journal-end");
        let journal =
            self.0.journal.end(&order.run, &order.fence, &order.incarnation.container_id, &exchange).await?;
        failpoint::reach("dispatch-after-journal-end");
        Ok(Dispatched { exchange, journal })
    }

    /// Revokes a run for good, and says what is known of it.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if it could not be made durable: it proves nothing then.
    pub async fn revoke(
        &self,
        run: &RunId,
        fence: &Fence,
        container_id: &ContainerId,
    ) -> Result<Known, JournalError> {
        let (word, exchange) = self.0.journal.revoke(run, fence, container_id).await?;
        Ok(Known { word, exchange, journal: self.position() })
    }

    /// How many orders are being walked: whoever ends the process now loses the answers of those that left.
    #[must_use]
    pub fn under_way(&self) -> watch::Receiver<usize> {
        self.0.under_way.subscribe()
    }

    /// What is known of a run for which something was done already.
    #[must_use]
    pub fn known(&self, run: &RunId) -> Option<Known> {
        let (word, exchange) = self.0.journal.acted_for(run)?;
        Some(Known { word, exchange, journal: self.position() })
    }

    /// Accepts a term: nothing of a lower one is sent any more.
    ///
    /// # Errors
    ///
    /// [`JournalError`] if it could not be made durable.
    pub async fn raise_term(&self, term: Term) -> Result<JournalPosition, JournalError> {
        self.0.journal.raise_term(term).await
    }

    async fn send(&self, order: &Order, ticket: Ticket) -> Result<Sealed, NeverWritten> {
        let Inner { engine, journal, clock, .. } = &*self.0;
        failpoint::reach("dispatch-before-connect");
        let run = &order.run;
        let connecting = debug_span!(target: "relatch::step", "connect", %run);
        let connection = engine.connect().instrument(connecting).await?;
        failpoint::reach("dispatch-after-connect");
        let intending = debug_span!(target: "relatch::step", "intent", %run);
        if let Err(why) = journal.intend(order).instrument(intending).await {
            return Err(connection.close(why));
        }
        failpoint::reach("dispatch-after-intent");
        // Once more, over another connection: the intent may have waited for the disk.
        let comparing = debug_span!(target: "relatch::step", "compare", %run);
        if let Err(why) = self.compare(order).instrument(comparing).await {
            return Err(connection.close(why));
        }
        let permit = Arc::new(OrderPermit {
            guard: Arc::clone(journal.guard()),
            order: order.clone(),
            ticket,
            clock: Arc::clone(clock),
        });
        let exchanging = debug_span!(target: "relatch::step", "exchange", %run);
        let sealed = post(order, connection, Arc::clone(&permit)).instrument(exchanging).await;
        // The hole does what an HTTP library may do by itself.
        let is_lost = matches!(&sealed, Sealed::Written(Written { reply: Reply::Lost(_), .. }));
        if is_lost && engine.holes().open(Hole::PostIsRetried) {
            return Ok(post(order, engine.connect().await?, permit).await);
        }
        Ok(sealed)
    }

    /// The container must still be the life that the order names, and in the state that its action wants.
    async fn compare(&self, order: &Order) -> Result<Sighting, NotWritten> {
        let expected = &order.incarnation;
        let changed = |detail| NotWritten { cause: NotWrittenCause::IncarnationChanged, detail };
        let seen = match self.0.engine.observe(&expected.container_id).await {
            Observation::Seen(seen) => seen,
            Observation::Gone { .. } => {
                return Err(changed(format!("container {} is gone", expected.container_id)));
            }
            Observation::Unreadable { detail } => {
                return Err(NotWritten { cause: NotWrittenCause::Unreadable, detail });
            }
        };
        if seen.engine_id != expected.engine_id {
            return Err(changed(format!("engine {} answers", seen.engine_id)));
        }
        if seen.started_at.instant() != Some(expected.started_at) {
            return Err(changed("the container was started again meanwhile".to_owned()));
        }
        if seen.state != order.action.wants() {
            return Err(changed(format!("the container is {:?}", seen.state)));
        }
        if order.if_unhealthy && seen.health != Health::Unhealthy {
            return Err(changed(format!("its health is {:?} by now, and no longer Unhealthy", seen.health)));
        }
        Ok(seen)
    }

    fn turn(&self, container_id: &ContainerId) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.turns.lock().unwrap_or_else(PoisonError::into_inner);
        // Turns that nobody holds or waits for are forgotten.
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(container_id.clone()).or_default())
    }
}

/// The order's one request, over its own connection.
async fn post(order: &Order, connection: Connection, permit: Arc<OrderPermit>) -> Sealed {
    let container_id = &order.incarnation.container_id;
    let deadline = Duration::from_millis(order.client_deadline_ms);
    match order.action {
        Action::Restart(grace) => connection.restart(container_id, grace, deadline, permit).await,
        Action::Start => connection.start(container_id, deadline, permit).await,
    }
}
