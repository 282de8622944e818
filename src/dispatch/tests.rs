//! The dispatcher against the scripted engine: what was sent is read from the engine's own log.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;

use super::*;
use crate::docker::{Endpoint, Engine, EngineLimits};
use crate::env::{Clock, OsRandomness, holes};
use crate::model::*;
use crate::sim;
use crate::storage::Database;

/// Clocks that stand still until a test moves them.
#[derive(Default)]
struct SetClock {
    boottime_ms: AtomicU64,
    wall_ms: AtomicU64,
}

impl Clock for SetClock {
    fn monotonic_ms(&self) -> u64 {
        0
    }
    fn wall_ms(&self) -> u64 {
        self.wall_ms.load(Ordering::SeqCst)
    }
    fn boottime_ms(&self) -> u64 {
        self.boottime_ms.load(Ordering::SeqCst)
    }
}

struct World {
    engine: sim::Engine,
    dispatcher: Dispatcher,
    clock: Arc<SetClock>,
    dir: TempDir,
}

fn cluster() -> ClusterId {
    ClusterId::new("c".repeat(32)).unwrap()
}

fn run_id(n: u64) -> RunId {
    RunId::new(format!("{n:032x}")).unwrap()
}

fn journal(dir: &Path) -> Result<Journal, JournalError> {
    let database = Database::open(dir.join("journal"), Journal::FAMILIES).unwrap();
    Journal::open(database, &cluster(), &OsRandomness, holes().unwrap())
}

impl World {
    async fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let engine = sim::Engine::builder().container(sim::ContainerSpec::named("web")).build().unwrap();
        let socket = dir.path().join("docker.sock");
        engine.serve_unix(&socket).await.unwrap();
        let clock = Arc::new(SetClock::default());
        clock.wall_ms.store(1_000_000, Ordering::SeqCst);
        let client = Engine::new(Endpoint::parse(socket.to_str().unwrap()).unwrap(), EngineLimits::default());
        let dispatcher = Dispatcher::new(client, journal(dir.path()).unwrap(), clock.clone());
        Self { engine, dispatcher, clock, dir }
    }

    /// An order for the container as it is now.
    async fn order(&self, n: u64, term: u64, index: u64) -> Order {
        let id = self.engine.container_id("web").unwrap();
        let id = ContainerId::new(&id).unwrap();
        let Observation::Seen(seen) = self.dispatcher.engine().observe(&id).await else {
            panic!("the engine does not show its container");
        };
        Order {
            run: run_id(n),
            fence: Fence { cluster: cluster(), term: Term(term), index: LogIndex(index) },
            incarnation: Incarnation {
                engine_id: seen.engine_id,
                container_id: id,
                started_at: seen.started_at.instant().unwrap(),
            },
            if_unhealthy: false,
            action: Action::Restart(Grace { seconds: 1, source: GraceSource::Request }),
            client_deadline_ms: 16_000,
            dispatch_by_ms: 5_000,
        }
    }

    async fn send(&self, order: &Order) -> Exchange {
        let ticket = self.dispatcher.mint_ticket(order).await.unwrap();
        self.dispatcher.dispatch(order.clone(), ticket).await.unwrap().exchange
    }

    /// A later restart of its container was acted for, so that nothing is said of this one, and nothing sent.
    async fn is_answered_and_not_sent(&self, order: &Order) {
        let ticket = self.dispatcher.mint_ticket(order).await.unwrap();
        let answered = self.dispatcher.dispatch(order.clone(), ticket).await;
        let folded = matches!(answered, Err(DispatchError::Journal(JournalError::Folded { .. })));
        assert!(folded, "{answered:?}");
    }

    fn posts(&self) -> usize {
        let id = self.engine.container_id("web").unwrap();
        self.engine.log().posts(&id).len()
    }

    fn starts(&self) -> usize {
        let id = self.engine.container_id("web").unwrap();
        self.engine.log().history().requests(&id, sim::Endpoint::Start).len()
    }

    async fn end(self) {
        self.engine.shutdown().await.unwrap();
    }
}

fn refused_for(exchange: &Exchange) -> NotWrittenCause {
    match exchange {
        Exchange::NeverWritten(why) => why.cause,
        Exchange::Written { .. } => panic!("it was written: {exchange:?}"),
    }
}

#[tokio::test]
async fn an_order_is_sent_once_however_often_it_comes() {
    let world = World::new().await;
    let order = world.order(1, 1, 10).await;
    let ticket = world.dispatcher.mint_ticket(&order).await.unwrap();
    let first = world.dispatcher.dispatch(order.clone(), ticket.clone()).await.unwrap();
    assert!(first.exchange.was_written(), "{first:?}");
    let mut again = world.order(1, 1, 10).await;
    again.run = order.run.clone();
    let ticket = world.dispatcher.mint_ticket(&again).await.unwrap();
    let second = world.dispatcher.dispatch(again, ticket).await;
    assert_eq!(world.posts(), 1, "one order, one POST; the second answer was {second:?}");
    let Err(DispatchError::ActedBefore { known, .. }) = second else { panic!("{second:?}") };
    assert_eq!(known.exchange, Some(first.exchange), "the first word stands");
    world.end().await;
}

