//! Several nodes, over real channels on the loopback: they agree, join, lead in turns, and refuse what is broken.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use super::super::snapshot::SnapshotFile;
use super::super::{Member, MembersError, ProposeError, Role};
use super::*;
use crate::rpc::CallerCheck;
use crate::rpc::raft::install_request::Part;
use crate::rpc::raft::raft_client::RaftClient;
use crate::rpc::raft::{Ballot, InstallRequest, SnapshotHead, SnapshotPiece};

/// A node whose peers can reach it.
struct Served {
    node: Node,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Served {
    async fn start(dir: &Path, id: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::start_at(dir, id, listener).await
    }

    async fn start_at(dir: &Path, id: u64, listener: TcpListener) -> Self {
        let clock = HandClock::at(0);
        let mut settings = settings(dir, Arc::clone(&clock));
        settings.peers = peers(id);
        // A heartbeat may take as long as the pause between two: other tests take the processors meanwhile, and none
        // here is about a leader that is lost for that.
        settings.tuning.heartbeat_ms = 300;
        settings.tuning.election_least_ms = 3_000;
        settings.tuning.election_most_ms = 6_000;
        settings.tuning.snapshot_entries = 20;
        settings.tuning.kept_entries = 5;
        let node = Node::start_with(settings).await.unwrap();
        let address = listener.local_addr().unwrap();
        let check = CallerCheck::new(peers(id).caller().clone(), clock);
        let service = InterceptedService::new(node.consensus.peer_service().into_server(), check);
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(async move {
            let incoming = TcpIncoming::from(listener);
            let served = Server::builder().add_service(service);
            let ended = served.serve_with_incoming_shutdown(incoming, async move { drop(stopped.await) });
            // Connections of peers stay open for good: they are not waited for.
            tokio::select! { served = ended => served.unwrap(), () = std::future::pending() => {} }
        });
        Self { node, address, stop, server }
    }

    /// Ends it as a crash does for the others: its connections are cut.
    async fn kill(self) {
        self.server.abort();
        drop(self.stop);
        self.node.stop().await;
    }

    fn member(&self, name: &str) -> Member {
        Member { address: self.address.to_string(), name: name.to_owned(), joined_by: String::new() }
    }

    async fn leads(&self) -> Term {
        self.node.leads().await
    }

    /// Waits until an entry is applied here.
    async fn has_applied(&self, position: EntryPosition) {
        self.node.consensus.applied().wait_for(|applied| *applied >= position.index).await.unwrap();
    }
}

/// Three voters, the first of which leads; and where their data is.
struct Three {
    nodes: BTreeMap<u64, Served>,
    dirs: BTreeMap<u64, tempfile::TempDir>,
    term: Term,
}

impl Three {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let first = Served::start(dir.path(), 1).await;
        first.node.consensus.initialize(first.member("one")).await.unwrap();
        let term = first.leads().await;
        let mut three = Self { nodes: BTreeMap::from([(1, first)]), dirs: BTreeMap::from([(1, dir)]), term };
        for name in ["two", "three"] {
            three.join(name).await;
        }
        three
    }

    fn first(&self) -> &Served {
        &self.nodes[&1]
    }

