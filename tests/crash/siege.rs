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
//! `make crash` and `make soak` do the same for longer: `RELATCH_KILLS` says how often the node is killed.
//! `RELATCH_SEED` repeats the same choices (not the same timing).

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use relatch::rpc::v1;
use relatch::rpc::v1::limits_client::LimitsClient;
use relatch::rpc::v1::recovery_client::RecoveryClient;
use relatch::sim::{Action, ContainerSpec, Delivery, Effect, End, Endpoint, Hold as SimHold, Rule};
use tonic::transport::Channel;
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
    let mut siege = Siege::begin(1.0).await;
    for kill in 0..kills {
        siege.round(kill == 0, &v1::LimitSet::default()).await;
    }
    let (node, runs) = siege.end().await;
    // Each run is there still, so that all of them can be set beside what arrived.
    let mut of: HashMap<&str, Vec<&v1::Run>> = HashMap::new();
    for run in &runs {
        of.entry(run.target.as_str()).or_default().push(run);
    }
    for (container, posts) in siege.posts() {
        let runs = of.remove(target(container).as_str()).unwrap_or_default();
        let with =
            |statuses: &[v1::RunStatus]| runs.iter().filter(|run| statuses.contains(&run.status())).count();
        let applied = with(&[v1::RunStatus::Applied]);
        let may_have = applied + with(&[v1::RunStatus::Unresolved, v1::RunStatus::OperatorResolved]);
        assert!(
            applied <= posts && posts <= may_have,
            "{}: {posts} restarts arrived, {applied} runs are applied, {may_have} may have been sent: {runs:#?}",
            target(container)
        );
    }
    assert!(of.is_empty(), "targets that nobody asked for: {of:?}");
    node.stop();
}

/// The engine fails as well, in every way that it has, and operators end what stays unresolved.
///
/// `RELATCH_SOAK_S` says for how long; each answer may be forgotten once its run has ended, so that memory must not
/// grow with their number.
#[tokio::test(flavor = "multi_thread")]
async fn killed_again_and_again_beside_an_engine_that_fails_restarts_never_exceed_interlocks() {
    let begun = Instant::now();
    let time = Duration::from_secs(number("RELATCH_SOAK_S").unwrap_or(30));
    // Most clients send no request id: what is remembered for the sake of ids is kept for a day.
    let mut siege = Siege::begin(0.1).await;
    let few = v1::LimitSet { ended_runs: Some(1_000), ..Default::default() };
    while begun.elapsed() < time || siege.happened.is_empty() {
        siege.let_the_engine_fail();
        let first = siege.happened.is_empty();
        siege.round(first, &few).await;
    }
    let (node, _) = siege.end().await;
    node.stop();
    let used = &siege.memory_kib;
    let median = |part: &[u64]| {
        let mut sorted = part.to_vec();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    };
    let quarter = used.len() / 4;
    // At first it has nothing to remember yet.
    let (early, late) = (median(&used[quarter..2 * quarter]), median(&used[3 * quarter..]));
    println!(
        "memory, median of the second and of the last quarter of {} lives: {early} and {late} KiB",
        used.len()
    );
    if time >= Duration::from_secs(600) {
        assert!(late * 4 <= early * 5, "memory grows: {early} KiB, and later {late} KiB");
    }
}

/// A node, its engine and its disk, and what clients were told.
struct Siege {
    world: World,
    disk: Disk,
    book: Arc<Book>,
    random: Random,
    happened: BTreeMap<String, usize>,
    /// What the node used when it was about to be killed, life after life.
    memory_kib: Vec<u64>,
}

