//! A backend that is nothing but a ledger: what is applied to it is what the services see.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};

use crate::api::backend::Backend;
use crate::api::serve::{ServeError, serve_backend};
use crate::coordinator::{
    Answer, ApproveRequest, Explanation, HoldRequest, Placed, RecoveryRequest, RequestError, ResolveRequest,
};
use crate::ledger::{
    Baseline, BindHost, Command, Diagnosis, DispatcherRef, EntryPosition, Guard, Hold, HoldOwner, Ledger,
    LiftHold, LimitsChange, Observe, OpenInterlock, Outcome, PlaceHold, Proposer, RULES_LEVEL, Reason,
    ReasonCode, RecordExchange, RefuseRequest, Rejection, Request, Resolve, Run, Stamped, StartDecision,
};
use crate::model::{
    ClusterId, ClusterTime, ContainerId, ContainerState, EngineId, EngineInstant, Exchange, Grace,
    GraceSource, Health, HoldId, Holes, HostName, Incarnation, JournalId, JournalPosition, LogIndex,
    LostReply, NodeId, Observation, ProcessNonce, Reply, RunId, Sighting, StartedAt, Target, Term, WallTime,
    Wire,
};

pub(super) const TERM: Term = Term(7);

/// 2024-05-01T10:20:30Z.
pub(super) const STARTED_S: i64 = 1_714_558_830;

/// The longest that a test waits for what must come.
pub(super) const SOON: Duration = Duration::from_secs(20);

struct Page {
    ledger: Ledger,
    index: u64,
    clock: u64,
    /// What stands in the way of every request and read.
    trouble: Option<RequestError>,
}

/// A ledger behind the services.
#[derive(Clone)]
pub(super) struct Book {
    page: Arc<Mutex<Page>>,
    applied: watch::Sender<LogIndex>,
    pub(super) admits: watch::Sender<bool>,
}

impl Book {
    /// A ledger with one host, `local`.
    pub(super) fn new() -> Self {
        let ledger = Ledger::new(ClusterId::new("c".repeat(32)).unwrap(), Holes::none());
        let page = Page { ledger, index: 0, clock: 1_000, trouble: None };
        let book = Self {
            page: Arc::new(Mutex::new(page)),
            applied: watch::Sender::new(LogIndex(0)),
            admits: watch::Sender::new(true),
        };
        book.apply(Command::RaiseRulesLevel { level: RULES_LEVEL });
        book.apply(Command::BindHost(BindHost {
            host: HostName::new("local").unwrap(),
            engine_id: engine_id(),
            dispatcher: dispatcher(),
        }));
        book
    }

    /// Applies a command as the next entry, 100 ms after the last.
    pub(super) fn apply(&self, command: Command) -> Outcome {
        let mut page = self.page.lock().unwrap();
        page.index += 1;
        page.clock += 100;
        let position = EntryPosition { term: TERM, index: LogIndex(page.index) };
        let stamped = Stamped {
            level: RULES_LEVEL,
            clock: ClusterTime(page.clock),
            wall: WallTime(1_714_558_900_000 + page.clock),
            node: NodeId(1),
            command,
        };
        let outcome = page.ledger.apply(position, stamped).unwrap().outcome;
        drop(page);
        self.applied.send_replace(position.index);
        outcome
    }

    /// Opens a run of container `number`, named `c<number>`.
    pub(super) fn open(&self, number: u8) -> Run {
        let request = Request {
            id: None,
            caller: "anonymous".into(),
            by: None,
            digest: "d".into(),
            reason: "stuck".into(),
            spelling: "s".into(),
        };
        self.decide(number, request)
    }

    fn decide(&self, number: u8, request: Request) -> Run {
        let id = RunId::new(format!("{:032x}", self.page.lock().unwrap().index + 1)).unwrap();
        let name = format!("c{number}");
        let outcome = self.apply(Command::OpenInterlock(Box::new(OpenInterlock {
            run: id,
            request,
            target: Target::container(&HostName::new("local").unwrap(), &name).unwrap(),
            baseline: Baseline {
                incarnation: incarnation(number, STARTED_S),
                name,
                state: ContainerState::Running,
                health: Health::Unhealthy,
                health_check: None,
            },
            expect: None,
            grace: Grace { seconds: 10, source: GraceSource::Policy },
            diagnosis: Diagnosis::Callers,
            proposer: Proposer { node: NodeId(1), nonce: ProcessNonce::new("9".repeat(32)).unwrap() },
            dispatcher: dispatcher(),
            term: TERM,
        })));
        let Outcome::Decided(decision) = outcome else { panic!("{outcome:?}") };
        self.run(&decision.run)
    }

