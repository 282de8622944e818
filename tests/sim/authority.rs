//! Authority that is lost, or a process that is told to stop, in the middle of the POST (hyperium/hyper#4017: who
//! drops a request has not taken it back).

use std::collections::BTreeMap;
use std::sync::Arc;

use relatch::consensus::{self, Consensus};
use relatch::coordinator::{Coordinator, HostLink, Parts, RecoveryRequest, Supervision};
use relatch::dispatch::{Dispatcher, Journal};
use relatch::docker::{Endpoint as Address, Engine as Client, EngineLimits};
use relatch::env::{OsRandomness, SystemClock};
use relatch::ledger::{BindHost, Command, DispatcherRef, Guard, Proposer, Status};
use relatch::model::{Holes, HostName, NodeId, ProcessNonce, RequestId, Target, Term};
use relatch::sim::{ContainerSpec, End, Ended, Endpoint, Event, History, Hold as EngineHold, Rule};
use relatch::storage::{DataDir, Database, Identity};

use crate::support::node::Node;
use crate::world::{World, opened, settlement, unresolved};

/// The engine has the whole request, and works on it for as long as the gate is closed.
fn works_until(gate: &str) -> Rule {
    Rule::on(Endpoint::Restart).hold_effect(EngineHold::Until(gate.to_owned()))
}

/// The process is told to stop, twice, while the engine works: the client's end is no end of the work.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_stopped_in_the_middle_of_the_post_leaves_it_uncertain_until_its_effect_is_seen() {
    let world = World::new([ContainerSpec::named("web").rule(works_until("work"))]).await;
    let (node, id) = (world.node(), world.id("web"));
    let run = opened(&node, "local/web", &[]);
    world.reached("work").await;
    node.stop_at_once();
    let left = |history: &History| {
        let by_client = |entry: &Event| {
            matches!(entry, Event::Exchanged { ended: Ended::ClientClosed, status: None, .. })
        };
        history.entries.iter().any(|entry| by_client(&entry.event))
    };
    world.logged("the client to leave", left).await;
    let node = Node::start(&world.options);
    unresolved(&node, &run, &["exchange-unknown", "started-at-equal"]);
    world.engine.release("work");
    let run = node.wait_for_status(&run, "APPLIED");
    assert_eq!(settlement(&run), "StartedAt only, no response", "{run:#}");
    assert_eq!(run["quarantined"], true, "{run:#}");
    assert_eq!(world.posts(&id), 1);
    world.judge(&node);
}

/// The same when no more than a part of the request was ever read: this side cannot tell.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_stopped_while_its_request_is_read_leaves_it_uncertain() {
    let cut = Rule::on(Endpoint::Restart).cut_request(100, End::Stall);
    let world = World::new([ContainerSpec::named("web").rule(cut)]).await;
    let (node, id) = (world.node(), world.id("web"));
    let run = opened(&node, "local/web", &[]);
    world.logged("a part of the request", |history| !history.cut_requests().is_empty()).await;
    node.stop_at_once();
    let node = Node::start(&world.options);
    unresolved(&node, &run, &["exchange-unknown", "started-at-equal"]);
    world.looked_again(&node, &id).await;
    assert_eq!(world.posts(&id), 0, "it never became whole, and is not sent again");
    world.judge(&node);
}