    /// Lets another node join, and gives it a vote once it has caught up.
    async fn join(&mut self, name: &str) -> u64 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let consensus = &self.first().node.consensus;
        let member = Member { address, name: name.to_owned(), joined_by: name.to_owned() };
        let id = consensus.admit(member.clone()).await.unwrap();
        assert_eq!(consensus.admit(member).await.unwrap(), id, "who asks again gets the same answer");
        let dir = tempfile::tempdir().unwrap();
        let node = Served::start_at(dir.path(), id.0, listener).await;
        while let Err(error) = consensus.promote(id).await {
            assert!(
                matches!(error, MembersError::Behind { .. } | MembersError::LosesQuorum { .. }),
                "{error}"
            );
            // Its progress shows in what the leader sees of it, which moves with the entries and heartbeats.
            let mut applied = node.node.consensus.applied();
            let _moved = tokio::time::timeout(Duration::from_millis(50), applied.changed()).await;
        }
        self.nodes.insert(id.0, node);
        self.dirs.insert(id.0, dir);
        id.0
    }

    /// Waits until one of them leads, and gives its id and term.
    async fn leader(&self) -> (u64, Term) {
        let leads = self.nodes.iter().map(|(id, served)| Box::pin(async { (*id, served.leads().await) }));
        futures::future::select_all(leads).await.0
    }

    async fn end(self) {
        for served in self.nodes.into_values() {
            served.kill().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_three_nodes_agreed_to_is_applied_by_all_and_survives_the_leader() {
    let mut three = Three::start().await;
    let (position, _) = three.first().node.propose(three.term, bind("host-a")).await;
    for served in three.nodes.values() {
        served.has_applied(position).await;
    }
    let old = three.nodes.remove(&1).unwrap();
    old.kill().await;
    let (next, term) = three.leader().await;
    assert!(term > three.term, "{term} after {}", three.term);
    let consensus = three.nodes[&next].node.consensus.clone();
    let again = consensus.propose(three.term, bind("host-b"), LONG_MS).await.unwrap_err();
    assert!(matches!(again, ProposeError::NotLeader { .. }), "a proposal of the old term: {again}");
    let (position, _) = three.nodes[&next].node.propose(term, bind("host-b")).await;
    consensus.confirm_authority(term, LONG_MS).await.unwrap();

    for served in three.nodes.values() {
        served.has_applied(position).await;
        let hosts = served.node.consensus.read(|ledger| ledger.hosts().count());
        assert_eq!(hosts, 2);
    }
    three.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_nothing_is_committed_or_confirmed() {
    let mut three = Three::start().await;
    let others: Vec<u64> = three.nodes.keys().copied().filter(|id| *id != 1).collect();
    for id in others {
        three.nodes.remove(&id).unwrap().kill().await;
    }
    let consensus = &three.first().node.consensus;
    let error = consensus.propose(three.term, bind("host-a"), 500).await.unwrap_err();
    assert!(matches!(error, ProposeError::Unknown { .. } | ProposeError::NotLeader { .. }), "{error}");
    assert_eq!(consensus.read(|ledger| ledger.hosts().count()), 0, "nothing was applied");
    consensus.confirm_authority(three.term, 500).await.unwrap_err();
    three.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_joins_late_gets_the_snapshot_and_then_the_log() {
    let mut three = Three::start().await;
    let mut hosts = 0;
    let mut metrics = three.first().node.consensus.inner.raft.metrics();
    use openraft::async_runtime::WatchReceiver as _;
    while metrics.borrow_watched().purged.is_none() {
        three.first().node.propose(three.term, bind(&format!("host-{hosts}"))).await;
        hosts += 1;
        assert!(hosts < 10_000, "the log was never purged");
    }
    let _unused = metrics.changed();
    let id = three.join("four").await;
    let (position, _) = three.first().node.propose(three.term, bind("last")).await;
    let late = &three.nodes[&id];
    late.has_applied(position).await;
    assert_eq!(late.node.records(), three.first().node.records());
    let left: Vec<_> = std::fs::read_dir(three.dirs[&id].path().join("snapshot"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().ends_with(".tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    three.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leadership_is_handed_over_and_the_membership_keeps_a_majority() {
    let mut three = Three::start().await;
    let view = three.first().node.consensus.members();
    assert!(view.members.iter().all(|known| known.role == Role::Voter), "{view:?}");
    let others: Vec<NodeId> = view.members.iter().map(|known| known.node).filter(|id| id.0 != 1).collect();

    let taken =
        three.first().node.consensus.admit(Member { joined_by: "x".into(), ..three.first().member("one") });
    assert!(matches!(taken.await.unwrap_err(), MembersError::NameTaken { node: NodeId(1), .. }));
    let nobody = three.first().node.consensus.remove(NodeId(99)).await.unwrap_err();
    assert_eq!(nobody, MembersError::NoMember { node: NodeId(99) });

    // One of the three is gone: to remove the other living one would leave one of two.
    three.nodes.remove(&others[0].0).unwrap().kill().await;
    let consensus = three.first().node.consensus.clone();
    let refused = consensus.remove(others[1]).await.unwrap_err();
    assert!(matches!(refused, MembersError::LosesQuorum { voters: 2, reachable: 1, needed: 2 }), "{refused}");
    assert!(refused.to_string().contains("bring nodes back first"), "{refused}");
    consensus.remove(others[0]).await.unwrap();
    consensus.transfer(others[1]).await.unwrap();
    let term = three.nodes[&others[1].0].leads().await;
    assert!(term > three.term);
    let error = consensus.remove(others[1]).await.unwrap_err();
    assert!(matches!(error, MembersError::NotLeader { .. }), "{error}");
    three.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_that_is_broken_on_its_way_is_refused_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), 7).await;
    let before = served.node.records();
    let file = dir.path().join("foreign.jsonl");
    std::fs::write(&file, snapshot_of(&served, 3)).unwrap();
    SnapshotFile::open(&file).unwrap().check(&cluster()).unwrap();
    let whole = std::fs::read(&file).unwrap();
    let link = peers(1).link(NodeId(7), &served.address.to_string()).unwrap();
    let vote = Ballot { term: 9, node: 1, committed: true };
    let head = |bytes: usize| Part::Head(SnapshotHead { vote: Some(vote), bytes: bytes as u64 });
    let piece = |offset: usize, data: &[u8]| {
        let crc32c = crc32c::crc32c(data);
        Part::Piece(SnapshotPiece { offset: offset as u64, data: data.to_vec(), crc32c })
    };
    let (left, right) = whole.split_at(whole.len() / 2);
    let mut flipped = right.to_vec();
    flipped[3] ^= 1;
    let broken: Vec<(&str, Vec<Part>)> = vec![
        ("does not begin with its head", vec![piece(0, &whole)]),
        ("a second head", vec![head(whole.len()), head(whole.len())]),
        ("where byte 0 is due", vec![head(whole.len()), piece(left.len(), right)]),
        ("it ends after", vec![head(whole.len()), piece(0, left)]),
        ("more than", vec![head(left.len()), piece(0, &whole)]),
        (
            "checksum of the piece",
            vec![head(whole.len()), {
                let mut wrong = match piece(0, &whole) {
                    Part::Piece(piece) => piece,
                    Part::Head(_) => unreachable!(),
                };
                wrong.crc32c ^= 1;
                Part::Piece(wrong)
            }],
        ),
        ("the snapshot is refused", vec![head(whole.len()), piece(0, left), piece(left.len(), &flipped)]),
        ("the snapshot is refused", vec![head(left.len()), piece(0, left)]),
    ];
    for (expected, parts) in broken {
        let requests = parts.into_iter().map(|part| InstallRequest { part: Some(part) });
        let status =
            RaftClient::new(link.clone()).install(futures::stream::iter(requests)).await.unwrap_err();
        assert!(status.message().contains(expected), "{expected}: {status}");
        assert_eq!(served.node.records(), before, "{expected}");
        let left = std::fs::read_dir(dir.path().join("snapshot")).unwrap().count();
        assert_eq!(left, 0, "{expected}");
    }
    let low = Ballot { term: 2, node: 1, committed: true };
    let parts = [Part::Head(SnapshotHead { vote: Some(low), bytes: whole.len() as u64 }), piece(0, &whole)];
    let requests = parts.into_iter().map(|part| InstallRequest { part: Some(part) });
    let status = RaftClient::new(link.clone()).install(futures::stream::iter(requests)).await.unwrap_err();
    assert!(status.message().contains("beyond its leader's own"), "{status}");

    let parts = [head(whole.len()), piece(0, left), piece(left.len(), right)];
    let requests = parts.into_iter().map(|part| InstallRequest { part: Some(part) });
    let answer = RaftClient::new(link).install(futures::stream::iter(requests)).await.unwrap().into_inner();
    assert_eq!(answer.vote, Some(vote));
    served.node.consensus.applied().wait_for(|applied| applied.0 == 5).await.unwrap();
    served.kill().await;
}

/// The text of a snapshot up to entry 5 of a term, without a record but the one that every ledger has.
fn snapshot_of(served: &Served, term: u64) -> Vec<u8> {
    use super::super::snapshot::{Header, Writer};
    use super::super::stored::{StoredConfiguration, StoredLogId};
    use super::super::type_config::StoredMembership;
    let configuration = StoredConfiguration::from(&StoredMembership::default());
    let header = Header::new(cluster(), Some(StoredLogId { term, index: 5 }), configuration);
    let mut writer = Writer::begin(Vec::new(), header).unwrap();
    for record in served.node.records() {
        writer.record(record.key().to_string(), record).unwrap();
    }
    writer.end().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_of_another_cluster_or_for_another_node_is_not_heard() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(dir.path(), 7).await;
    let address = served.address.to_string();
    let stranger = Caller { cluster: ClusterId::new("d".repeat(32)).unwrap(), ..peers(1).caller().clone() };
    for (link, expected) in [
        (Peers::new(stranger).link(NodeId(7), &address).unwrap(), "is of cluster"),
        (peers(1).link(NodeId(8), &address).unwrap(), "this is node 7"),
    ] {
        let vote = Some(Ballot { term: 5, node: 1, committed: false });
        let asked = crate::rpc::raft::VoteRequest { vote, last: None, leadership_transfer: false };
        let status = RaftClient::new(link).vote(asked).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::FailedPrecondition);
        assert!(status.message().contains(expected), "{status}");
    }
    assert_eq!(served.node.consensus.members().term, Term(0), "no term was taken over");
    served.kill().await;
}