    /// Refuses a request for a container that is not there.
    pub(super) fn refuse(&self, name: &str) -> RunId {
        let id = RunId::new(format!("{:032x}", self.page.lock().unwrap().index + 1)).unwrap();
        let target = Target::container(&HostName::new("local").unwrap(), name).unwrap();
        self.apply(Command::RefuseRequest(Box::new(RefuseRequest {
            run: id.clone(),
            request: Request {
                id: None,
                caller: "anonymous".to_owned(),
                by: None,
                digest: "d".into(),
                reason: "stuck".into(),
                spelling: target.to_string(),
            },
            target,
            reasons: vec![Reason::new(ReasonCode::TargetNotFound, "no such container", WallTime(1))],
            diagnosis: Diagnosis::Callers,
        })));
        id
    }

    /// The reply of a run's request is lost.
    pub(super) fn lose_reply(&self, run: &Run) {
        let lost = LostReply { status: None, timed_out: false, detail: "connection reset".into() };
        self.record(run, Exchange::Written { wire: Wire::Unix, bytes: 180, reply: Reply::Lost(lost) });
    }

    pub(super) fn record(&self, run: &Run, exchange: Exchange) {
        let journal = JournalPosition { sequence: 9, ..dispatcher().journal };
        let outcome = self.apply(Command::RecordExchange(Box::new(RecordExchange {
            run: run.id.clone(),
            start: None,
            journal,
            exchange,
        })));
        assert_eq!(outcome, Outcome::Recorded { changed: true });
    }

    /// A look at container `number` shows this start.
    pub(super) fn observe(&self, run: &Run, number: u8, started_at: StartedAt) {
        let sighting = Sighting {
            engine_id: engine_id(),
            container_id: container_id(number),
            name: format!("c{number}"),
            started_at,
            finished_at: None,
            state: ContainerState::Running,
            health: Health::Starting,
        };
        let outcome = self.apply(Command::Observe(Box::new(Observe {
            run: run.id.clone(),
            observation: Observation::Seen(sighting),
        })));
        assert_eq!(outcome, Outcome::Recorded { changed: true });
    }

    pub(super) fn run(&self, id: &RunId) -> Run {
        self.page.lock().unwrap().ledger.run(id).cloned().expect("the run is there")
    }

    /// From now on, every request and read fails with this.
    pub(super) fn trouble(&self, trouble: RequestError) {
        self.page.lock().unwrap().trouble = Some(trouble);
    }
}

impl Backend for Book {
    async fn request(&self, request: RecoveryRequest) -> Result<Answer, RequestError> {
        self.linearizable().await?;
        let known = request.id.as_ref().and_then(|id| {
            self.read(|ledger| ledger.remembered(id).map(|r| (r.digest.clone(), r.decision.clone())))
        });
        let stored = Request {
            id: request.id,
            caller: "anonymous".to_owned(),
            by: request.by,
            digest: request.digest,
            reason: request.reason,
            spelling: request.spelling.to_string(),
        };
        match known {
            Some((digest, decision)) if digest != stored.digest => {
                Err(RequestError::RequestIdReused { run: decision.run })
            }
            Some((_, mut decision)) => {
                decision.repeated = true;
                Ok(Answer { run: self.run(&decision.run), decision, dry_run: false })
            }
            None => {
                let number = request.spelling.path().trim_start_matches('c').parse().map_err(|_| {
                    RequestError::Invalid {
                        field: "target".into(),
                        rule: "containers here are called c0 to c255".into(),
                    }
                })?;
                let id = stored.id.clone();
                let run = self.decide(number, stored);
                let decision = id
                    .and_then(|id| self.read(|ledger| ledger.remembered(&id).map(|r| r.decision.clone())))
                    .expect("requests here have an id");
                Ok(Answer { decision, run, dry_run: false })
            }
        }
    }

    async fn explain(&self, _: RecoveryRequest) -> Result<Explanation, RequestError> {
        Err(no_engine())
    }

    async fn resolve_run(&self, request: ResolveRequest) -> Result<(Run, bool), RequestError> {
        let ResolveRequest { run, by, reason, assertion, accept_late_post } = request;
        let id = run.clone();
        let resolve = Resolve { run, by, reason, assertion, accept_late_post };
        match self.apply(Command::Resolve(Box::new(resolve))) {
            Outcome::Recorded { changed } => Ok((self.run(&id), !changed)),
            other => Err(RequestError::Precondition {
                kind: "RUN_SETTLED",
                subject: id.to_string(),
                detail: format!("{other:?}"),
            }),
        }
    }

    async fn approve_start(&self, _: ApproveRequest) -> Result<(Run, StartDecision), RequestError> {
        Err(no_engine())
    }