#[tokio::test]
async fn a_delayed_order_below_a_later_one_of_its_container_is_answered_not_sent() {
    let world = World::new().await;
    let early = world.order(1, 1, 10).await;
    // The leader heard "no intent", settled, and opened another in the same term.
    let revoked =
        world.dispatcher.revoke(&early.run, &early.fence, &early.incarnation.container_id).await.unwrap();
    assert_eq!(revoked.word, JournalWord::NoIntent);
    let late = world.order(2, 1, 11).await;
    assert!(world.send(&late).await.was_written());
    let mut delayed = world.order(1, 1, 10).await;
    delayed.fence = early.fence.clone();
    world.is_answered_and_not_sent(&delayed).await;
    assert_eq!(world.posts(), 1);
    world.end().await;
}

#[tokio::test]
async fn a_lower_term_is_refused_once_a_higher_one_is_accepted() {
    let world = World::new().await;
    world.dispatcher.raise_term(Term(5)).await.unwrap();
    let order = world.order(1, 4, 10).await;
    assert_eq!(refused_for(&world.send(&order).await), NotWrittenCause::Fenced);
    assert_eq!(world.posts(), 0);
    world.end().await;
}

#[tokio::test]
async fn a_fence_of_another_cluster_is_refused_whatever_its_term() {
    let world = World::new().await;
    let mut order = world.order(1, 99, 99).await;
    order.fence.cluster = ClusterId::new("e".repeat(32)).unwrap();
    assert_eq!(refused_for(&world.send(&order).await), NotWrittenCause::Fenced);
    assert_eq!(world.posts(), 0);
    world.end().await;
}

#[tokio::test]
async fn a_ticket_is_void_when_either_clock_says_that_its_time_has_passed() {
    for (boottime_ms, wall_ms) in [(5_001, 0), (0, 5_001)] {
        let world = World::new().await;
        let order = world.order(1, 1, 10).await;
        let ticket = world.dispatcher.mint_ticket(&order).await.unwrap();
        world.clock.boottime_ms.fetch_add(boottime_ms, Ordering::SeqCst);
        world.clock.wall_ms.fetch_add(wall_ms, Ordering::SeqCst);
        let answered = world.dispatcher.dispatch(order.clone(), ticket).await.unwrap();
        assert_eq!(refused_for(&answered.exchange), NotWrittenCause::TicketExpired);
        assert_eq!(world.posts(), 0);
        // The intent was written, then refused at the gate: the journal says not-sent, before the answer.
        assert_eq!(world.dispatcher.known(&order.run).unwrap().word, JournalWord::NotSent);
        world.end().await;
    }
}

#[tokio::test]
async fn a_ticket_is_void_when_the_wall_clock_steps_back() {
    let world = World::new().await;
    let order = world.order(1, 1, 10).await;
    let ticket = world.dispatcher.mint_ticket(&order).await.unwrap();
    world.clock.wall_ms.store(0, Ordering::SeqCst);
    let answered = world.dispatcher.dispatch(order, ticket).await.unwrap();
    assert_eq!(refused_for(&answered.exchange), NotWrittenCause::TicketExpired);
    assert_eq!(world.posts(), 0);
    world.end().await;
}

#[tokio::test]
async fn a_container_that_was_started_again_meanwhile_is_left_alone() {
    let world = World::new().await;
    let order = world.order(1, 1, 10).await;
    let ticket = world.dispatcher.mint_ticket(&order).await.unwrap();
    world.engine.act(Some("web"), sim::Action::MoveStartedAt).unwrap();
    let answered = world.dispatcher.dispatch(order.clone(), ticket).await.unwrap();
    assert_eq!(refused_for(&answered.exchange), NotWrittenCause::IncarnationChanged);
    assert_eq!(world.posts(), 0);
    assert!(world.dispatcher.mint_ticket(&order).await.is_err(), "nor is a ticket minted for it");
    world.end().await;
}

#[tokio::test]
async fn a_paused_container_is_left_alone() {
    let world = World::new().await;
    let order = world.order(1, 1, 10).await;
    let ticket = world.dispatcher.mint_ticket(&order).await.unwrap();
    world.engine.act(Some("web"), sim::Action::Pause).unwrap();
    let answered = world.dispatcher.dispatch(order, ticket).await.unwrap();
    assert_eq!(refused_for(&answered.exchange), NotWrittenCause::IncarnationChanged);
    assert_eq!(world.posts(), 0);
    world.end().await;
}

