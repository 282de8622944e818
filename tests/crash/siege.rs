//! Many clients ask, and the node is killed again and again: at random, at failpoints, and with the power lost.
//!
//! Clients write down what they were told, the engine logs what it was asked, and at the end the two are set beside
//! what the node says of its runs:
//!
//! * no answer is forgotten, and none is given otherwise when it is asked for again;
//! * a run whose end was told keeps it;
//! * a container got no more restarts than there are runs whose restart may have left, and at least as many as
//!   there are runs that say it did.
//!
//! `RELATCH_KILLS` says how often it is killed, `RELATCH_SEED` repeats the same choices (not the same timing).

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relatch::rpc::v1;
use relatch::rpc::v1::limits_client::LimitsClient;
use relatch::rpc::v1::recovery_client::RecoveryClient;
use relatch::sim::ContainerSpec;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::World;
use crate::support::disk::{Disk, Unsynced};
use crate::support::node::Node;

const CONTAINERS: usize = 300;
const CLIENTS: usize = 8;

/// Where a node may be killed, and how often it may pass there before.
const POINTS: &[(&str, u64)] = &[
    ("coordinator-before-propose", 9),
    ("coordinator-after-propose", 9),
    ("coordinator-after-commit", 9),
    ("coordinator-after-recheck", 9),
    ("dispatch-before-connect", 9),
    ("dispatch-after-connect", 9),
    ("dispatch-after-intent", 9),
    ("dispatch-before-first-byte", 9),
    ("dispatch-after-first-byte", 9),
    ("dispatch-before-journal-end", 9),
    ("dispatch-after-journal-end", 9),
    ("coordinator-before-settle", 9),
    ("journal-before-write", 30),
    ("raft_append_written", 60),
    ("raft_append_synced", 60),
    ("raft_vote_written", 1),
    ("raft_vote_saved", 1),
    ("raft_applied", 60),
    ("raft_snapshot_built", 2),
    ("raft_snapshot_renamed", 2),
    ("raft_log_purged", 1),
];

/// Small enough that snapshots and purges happen under way.
const TUNING: &str = "consensus-snapshot-entries=return(150);consensus-kept-entries=return(1000)";

