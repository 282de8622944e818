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

mod book;
mod clients;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use relatch::rpc::v1;
use relatch::sim::{Action, ContainerSpec, Delivery, Effect, End, Endpoint, Hold, Rule};

use self::book::{Book, name, request, target};
use self::clients::{ask, connect, load, settled};
use crate::World;
use crate::random::Random;
use crate::support::disk::{Disk, Unsynced};
use crate::support::node::Node;

const CONTAINERS: usize = 300;

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

/// Small enough that snapshots and purges happen under way, and what is noted is never far behind.
const TUNING: &str = "consensus-snapshot-entries=return(150);consensus-kept-entries=return(1000);consensus-reached-ms=return(20)";

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
        let book = Arc::new(Book::new(with_ids));
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
                9 => on().hold_effect(Hold::Ms(self.random.below(3_000))),
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

fn number(variable: &str) -> Option<u64> {
    let given = std::env::var(variable).ok()?;
    Some(given.parse().unwrap_or_else(|error| panic!("{variable}={given}: {error}")))
}