#[tokio::test]
async fn an_engine_that_refuses_connections_proves_nothing_sent_and_closes_the_order_for_good() {
    let world = World::new().await;
    let order = world.order(1, 1, 10).await;
    let ticket = world.dispatcher.mint_ticket(&order).await.unwrap();
    world.engine.listen(sim::ListenMode::Refuse).await;
    let answered = world.dispatcher.dispatch(order.clone(), ticket.clone()).await.unwrap();
    assert_eq!(refused_for(&answered.exchange), NotWrittenCause::Unreachable);
    world.engine.listen(sim::ListenMode::Open).await;
    let late = world.dispatcher.dispatch(order, ticket).await;
    assert!(matches!(late, Err(DispatchError::ActedBefore { .. })), "{late:?}");
    assert_eq!(world.posts(), 0);
    world.end().await;
}

#[tokio::test]
async fn what_is_to_be_restarted_only_while_unhealthy_is_left_alone_once_it_is_not() {
    let world = World::new().await;
    let order = Order { if_unhealthy: true, ..world.order(1, 1, 10).await };
    let refused = world.dispatcher.mint_ticket(&order).await.unwrap_err();
    assert_eq!(refused.cause, NotWrittenCause::IncarnationChanged);
    assert!(refused.detail.contains("health is None by now"), "{}", refused.detail);
    assert_eq!(world.posts(), 0);
    world.end().await;
}

/// A container that exited, and the order to start it.
async fn left_down(world: &World, n: u64, index: u64) -> Order {
    world.engine.act(Some("web"), sim::Action::Exit { code: 137 }).unwrap();
    Order { action: Action::Start, ..world.order(n, 1, index).await }
}

#[tokio::test]
async fn a_start_of_a_container_that_was_left_down_is_sent_once() {
    let world = World::new().await;
    let order = left_down(&world, 1, 10).await;
    let ticket = world.dispatcher.mint_ticket(&order).await.unwrap();
    let first = world.dispatcher.dispatch(order.clone(), ticket.clone()).await.unwrap();
    let Exchange::Written { reply: Reply::Complete { status: 204, .. }, .. } = &first.exchange else {
        panic!("{first:?}")
    };
    let id = order.incarnation.container_id.as_str();
    assert_eq!(world.engine.log().history().starts(id), 1);
    let again = world.dispatcher.dispatch(order.clone(), ticket).await;
    assert!(matches!(again, Err(DispatchError::ActedBefore { .. })), "{again:?}");
    assert_eq!((world.starts(), world.posts()), (1, 0), "one order, one POST, and it is a start");
    world.end().await;
}

#[tokio::test]
async fn a_start_of_a_container_that_runs_is_refused_before_the_intent() {
    let world = World::new().await;
    let order = Order { action: Action::Start, ..world.order(1, 1, 10).await };
    let refused = world.dispatcher.mint_ticket(&order).await.unwrap_err();
    assert_eq!(refused.cause, NotWrittenCause::IncarnationChanged, "{refused:?}");
    assert_eq!(world.dispatcher.known(&order.run), None, "nothing is in the journal");
    assert_eq!(world.starts(), 0);
    world.end().await;
}

#[tokio::test]
async fn a_container_that_was_started_after_its_ticket_is_not_started_again() {
    let world = World::new().await;
    let order = left_down(&world, 1, 10).await;
    let ticket = world.dispatcher.mint_ticket(&order).await.unwrap();
    world.engine.act(Some("web"), sim::Action::SetStatus { status: sim::Status::Running }).unwrap();
    let answered = world.dispatcher.dispatch(order.clone(), ticket).await.unwrap();
    assert_eq!(refused_for(&answered.exchange), NotWrittenCause::IncarnationChanged);
    assert_eq!(world.dispatcher.known(&order.run).unwrap().word, JournalWord::NotSent);
    assert_eq!(world.starts(), 0);
    world.end().await;
}

#[tokio::test]
async fn a_start_below_its_restart_or_revoked_is_answered_not_sent() {
    let world = World::new().await;
    let restart = world.order(1, 1, 10).await;
    assert!(world.send(&restart).await.was_written());
    let below = left_down(&world, 2, 9).await;
    world.is_answered_and_not_sent(&below).await;
    let above =
        Order { run: run_id(3), fence: Fence { index: LogIndex(11), ..below.fence.clone() }, ..below };
    let container_id = &above.incarnation.container_id;
    let revoked = world.dispatcher.revoke(&above.run, &above.fence, container_id).await.unwrap();
    assert_eq!(revoked.word, JournalWord::NoIntent);
    assert_eq!(refused_for(&world.send(&above).await), NotWrittenCause::Revoked);
    let next = Order { run: run_id(4), fence: Fence { index: LogIndex(12), ..above.fence.clone() }, ..above };
    assert!(world.send(&next).await.was_written());
    assert_eq!((world.posts(), world.starts()), (1, 1));
    world.end().await;
}