#[tokio::test(flavor = "multi_thread")]
async fn killed_again_and_again_under_load_nothing_is_lost_and_nothing_is_sent_twice() {
    let kills = number("RELATCH_KILLS").unwrap_or(100);
    let seed = number("RELATCH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("RELATCH_KILLS={kills} RELATCH_SEED={seed}");
    let mut random = Random(seed);
    let names = (0..CONTAINERS).map(|n| ContainerSpec::named(name(n)));
    let mut world = World::of(names).await;
    let disk = world.on_disk();
    let book = Arc::new(Book::default());
    let mut happened: BTreeMap<String, usize> = BTreeMap::new();
    for kill in 0..kills {
        let (how, options, after) = match POINTS.get(random.below(2 * POINTS.len() as u64) as usize) {
            Some((point, most)) => {
                let kills = format!("{TUNING};{point}={}*off->return(kill)", random.below(most + 1));
                ((*point).to_owned(), world.options.clone().failpoints(&kills), 150)
            }
            None => ("at random".to_owned(), world.options.clone().failpoints(TUNING), random.below(60)),
        };
        // A node that dies before anybody can connect to it has answered nobody.
        if let Some(node) = Node::start_unless_killed(&options) {
            load(node, &book, after as usize, kill == 0).await;
        }
        let loss = match random.below(4) {
            0 => None,
            1 => Some(Unsynced::Lost),
            2 => Some(Unsynced::Cut(random.below(1001))),
            _ => Some(Unsynced::Zeroed(random.below(1001))),
        };
        if let Some(loss) = loss {
            disk.lose_power(loss);
        }
        *happened.entry(how).or_default() += 1;
    }
    let node = Node::start(&world.options);
    let runs = judge(&node, &world, &book).await;
    node.stop();
    drop::<Disk>(disk);
    println!("{kills} kills: {happened:?}\nruns by status: {runs:?}, {} answers", book.len());
    assert!(
        runs.get("RUN_STATUS_APPLIED").is_some_and(|applied| *applied > 0),
        "nothing was restarted: {runs:?}"
    );
}

/// What clients asked, and what they were told.
#[derive(Default)]
struct Book {
    next: AtomicUsize,
    asked: Mutex<HashMap<String, Entry>>,
}

#[derive(Clone)]
struct Entry {
    container: usize,
    answer: Option<(i32, String)>,
}

impl Book {
    fn new_request(&self) -> v1::RequestRecoveryRequest {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let id = format!("q{n}");
        let container = n % CONTAINERS;
        self.asked.lock().unwrap().insert(id.clone(), Entry { container, answer: None });
        request(&id, container)
    }

    /// An answer is the same whenever it is given.
    fn told(&self, request: &str, answer: &v1::RequestRecoveryResponse) {
        let run = answer.run.as_ref().expect("an answer has its run").run_id.clone();
        let mut asked = self.asked.lock().unwrap();
        let entry = asked.get_mut(request).expect("it was asked");
        let told = (answer.decision, run);
        if let Some(before) = entry.answer.replace(told.clone()) {
            assert_eq!(before, told, "{request} was answered otherwise before");
        }
    }

    fn all(&self) -> Vec<(String, Entry)> {
        self.asked.lock().unwrap().iter().map(|(id, entry)| (id.clone(), entry.clone())).collect()
    }

    fn len(&self) -> usize {
        self.all().into_iter().filter(|(_, entry)| entry.answer.is_some()).count()
    }
}

fn name(container: usize) -> String {
    format!("c{container:03}")
}

fn request(id: &str, container: usize) -> v1::RequestRecoveryRequest {
    v1::RequestRecoveryRequest {
        target: format!("local/{}", name(container)),
        reason: "siege".to_owned(),
        request_id: id.to_owned(),
        grace: Some(prost_types::Duration { seconds: 0, nanos: 0 }),
        ..Default::default()
    }
}

/// Asks until so many answers have come, and then kills the node, if nothing else did before.
async fn load(node: Node, book: &Arc<Book>, answers: usize, first: bool) {
    let Some(mut recovery) = connect(&node).await else { return };
    if first {
        raise_limits(&node).await;
    }
    // What had no answer when the node died has it now, or is asked for the first time.
    for (id, entry) in book.all().into_iter().filter(|(_, entry)| entry.answer.is_none()) {
        if ask(&mut recovery, book, request(&id, entry.container)).await.is_err() {
            return;
        }
    }
    let count = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (book, count, mut recovery) = (Arc::clone(book), Arc::clone(&count), recovery.clone());
            tokio::spawn(async move {
                while ask(&mut recovery, &book, book.new_request()).await.is_ok() {
                    count.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let mut node = Some(node);
    for client in &clients {
        while !client.is_finished() {
            if count.load(Ordering::SeqCst) >= answers
                && let Some(node) = node.take()
            {
                node.kill_if_it_runs();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    for client in clients {
        client.await.expect("a client saw an answer that had changed");
    }
    if let Some(node) = node {
        node.killed_by_failpoint();
    }
}

/// Asks until there is an answer, or nobody to give it.
async fn ask(
    recovery: &mut RecoveryClient<Channel>,
    book: &Book,
    request: v1::RequestRecoveryRequest,
) -> Result<(), Status> {
    loop {
        match recovery.request_recovery(request.clone()).await {
            Ok(answer) => {
                book.told(&request.request_id, &answer.into_inner());
                return Ok(());
            }
            Err(status) if is_temporary(&status) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(status) => return Err(status),
        }
    }
}

/// The node is there, and cannot say yet. A connection that is gone has no such details.
fn is_temporary(status: &Status) -> bool {
    status.code() == Code::Unavailable && !status.details().is_empty()
}

/// A client, once the node admits requests. None if it died before.
async fn connect(node: &Node) -> Option<RecoveryClient<Channel>> {
    let address = Endpoint::from_shared(node.addr().to_owned()).expect("an address");
    let mut recovery = RecoveryClient::new(address.connect().await.ok()?);
    loop {
        let explain = v1::ExplainRequest { target: "local/c000".to_owned(), grace: None };
        match recovery.explain(explain).await {
            Ok(_) => return Some(recovery),
            Err(status) if is_temporary(&status) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(_) => return None,
        }
    }
}

/// So that what is asked is nearly always decided anew.
async fn raise_limits(node: &Node) {
    let address = Endpoint::from_shared(node.addr().to_owned()).expect("an address");
    let Ok(channel) = address.connect().await else { return };
    let limits = v1::LimitSet {
        attempts: Some(1_000_000),
        backoff_first_ms: Some(0),
        backoff_longest_ms: Some(0),
        in_flight_cluster: Some(1_000),
        in_flight_host: Some(1_000),
        unresolved_host: Some(1_000),
        quarantine_ms: Some(1),
        refusals_per_caller: Some(1_000_000),
        observe_longest_ms: Some(2_000),
        ..Default::default()
    };
    // A node that died is asked again by nobody: the limits then are those of every day, and most is refused.
    let set = LimitsClient::new(channel).set_limits(v1::SetLimitsRequest { limits: Some(limits) }).await;
    println!("limits: {:?}", set.map(|_| "raised").map_err(|status| status.to_string()));
}

/// Sets what the clients were told, what the engine was asked, and what the node says side by side. Gives how many
/// runs there are of each status.
async fn judge(node: &Node, world: &World, book: &Arc<Book>) -> BTreeMap<String, usize> {
    let mut recovery = connect(node).await.expect("it serves");
    for (id, entry) in book.all() {
        ask(&mut recovery, book, request(&id, entry.container)).await.expect("an answer");
    }
    let runs = settled(&mut recovery).await;
    let by_id: HashMap<&str, &v1::Run> = runs.iter().map(|run| (run.run_id.as_str(), run)).collect();
    for (id, entry) in book.all() {
        let (_, run) = entry.answer.expect("it was just asked");
        assert!(by_id.contains_key(run.as_str()), "run {run} of request {id} is gone");
    }
    let mut counts = BTreeMap::new();
    let mut of: HashMap<String, Vec<&v1::Run>> = HashMap::new();
    for run in &runs {
        *counts.entry(run.status().as_str_name().to_owned()).or_default() += 1;
        of.entry(run.target.clone()).or_default().push(run);
    }
    for container in 0..CONTAINERS {
        let name = name(container);
        let runs = of.remove(&format!("local/{name}")).unwrap_or_default();
        let with =
            |statuses: &[v1::RunStatus]| runs.iter().filter(|run| statuses.contains(&run.status())).count();
        let applied = with(&[v1::RunStatus::Applied]);
        let may_have = applied + with(&[v1::RunStatus::Unresolved, v1::RunStatus::Interlocked]);
        let posts = world.engine.log().posts(&world.engine.container_id(&name).unwrap()).len();
        assert!(
            applied <= posts && posts <= may_have,
            "{name}: {posts} restarts arrived, {applied} runs are applied, {may_have} may have been sent: {runs:#?}"
        );
    }
    assert!(of.is_empty(), "targets that nobody asked for: {of:?}");
    counts
}

/// Every run, once no interlock is left of which nobody has said anything.
async fn settled(recovery: &mut RecoveryClient<Channel>) -> Vec<v1::Run> {
    let begun = std::time::Instant::now();
    loop {
        let runs = list(recovery).await;
        let open = runs.iter().filter(|run| run.status() == v1::RunStatus::Interlocked).count();
        if open == 0 {
            return runs;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{open} runs are interlocked still");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn list(recovery: &mut RecoveryClient<Channel>) -> Vec<v1::Run> {
    let mut found = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = v1::ListRunsRequest { page_size: 500, page_token, ..Default::default() };
        let page = recovery.list_runs(request).await.expect("a page").into_inner();
        found.extend(page.runs);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return found;
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let given = std::env::var(variable).ok()?;
    Some(given.parse().unwrap_or_else(|error| panic!("{variable}={given}: {error}")))
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
