//! A leader inside this process: for what a test cannot reach in a node that is a process of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use relatch::consensus::{self, Consensus};
use relatch::coordinator::{
    Answer, Coordinator, HostLink, Parts, RecoveryRequest, RequestError, Supervision,
};
use relatch::dispatch::{Dispatcher, Journal};
use relatch::docker::{Endpoint as Address, Engine as Client, EngineLimits};
use relatch::env::{Clock, OsRandomness, SystemClock};
use relatch::ledger::{BindHost, Command, DispatcherRef, Guard, LimitsChange, Proposer, Run};
use relatch::model::{Holes, HostName, NodeId, ProcessNonce, RequestId, RunId, Target, Term};
use relatch::storage::{DataDir, Database, Identity};

use crate::world::{GIVE_UP_AFTER, World};

/// The machine's clock, and what a test has added to it: for what the cluster clock takes its time for.
#[derive(Default)]
pub struct Ahead(AtomicU64);

impl Ahead {
    pub fn skip_ms(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Ahead {
    fn monotonic_ms(&self) -> u64 {
        SystemClock.monotonic_ms() + self.0.load(Ordering::SeqCst)
    }
    fn wall_ms(&self) -> u64 {
        SystemClock.wall_ms()
    }
    fn boottime_ms(&self) -> u64 {
        SystemClock.boottime_ms()
    }
}

/// A node's parts, in this process, whose disk can be made to fail.
pub struct Leader {
    pub log: Database,
    journal: Database,
    pub consensus: Consensus,
    pub dispatcher: Dispatcher,
    /// The clock of consensus alone.
    pub clock: Arc<Ahead>,
    coordinator: Coordinator,
    supervision: Supervision,
    dir: DataDir,
}

impl Leader {
    pub async fn start(world: &World) -> Self {
        let node = NodeId(1);
        let identity = Identity::mint(&OsRandomness, node).expect("an identity");
        let dir = DataDir::open(&world.options.data_dir, || Ok(identity)).expect("a data directory");
        let cluster = dir.identity().cluster.clone();
        let disk = Database::open(dir.part("journal"), Journal::FAMILIES).expect("a database");
        let journal = Journal::open(disk.clone(), &cluster, &OsRandomness, Holes::none()).expect("a journal");
        let log = Database::open(dir.part("raft"), consensus::FAMILIES).expect("a database");
        let clock = Arc::new(Ahead::default());
        let settings = consensus::Settings {
            node,
            cluster,
            holes: Holes::none(),
            clock: Arc::<Ahead>::clone(&clock),
            dir: dir.path().to_owned(),
            tuning: consensus::Tuning::default(),
        };
        let consensus = Consensus::start(settings, log.clone()).await.expect("consensus");
        consensus.initialize_single().await.expect("a cluster");
        dir.mark_initialized().expect("a mark");
        let address = Address::parse(&world.options.docker).expect("an address");
        let client = Client::new(address, EngineLimits::default());
        let dispatcher = Dispatcher::new(client, journal, Arc::new(SystemClock));
        let host = HostName::new("local").expect("a name");
        let guard = Guard::Agent;
        let hosts = BTreeMap::from([(host.clone(), HostLink { dispatcher: dispatcher.clone(), guard })]);
        let (coordinator, supervision) = coordinate(&consensus, hosts).await;
        let engine_id = dispatcher.engine().identify().await.expect("an engine").engine_id;
        let journal = DispatcherRef { guard, journal: dispatcher.position() };
        let bind = BindHost { host, engine_id, dispatcher: journal };
        let term: Term = consensus.leadership().borrow().expect("a leader");
        // Looks have all the time that a busy machine needs.
        let patient = LimitsChange { inspect_ms: Some(60_000), ..LimitsChange::default() };
        for command in [Command::ChangeLimits(patient), Command::BindHost(bind)] {
            consensus.propose(term, command, 60_000).await.expect("a commit");
        }
        Self { log, journal: disk, consensus, dispatcher, clock, coordinator, supervision, dir }
    }

    /// The same node, if its hosts were taken out of what it was started with.
    pub async fn without_its_hosts(self) -> Self {
        self.supervision.shutdown().await;
        let (coordinator, supervision) = coordinate(&self.consensus, BTreeMap::new()).await;
        Self { coordinator, supervision, ..self }
    }

    pub async fn ask(&self, target: &str, id: &str) -> Result<Answer, RequestError> {
        self.coordinator
            .request(RecoveryRequest {
                id: Some(RequestId::new(id).expect("an id")),
                caller: relatch::ledger::ANONYMOUS.to_owned(),
                by: None,
                digest: id.to_owned(),
                spelling: Target::parse(target).expect("a target"),
                reason: "test".to_owned(),
                grace_s: None,
                expect: None,
                dry_run: false,
                diagnosis: relatch::ledger::Diagnosis::Callers,
            })
            .await
    }

    /// The run, once it is as wanted.
    pub async fn wait_for_run(&self, id: &RunId, what: &str, wanted: impl Fn(&Run) -> bool) -> Run {
        let mut applied = self.consensus.applied();
        let found = async {
            loop {
                applied.borrow_and_update();
                let run = self.consensus.read(|ledger| ledger.run(id).cloned()).expect("the run is there");
                if wanted(&run) {
                    return run;
                }
                applied.changed().await.expect("consensus goes on");
            }
        };
        let waited = tokio::time::timeout(GIVE_UP_AFTER, found).await;
        let now = || self.consensus.read(|ledger| ledger.run(id).cloned());
        waited.unwrap_or_else(|_| panic!("gave up waiting for {what}: {:#?}", now()))
    }

    /// As a node ends that cannot go on, except that the process stays.
    pub async fn end(self) {
        let closed = [self.log.gone(), self.journal.gone()];
        self.supervision.shutdown().await;
        self.consensus.shutdown().await;
        drop((self.log, self.journal, self.dispatcher, self.coordinator, self.dir));
        for closed in closed {
            closed.wait().await;
        }
    }
}

async fn coordinate(
    consensus: &Consensus,
    hosts: BTreeMap<HostName, HostLink>,
) -> (Coordinator, Supervision) {
    let nonce = ProcessNonce::new("f".repeat(32)).expect("a nonce");
    let (coordinator, supervision) = Coordinator::start(Parts {
        consensus: consensus.clone(),
        hosts,
        proposer: Proposer { node: NodeId(1), nonce },
        clock: Arc::new(SystemClock),
        randomness: Arc::new(OsRandomness),
        own_container: None,
        named_limits: relatch::coordinator::NamedLimits::default(),
        holes: Holes::none(),
    });
    coordinator.ready().wait_for(|ready| *ready).await.expect("a coordinator");
    (coordinator, supervision)
}