#[tokio::test]
async fn a_restart_of_a_container_that_has_exited_is_refused() {
    let world = World::new().await;
    let order = world.order(1, 1, 10).await;
    world.engine.act(Some("web"), sim::Action::Exit { code: 1 }).unwrap();
    let refused = world.dispatcher.mint_ticket(&order).await.unwrap_err();
    assert_eq!(refused.cause, NotWrittenCause::IncarnationChanged, "{refused:?}");
    assert_eq!(world.posts(), 0);
    world.end().await;
}

#[tokio::test]
async fn a_revoked_order_that_was_sent_already_is_said_to_have_an_intent() {
    let world = World::new().await;
    let order = world.order(1, 1, 10).await;
    world.send(&order).await;
    let word =
        world.dispatcher.revoke(&order.run, &order.fence, &order.incarnation.container_id).await.unwrap();
    assert_eq!(word.word, JournalWord::Intent);
    assert!(word.exchange.is_some());
    world.end().await;
}

#[tokio::test]
async fn a_journal_that_is_opened_again_keeps_its_identity_and_what_it_knows() {
    let world = World::new().await;
    let order = world.order(1, 3, 10).await;
    world.send(&order).await;
    let before = world.dispatcher.position();
    let World { engine, dispatcher, clock, dir } = world;
    let client = dispatcher.engine().clone();
    drop(dispatcher);
    let again = Dispatcher::new(client, journal(dir.path()).unwrap(), clock);
    assert_eq!(again.position(), before);
    assert_eq!(again.known(&order.run).unwrap().word, JournalWord::Intent);
    // The floor and the term are kept for ever.
    let mut late = order.clone();
    late.run = run_id(2);
    late.fence.index = LogIndex(9);
    let container_id = late.incarnation.container_id.clone();
    let Observation::Seen(seen) = again.engine().observe(&container_id).await else { panic!() };
    late.incarnation.started_at = seen.started_at.instant().unwrap();
    let ticket = again.mint_ticket(&late).await.unwrap();
    let answered = again.dispatch(late, ticket).await;
    let folded = matches!(answered, Err(DispatchError::Journal(JournalError::Folded { .. })));
    assert!(folded, "{answered:?}");
    engine.shutdown().await.unwrap();
}

#[test]
fn a_journal_of_another_cluster_is_refused() {
    let dir = TempDir::new().unwrap();
    drop(journal(dir.path()).unwrap());
    let database = Database::open(dir.path().join("journal"), Journal::FAMILIES).unwrap();
    let other = ClusterId::new("f".repeat(32)).unwrap();
    let refused = Journal::open(database, &other, &OsRandomness, Holes::none());
    assert!(matches!(refused.err(), Some(JournalError::OtherCluster { .. })));
}

/// The journal holds one restart for each container, however many there were; of those before it, it says nothing.
#[tokio::test]
async fn what_is_known_of_earlier_restarts_is_folded_into_the_floor() {
    let world = World::new().await;
    let mut orders = Vec::new();
    for n in 1..=3 {
        let order = world.order(n, 1, n * 10).await;
        world.send(&order).await;
        orders.push(order);
    }
    let [first, _, last] = &orders[..] else { panic!("three") };
    let id = &first.incarnation.container_id;
    assert_eq!(world.dispatcher.known(&first.run), None);
    assert_eq!(world.dispatcher.known(&last.run).unwrap().word, JournalWord::Intent);
    // It had an intent, and must never be said to have had none.
    let asked = world.dispatcher.revoke(&first.run, &first.fence, id).await;
    assert!(matches!(asked, Err(JournalError::Folded { .. })), "{asked:?}");
    // It is not sent again either.
    let now = Order { fence: first.fence.clone(), run: first.run.clone(), ..world.order(4, 1, 40).await };
    world.is_answered_and_not_sent(&now).await;
    assert_eq!(world.posts(), 3);
    // And so it is on disk.
    let World { engine, dispatcher, clock: _, dir } = world;
    drop(dispatcher);
    let again = journal(dir.path()).unwrap();
    assert!(again.acted_for(&first.run).is_none());
    let asked = again.revoke(&first.run, &first.fence, id).await;
    assert!(matches!(asked, Err(JournalError::Folded { .. })), "{asked:?}");
    engine.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_start_leaves_what_is_known_of_its_restart() {
    let world = World::new().await;
    let restart = world.order(1, 1, 10).await;
    world.send(&restart).await;
    let start = left_down(&world, 2, 20).await;
    world.send(&start).await;
    assert_eq!(world.dispatcher.known(&restart.run).unwrap().word, JournalWord::Intent);
    world.end().await;
}