/// The leader cannot sync its log any more, and leads nothing, while its POST is under way.
#[tokio::test(flavor = "multi_thread")]
async fn authority_that_is_lost_in_the_middle_of_the_post_cuts_no_exchange_and_loses_no_answer() {
    let world =
        World::new([ContainerSpec::named("web").rule(works_until("work")), ContainerSpec::named("other")])
            .await;
    let id = world.id("web");
    let leader = Leader::start(&world).await;
    let run = leader.ask("local/web", "q1").await.expect("it is admitted").run.id;
    world.reached("work").await;

    leader.log.let_syncs_fail();
    let refused = leader.ask("local/other", "q2").await;
    assert!(refused.is_err(), "nothing can be committed: {refused:?}");
    leader.consensus.leadership().wait_for(Option::is_none).await.expect("leadership goes");
    let status = leader.consensus.read(|ledger| ledger.run(&run).map(|run| run.status.clone()));
    assert!(matches!(status, Some(Status::Interlocked { .. })), "nothing is claimed: {status:?}");
    let exchanged = |history: &History| {
        history.entries.iter().any(
            |entry| matches!(&entry.event, Event::Exchanged { request, .. } if is_restart(history, *request)),
        )
    };
    assert!(!exchanged(&world.engine.log().history()), "the exchange goes on");
    world.engine.release("work");
    world.logged("the answer", exchanged).await;
    let mut under_way = leader.dispatcher.under_way();
    under_way.wait_for(|count| *count == 0).await.expect("it is journalled");
    leader.end().await;

    // The next leader asks the journal, which has the answer.
    let node = Node::start(&world.options);
    let run = node.wait_for_status(run.as_str(), "APPLIED");
    assert_eq!(settlement(&run), "a later StartedAt and the engine's reply", "{run:#}");
    assert_eq!(run["quarantined"], false, "{run:#}");
    assert_eq!((world.posts(&id), world.posts(&world.id("other"))), (1, 0));
    world.judge(&node);
}

fn is_restart(history: &History, wanted: u64) -> bool {
    history.entries.iter().any(|entry| {
        matches!(&entry.event, Event::Request { request, endpoint: Endpoint::Restart, .. } if *request == wanted)
    })
}

/// A node's parts, in this process, whose disk can be made to fail.
struct Leader {
    log: Database,
    journal: Database,
    consensus: Consensus,
    dispatcher: Dispatcher,
    coordinator: Coordinator,
    supervision: Supervision,
    dir: DataDir,
}

impl Leader {
    async fn start(world: &World) -> Self {
        let node = NodeId(1);
        let identity = Identity::mint(&OsRandomness, node).expect("an identity");
        let dir = DataDir::open(&world.options.data_dir, || Ok(identity)).expect("a data directory");
        let cluster = dir.identity().cluster.clone();
        let disk = Database::open(dir.part("journal"), Journal::FAMILIES).expect("a database");
        let journal = Journal::open(disk.clone(), &cluster, &OsRandomness, Holes::none()).expect("a journal");
        let log = Database::open(dir.part("raft"), consensus::FAMILIES).expect("a database");
        let settings = consensus::Settings {
            node,
            cluster,
            holes: Holes::none(),
            clock: Arc::new(SystemClock),
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
        let nonce = ProcessNonce::new("f".repeat(32)).expect("a nonce");
        let (coordinator, supervision) = Coordinator::start(Parts {
            consensus: consensus.clone(),
            hosts: BTreeMap::from([(host.clone(), HostLink { dispatcher: dispatcher.clone(), guard })]),
            proposer: Proposer { node, nonce },
            clock: Arc::new(SystemClock),
            randomness: Arc::new(OsRandomness),
            own_container: None,
            holes: Holes::none(),
        });
        coordinator.ready().wait_for(|ready| *ready).await.expect("a coordinator");
        let engine_id = dispatcher.engine().identify().await.expect("an engine").engine_id;
        let journal = DispatcherRef { guard, journal: dispatcher.position() };
        let bind = BindHost { host, engine_id, dispatcher: journal };
        let term: Term = consensus.leadership().borrow().expect("a leader");
        consensus.propose(term, Command::BindHost(bind), 60_000).await.expect("a host");
        Self { log, journal: disk, consensus, dispatcher, coordinator, supervision, dir }
    }

    async fn ask(
        &self,
        target: &str,
        id: &str,
    ) -> Result<relatch::coordinator::Answer, relatch::coordinator::RequestError> {
        self.coordinator
            .request(RecoveryRequest {
                id: Some(RequestId::new(id).expect("an id")),
                digest: id.to_owned(),
                spelling: Target::parse(target).expect("a target"),
                reason: "test".to_owned(),
                grace_s: None,
                expect: None,
            })
            .await
    }

    /// As a node ends that cannot go on, except that the process stays.
    async fn end(self) {
        let closed = [self.log.gone(), self.journal.gone()];
        self.supervision.shutdown().await;
        self.consensus.shutdown().await;
        drop((self.log, self.journal, self.dispatcher, self.coordinator, self.dir));
        for closed in closed {
            closed.wait().await;
        }
    }
}
