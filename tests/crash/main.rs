//! The node is killed at every step of a restart, over the scripted engine; what really arrived is read from
//! the engine's own log.

#[path = "../support/mod.rs"]
mod support;

mod attacks;
mod cuts;
mod disks;
mod flips;
mod power;
mod random;
mod siege;
mod starts;

use relatch::sim::{ContainerSpec, Engine, StopBehaviour};
use support::disk::{Disk, Unsynced};
use support::node::Node;
use support::scripted::World;

impl World {
    async fn new() -> Self {
        Self::of([ContainerSpec::named("web").stop(StopBehaviour::IgnoresSigterm)]).await
    }

    async fn of(containers: impl IntoIterator<Item = ContainerSpec>) -> Self {
        let builder = containers.into_iter().fold(Engine::builder(), |builder, spec| builder.container(spec));
        Self::serving(builder.build().unwrap()).await
    }

    fn id(&self) -> String {
        self.engine.container_id("web").unwrap()
    }

    fn posts(&self) -> usize {
        self.engine.log().posts(&self.id()).len()
    }

    /// From now on its nodes keep their data on a disk that can lose its power.
    fn on_disk(&mut self) -> Disk {
        let root = self.dir.path().join("disk");
        std::fs::create_dir(&root).unwrap();
        let disk = Disk::below(&root);
        self.options.data_dir = root.join("data");
        self.options = self.options.clone().on(&disk);
        disk
    }

    /// Asks, and lets the failpoint kill the node.
    fn kill_at(&self, failpoint: &str) {
        let node = Node::start(&self.options.clone().failpoints(&format!("{failpoint}=return(kill)")));
        let _asking = node.ask("local/web", &["--grace", "1s", "--request-id", "q1"]);
        node.killed_by_failpoint();
    }

    /// The same, and starts it again without one.
    fn killed_at(&self, failpoint: &str) -> Node {
        self.kill_at(failpoint);
        Node::start(&self.options)
    }
}

/// Every failpoint of a restart, with the statuses that a run may end in, and the POSTs that there may be.
const STEPS: &[(&str, &[&str], usize)] = &[
    ("coordinator-after-propose", &["NOT_APPLIED", "UNRESOLVED", "APPLIED"], 1),
    ("coordinator-after-commit", &["NOT_APPLIED"], 0),
    ("coordinator-after-recheck", &["NOT_APPLIED"], 0),
    ("dispatch-before-connect", &["NOT_APPLIED"], 0),
    ("dispatch-after-connect", &["NOT_APPLIED"], 0),
    ("dispatch-after-intent", &["UNRESOLVED"], 0),
    ("dispatch-before-first-byte", &["UNRESOLVED"], 0),
    ("dispatch-after-first-byte", &["APPLIED"], 1),
    ("dispatch-before-journal-end", &["APPLIED"], 1),
    ("dispatch-after-journal-end", &["APPLIED"], 1),
    ("coordinator-before-settle", &["APPLIED"], 1),
];

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_step_the_run_is_kept_and_there_is_never_a_second_post() {
    killed_at_any_step(&[None]).await;
}

/// Not only the process is gone, but whatever it had not synced.
#[tokio::test(flavor = "multi_thread")]
async fn without_power_at_any_step_the_run_is_kept_and_there_is_never_a_second_post() {
    killed_at_any_step(&[Some(Unsynced::Lost), Some(Unsynced::Cut(500)), Some(Unsynced::Zeroed(500))]).await;
}

/// At each step one of the `losses` happens, the next one at the next step.
async fn killed_at_any_step(losses: &[Option<Unsynced>]) {
    for ((failpoint, statuses, posts), loss) in STEPS.iter().zip(losses.iter().cycle()) {
        let mut world = World::new().await;
        let disk = loss.map(|loss| (world.on_disk(), loss));
        world.kill_at(failpoint);
        if let Some((disk, loss)) = &disk {
            disk.lose_power(*loss);
        }
        let node = Node::start(&world.options);
        let known = node.recover("local/web", &["--grace", "1s", "--request-id", "q1"]);
        assert_eq!(known.json["decision"], "DECISION_OPENED", "{failpoint}: {known:?}");
        let run = node.wait_for_run(&known.run_id(), failpoint, |run| {
            let looked = run["reasons"].to_string().contains("started-at-equal");
            statuses.iter().any(|status| {
                run["status"] == format!("RUN_STATUS_{status}").as_str()
                    && (*status != "UNRESOLVED" || looked)
            })
        });
        assert!(world.posts() <= *posts, "{failpoint}: {} POSTs\n{run:#}", world.posts());
        if run["status"] == "RUN_STATUS_APPLIED" {
            assert_eq!(world.posts(), 1, "{failpoint}: {run:#}");
        }
        println!("{failpoint:32} {:24} POSTs {}", run["status"].as_str().unwrap_or(""), world.posts());
        node.stop();
        world.engine.shutdown().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_for_an_interlock_that_was_never_committed() {
    let world = World::new().await;
    let node = world.killed_at("coordinator-before-propose");
    assert_eq!(node.runs().len(), 0, "nothing was decided");
    assert_eq!(world.posts(), 0, "and so nothing was sent");
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn open_interlocks_are_replayed_before_anything_is_admitted() {
    let world = World::new().await;
    let options = world.options.clone().failpoints("dispatch-before-connect=return(kill)");
    let node = Node::start(&options);
    let _asking = node.ask("local/web", &["--request-id", "q1"]);
    node.killed_by_failpoint();

    let hold = support::node::Hold::new(world.dir.path(), "replay");
    let slow = options.plain().failpoints(&format!("coordinator-before-replay={}", hold.action()));
    let node = Node::start(&slow);
    hold.reached();
    let early = node.recover("local/web", &["--request-id", "q2", "--retry-for", "1s"]);
    assert_ne!(early.exit, 0, "nothing is admitted before the replay: {early:?}");
    hold.release();
    // The open run is settled by the journal's word before the next request is decided, so that one opens.
    let answer = node.recover("local/web", &["--request-id", "q2"]);
    assert_eq!(answer.json["decision"], "DECISION_OPENED", "{answer:?}");
    node.stop();
}

/// Invariant 8: the first proposal of what the wire showed is lost.
#[tokio::test(flavor = "multi_thread")]
async fn an_interlock_stays_in_force_while_its_settlement_cannot_be_committed() {
    let world = World::new().await;
    let hold = support::node::Hold::new(world.dir.path(), "again");
    let lost_once = format!("coordinator-commit-evidence=1*return(lose)->{}", hold.action());
    let node = Node::start(&world.options.clone().failpoints(&lost_once));
    let answer = node.recover("local/web", &["--grace", "0s"]);
    hold.reached();
    let run = node.run(&answer.run_id());
    assert_eq!(run["status"], "RUN_STATUS_INTERLOCKED", "what is not committed is not so: {run:#}");
    let second = node.recover("local/web", &["--grace", "0s"]);
    assert_eq!(second.json["decision"], "DECISION_ATTACHED", "{second:?}");
    assert_eq!(second.run_id(), answer.run_id());
    hold.release();
    let run = node.wait_for_status(&answer.run_id(), "APPLIED");
    assert_eq!(world.posts(), 1, "{run:#}");
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_never_share_a_data_directory() {
    let world = World::new().await;
    let node = Node::start(&world.options);
    let said = Node::refuses_to_start(&world.options);
    assert!(said.contains("in use by another process"), "{said}");
    node.stop();
}