impl Siege {
    /// `with_ids` is the part of the requests that have an id.
    async fn begin(with_ids: f64) -> Self {
        let seed = number("RELATCH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
        println!("RELATCH_SEED={seed}");
        let mut world = World::of((0..CONTAINERS).map(|n| ContainerSpec::named(name(n)))).await;
        let disk = world.on_disk();
        let book = Arc::new(Book { with_ids, ..Book::default() });
        Self { world, disk, book, random: Random(seed), happened: BTreeMap::new(), memory_kib: Vec::new() }
    }

    /// One life of the node, and maybe the power goes with it.
    async fn round(&mut self, first: bool, limits: &v1::LimitSet) {
        let random = &mut self.random;
        let (how, points, answers) = match POINTS.get(random.below(2 * POINTS.len() as u64) as usize) {
            Some((point, most)) => {
                (*point, format!("{TUNING};{point}={}*off->return(kill)", random.below(most + 1)), 60)
            }
            None => ("at random", TUNING.to_owned(), random.below(30)),
        };
        // A node that dies before anybody can connect to it has answered nobody.
        if let Some(node) = Node::start_unless_killed(&self.world.options.clone().failpoints(&points)) {
            self.memory_kib.extend(load(node, &self.book, answers as usize, first.then_some(limits)).await);
        }
        let loss = match random.below(4) {
            0 => None,
            1 => Some(Unsynced::Lost),
            2 => Some(Unsynced::Cut(random.below(1001))),
            _ => Some(Unsynced::Zeroed(random.below(1001))),
        };
        if let Some(loss) = loss {
            self.disk.lose_power(loss);
        }
        *self.happened.entry(how.to_owned()).or_default() += 1;
    }

    /// The next requests for some containers go wrong, each in a way of its own; what was left down is started.
    fn let_the_engine_fail(&mut self) {
        let on = || Rule::on(Endpoint::Restart);
        for container in 0..CONTAINERS {
            let ended = |action| self.world.engine.act(Some(&name(container)), action);
            // It runs already, but for those that a restart has left down.
            let _runs = ended(Action::Start);
        }
        for _ in 0..CONTAINERS / 10 {
            let container = name(self.random.below(CONTAINERS as u64) as usize);
            let rule = match self.random.below(12) {
                0 => on().cut(End::Rst),
                1 => on().cut(End::Fin),
                2 => on().no_effect().cut(End::Rst),
                3 => on().no_effect().status(500, "nothing was done"),
                4 => on().effect(Effect::StopOnly).status(500, "did not receive an exit event"),
                5 => on().proxy_status(502, "bad gateway"),
                6 => on().no_effect(),
                7 => on().delivery(Delivery::HalfHead { end: End::Fin }),
                8 => on().cut_request(self.random.below(120), End::Rst),
                9 => on().hold_effect(SimHold::Ms(self.random.below(3_000))),
                10 => on().never_answer(),
                _ => Rule::on(Endpoint::Inspect).times(3).status(500, "no"),
            };
            self.world.script(&container, rule);
        }
    }

    /// Starts it for the last time, and gives its runs, once each interlock has had a word. No answer may be gone.
    async fn end(&mut self) -> (Node, Vec<v1::Run>) {
        let node = Node::start(&self.world.options);
        let mut recovery = connect(&node).await.expect("it serves");
        for (id, entry) in self.book.all().into_iter().filter(|(_, entry)| entry.has_id) {
            ask(&mut recovery, &self.book, &id, request(Some(&id), entry.container))
                .await
                .expect("an answer");
        }
        let runs = settled(&mut recovery).await;
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for run in &runs {
            *counts.entry(run.status().as_str_name()).or_default() += 1;
        }
        let mut opened = [0; CONTAINERS];
        for (id, entry) in self.book.all() {
            // A client without an id that had no answer may have opened a run all the same.
            let may_have =
                entry.answer.as_ref().is_none_or(|(decision, _)| *decision == v1::Decision::Opened as i32);
            opened[entry.container] += usize::from(may_have);
            assert!(entry.answer.is_some() || !entry.has_id, "request {id} has no answer");
        }
        for (container, posts) in self.posts() {
            let opened = opened[container];
            assert!(
                posts <= opened,
                "{}: {posts} restarts arrived for {opened} interlocks",
                target(container)
            );
        }
        let posts: usize = self.posts().map(|(_, posts)| posts).sum();
        println!(
            "{} kills: {:?}\n{posts} restarts arrived for {} interlocks; runs by status: {counts:?}",
            self.happened.values().sum::<usize>(),
            self.happened,
            opened.iter().sum::<usize>(),
        );
        assert!(posts > 0, "nothing was restarted");
        (node, runs)
    }

    /// How many restarts arrived, for each container.
    fn posts(&self) -> impl Iterator<Item = (usize, usize)> {
        let log = self.world.engine.log();
        let id = |container| self.world.engine.container_id(&name(container)).unwrap();
        (0..CONTAINERS).map(move |container| (container, log.posts(&id(container)).len()))
    }
}

/// What clients asked, and what they were told.
#[derive(Default)]
struct Book {
    with_ids: f64,
    next: AtomicUsize,
    asked: Mutex<HashMap<String, Entry>>,
}

#[derive(Clone)]
struct Entry {
    container: usize,
    /// Without an id, the name that it has here is not the node's to know.
    has_id: bool,
    answer: Option<(i32, String)>,
}

impl Book {
    /// A name for the request, and the request.
    fn new_request(&self) -> (String, v1::RequestRecoveryRequest) {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let (id, container) = (format!("q{n}"), n % CONTAINERS);
        let has_id = (n as f64 * self.with_ids).fract() < self.with_ids;
        self.asked.lock().unwrap().insert(id.clone(), Entry { container, has_id, answer: None });
        let request = request(has_id.then_some(id.as_str()), container);
        (id, request)
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
}

fn name(container: usize) -> String {
    format!("c{container:03}")
}

fn target(container: usize) -> String {
    format!("local/{}", name(container))
}

fn request(id: Option<&str>, container: usize) -> v1::RequestRecoveryRequest {
    v1::RequestRecoveryRequest {
        target: target(container),
        reason: "siege".to_owned(),
        request_id: id.unwrap_or_default().to_owned(),
        grace: Some(prost_types::Duration { seconds: 0, nanos: 0 }),
        ..Default::default()
    }
}

/// Asks until so many answers have come, and then kills the node, if nothing else did before. Gives what memory it
/// used at the end, if it could be asked.
async fn load(node: Node, book: &Arc<Book>, answers: usize, limits: Option<&v1::LimitSet>) -> Option<u64> {
    let mut recovery = connect(&node).await?;
    if let Some(limits) = limits {
        raise_limits(&node, limits).await;
    }
    resolve_what_is_unresolved(&mut recovery).await?;
    // What had no answer when the node died has it now, or is asked for the first time.
    for (id, entry) in book.all().into_iter().filter(|(_, entry)| entry.has_id && entry.answer.is_none()) {
        ask(&mut recovery, book, &id, request(Some(&id), entry.container)).await.ok()?;
    }
    let count = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (book, count, mut recovery) = (Arc::clone(book), Arc::clone(&count), recovery.clone());
            tokio::spawn(async move {
                loop {
                    let (id, request) = book.new_request();
                    if ask(&mut recovery, &book, &id, request).await.is_err() {
                        return;
                    }
                    count.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let (mut node, mut memory_kib) = (Some(node), None);
    for client in &clients {
        while !client.is_finished() {
            if count.load(Ordering::SeqCst) >= answers
                && let Some(node) = node.take()
            {
                memory_kib = node.memory_kib();
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
    memory_kib
}

/// Asks until there is an answer, or nobody to give it.
async fn ask(
    recovery: &mut RecoveryClient<Channel>,
    book: &Book,
    name: &str,
    request: v1::RequestRecoveryRequest,
) -> Result<(), Status> {
    loop {
        match recovery.request_recovery(request.clone()).await {
            Ok(answer) => {
                book.told(name, &answer.into_inner());
                return Ok(());
            }
            Err(status) if is_temporary(&status) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(status) => return Err(status),
        }
    }
}

/// As an operator does, so that the target is free again. None if the node died.
async fn resolve_what_is_unresolved(recovery: &mut RecoveryClient<Channel>) -> Option<()> {
    for run in list(recovery).await? {
        if run.status() == v1::RunStatus::Unresolved {
            let request = v1::ResolveRunRequest {
                run_id: run.run_id,
                operator: "siege".to_owned(),
                reason: "looked at by hand".to_owned(),
                accept_late_post: true,
                ..Default::default()
            };
            if let Err(status) = recovery.resolve_run(request).await {
                // It may have been settled meanwhile.
                (status.code() == Code::FailedPrecondition).then_some(())?;
            }
        }
    }
    Some(())
}

/// The node is there, and cannot say yet. A connection that is gone has no such details.
fn is_temporary(status: &Status) -> bool {
    status.code() == Code::Unavailable && !status.details().is_empty()
}

/// A client, once the node admits requests. None if it died before.
async fn connect(node: &Node) -> Option<RecoveryClient<Channel>> {
    let address = tonic::transport::Endpoint::from_shared(node.addr().to_owned()).expect("an address");
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
async fn raise_limits(node: &Node, other: &v1::LimitSet) {
    let address = tonic::transport::Endpoint::from_shared(node.addr().to_owned()).expect("an address");
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
        ..other.clone()
    };
    // A node that died is asked again by nobody: the limits then are those of every day, and most is refused.
    let set = LimitsClient::new(channel).set_limits(v1::SetLimitsRequest { limits: Some(limits) }).await;
    println!("limits: {:?}", set.map(|_| "raised").map_err(|status| status.to_string()));
}

/// Every run, once no interlock is left of which nobody has said anything.
async fn settled(recovery: &mut RecoveryClient<Channel>) -> Vec<v1::Run> {
    let begun = Instant::now();
    loop {
        let runs = list(recovery).await.expect("it serves");
        let open = runs.iter().filter(|run| run.status() == v1::RunStatus::Interlocked).count();
        if open == 0 {
            return runs;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{open} runs are interlocked still");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// None if the node died.
async fn list(recovery: &mut RecoveryClient<Channel>) -> Option<Vec<v1::Run>> {
    let mut found = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = v1::ListRunsRequest { page_size: 500, page_token, ..Default::default() };
        let page = recovery.list_runs(request).await.ok()?.into_inner();
        found.extend(page.runs);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Some(found);
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let given = std::env::var(variable).ok()?;
    Some(given.parse().unwrap_or_else(|error| panic!("{variable}={given}: {error}")))
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers for the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