    async fn place_hold(&self, request: HoldRequest) -> Result<Placed, RequestError> {
        let HoldRequest { scope, by, reason, duration_ms, id } = request;
        let id = id.expect("requests here have an id");
        let place =
            PlaceHold { id, scope, asked_as: None, owner: HoldOwner::Operator, by, reason, duration_ms };
        match self.apply(Command::PlaceHold(Box::new(place))) {
            Outcome::Held { hold, repeated } => {
                Ok(Placed { hold: *hold, repeated, open_runs: Vec::new(), note: String::new() })
            }
            other => panic!("{other:?}"),
        }
    }

    async fn renew_hold(&self, hold: HoldId) -> Result<Option<Hold>, RequestError> {
        match self.apply(Command::RenewHold { hold }) {
            Outcome::Renewed(hold) => Ok(hold.map(|hold| *hold)),
            other => panic!("{other:?}"),
        }
    }

    async fn lift_hold(&self, which: LiftHold, _: String) -> Result<Vec<Hold>, RequestError> {
        match self.apply(Command::LiftHold(which)) {
            Outcome::Lifted(lifted) => Ok(lifted),
            other => panic!("{other:?}"),
        }
    }

    async fn change_limits(&self, change: LimitsChange) -> Result<(), RequestError> {
        match self.apply(Command::ChangeLimits(change)) {
            Outcome::Done => Ok(()),
            Outcome::Rejected(why) => {
                Err(RequestError::Invalid { field: "limits".into(), rule: why.to_string() })
            }
            other => panic!("{other:?}"),
        }
    }

    async fn linearizable(&self) -> Result<(), RequestError> {
        self.page.lock().unwrap().trouble.clone().map_or(Ok(()), Err)
    }

    fn read<T>(&self, look: impl FnOnce(&Ledger) -> T) -> T {
        look(&self.page.lock().unwrap().ledger)
    }

    fn cluster_time(&self) -> ClusterTime {
        ClusterTime(self.page.lock().unwrap().clock)
    }

    fn applied(&self) -> watch::Receiver<LogIndex> {
        self.applied.subscribe()
    }

    fn ready(&self) -> watch::Receiver<bool> {
        self.admits.subscribe()
    }
}

/// A server over a [`Book`].
pub(super) struct Served {
    pub(super) book: Book,
    pub(super) channel: Channel,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<Result<(), ServeError>>,
}

impl Served {
    pub(super) async fn start() -> Self {
        let book = Book::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let server = tokio::spawn(serve_backend(book.clone(), listener, async {
            let _ = stopped.await;
        }));
        let channel = Endpoint::from_shared(address).unwrap().connect().await.unwrap();
        Self { book, channel, stop: Some(stop), server }
    }

    /// Begins the shutdown.
    pub(super) fn stop(&mut self) {
        let _ = self.stop.take().expect("it is stopped once").send(());
    }

    /// Waits for the end.
    pub(super) async fn ended(self) {
        drop(self.channel);
        tokio::time::timeout(SOON, self.server).await.expect("the server ends").unwrap().unwrap();
    }
}

fn no_engine() -> RequestError {
    RequestError::Unavailable { detail: "there is no engine in a book".into() }
}

fn dispatcher() -> DispatcherRef {
    let journal = JournalPosition { journal: JournalId::new("a".repeat(32)).unwrap(), sequence: 0 };
    DispatcherRef { guard: Guard::Agent, journal }
}

fn engine_id() -> EngineId {
    EngineId::new("engine-1").unwrap()
}

pub(super) fn container_id(number: u8) -> ContainerId {
    ContainerId::new(format!("{number:064x}")).unwrap()
}

pub(super) fn incarnation(number: u8, started_s: i64) -> Incarnation {
    Incarnation {
        engine_id: engine_id(),
        container_id: container_id(number),
        started_at: EngineInstant::new(started_s, 5).unwrap(),
    }
}

/// A start of a container, in seconds after the baseline's.
pub(super) fn started(after_s: i64) -> StartedAt {
    StartedAt::At(EngineInstant::new(STARTED_S + after_s, 5).unwrap())
}

/// Makes sure that a rejection is told from a change.
#[test]
fn a_book_tells_a_rejection_from_a_change() {
    let book = Book::new();
    let refused = book.refuse("gone");
    let run = book.run(&refused);
    let journal = dispatcher().journal;
    let exchange = Exchange::Written {
        wire: Wire::Unix,
        bytes: 1,
        reply: Reply::Lost(LostReply { status: None, timed_out: true, detail: String::new() }),
    };
    let record = RecordExchange { run: run.id, start: None, journal, exchange };
    let outcome = book.apply(Command::RecordExchange(Box::new(record)));
    assert!(matches!(outcome, Outcome::Rejected(Rejection::NoInterlock { .. })), "{outcome:?}");
}
