//! Ways in which somebody got a wrong outcome out of it once.

use std::time::{Duration, Instant};

use relatch::sim::{ContainerSpec, Engine};
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::World;
use crate::support::node::{Hold, Node, NodeOptions, wait_for};

/// dockerd sets no limit to a container's name. What is committed must be readable by every node, for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_whose_name_fits_no_target_is_restarted_by_its_id() {
    let name = "n".repeat(600);
    let world = World::of([ContainerSpec::named(&name)]).await;
    let id = world.engine.container_id(&name).unwrap();
    let node = Node::start(&world.options);
    let answer = node.recover(&format!("local/{}", &id[..12]), &["--wait=applied"]);
    assert_eq!(answer.exit, 0, "{answer:?}");
    assert_eq!(answer.run()["target"], format!("local/{id}").as_str());
    node.kill();
    let node = Node::start(&world.options);
    assert_eq!(node.run(&answer.run_id())["status"], "RUN_STATUS_APPLIED", "the log reads back");
    node.stop();
}

/// The journal's disk is slow while a new leader replays: it is asked again, and its word counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_answers_late_is_asked_again() {
    let world = World::new().await;
    let node = Node::start(&world.options.clone().failpoints("dispatch-before-connect=return(kill)"));
    let asking = node.ask("local/web", &["--request-id", "q1"]);
    node.killed_by_failpoint();
    drop(asking);
    let hold = Hold::new(world.dir.path(), "journal");
    let options = world.options.clone().failpoints(&format!("journal-before-write=1*{}", hold.action()));
    let node = Node::start(&options);
    let run = node.recover("local/web", &["--request-id", "q1"]).run_id();
    node.wait_for_run(&run, "the replay to give up on the journal", |run| {
        run["reasons"].to_string().contains("journal-unreachable")
    });
    hold.release();
    let run = node.wait_for_status(&run, "NOT_APPLIED");
    assert!(run["settlement"].as_str().unwrap().contains("no intent"), "{run:#}");
    assert_eq!(world.posts(), 0);
    node.stop();
}

/// The leader sleeps between commit and recheck: what leaves later would outlive its interlock's deadline.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_so_late_that_it_could_outlive_its_interlock() {
    let world = World::new().await;
    let hold = Hold::new(world.dir.path(), "late");
    let options = world.options.clone().failpoints(&format!("coordinator-after-commit={}", hold.action()));
    let node = Node::start(&options);
    let run = node.recover("local/web", &["--grace", "1s"]).run_id();
    hold.reached();
    // dispatch-by and the connect limit: 5 s and 3 s.
    let begun = Instant::now();
    wait_for("the time to send to pass", || {
        let passed = begun.elapsed();
        if passed > Duration::from_secs(9) { Ok(()) } else { Err(format!("{passed:?}")) }
    });
    hold.release();
    let run = node.wait_for_status(&run, "NOT_APPLIED");
    assert!(run["settlement"].as_str().unwrap().contains("the time to send it in was over"), "{run:#}");
    assert_eq!(world.posts(), 0);
    node.stop();
}

/// The log is gone, and with it an open interlock; identity and journal are there.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_log_is_gone_is_refused_by_name() {
    let world = World::new().await;
    let node = Node::start(&world.options.clone().failpoints("dispatch-after-first-byte=return(kill)"));
    let asking = node.ask("local/web", &["--grace", "300s"]);
    node.killed_by_failpoint();
    drop(asking);
    std::fs::remove_dir_all(world.options.data_dir.join("raft")).unwrap();
    let said = Node::refuses_to_start(&world.options);
    assert!(said.contains("log is gone"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_is_not_named_stays_in_force() {
    let world = World::of([ContainerSpec::named("a"), ContainerSpec::named("b")]).await;
    let node = Node::start(&world.options.clone().arg("--grace-max").arg("600s"));
    let opened = |node: &Node, target: &str| {
        wait_for("the grace limit to be in force", || {
            let answer = node.recover(target, &["--grace", "400s"]);
            if answer.exit == 0 { Ok(answer) } else { Err(format!("{answer:?}")) }
        })
    };
    opened(&node, "local/a");
    node.stop();
    let node = Node::start(&world.options.clone().arg("--margin").arg("30s"));
    let answer = node.recover("local/b", &["--grace", "400s"]);
    assert_eq!(answer.json["decision"], "DECISION_OPENED", "{answer:?}");
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_margin_without_end_is_refused_by_name() {
    let world = World::new().await;
    let said = Node::refuses_to_start(&world.options.clone().arg("--margin").arg("18446744073709551615ms"));
    assert!(said.contains("margin_ms"), "{said}");
}

/// The engine behind the socket is another one for good: its data root was made anew.
#[tokio::test(flavor = "multi_thread")]
async fn an_engine_with_a_new_identity_is_bound_again_while_nothing_is_open_there() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("docker.sock");
    let engine =
        |id: &str| Engine::builder().engine_id(id).container(ContainerSpec::named("web")).build().unwrap();
    let first = engine("E-OLD");
    first.serve_unix(&socket).await.unwrap();
    let node = Node::start(&NodeOptions::new(socket.to_str().unwrap(), dir.path().join("data")));
    let answer = node.recover("local/web", &["--wait=applied"]);
    assert_eq!(answer.exit, 0, "{answer:?}");
    first.shutdown().await.unwrap();
    let second = engine("E-NEW");
    second.serve_unix(&socket).await.unwrap();
    wait_for("the new engine to be bound", || {
        let answer = node.recover("local/web", &[]);
        if answer.exit == 0 { Ok(()) } else { Err(format!("{answer:?}")) }
    });
    node.stop();
}

/// The log's sync hangs: nothing is sent, nobody is told that it serves, and it goes on by itself afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_commit_does_not_say_that_it_serves() {
    let world = World::of([ContainerSpec::named("web"), ContainerSpec::named("other")]).await;
    let hold = Hold::new(world.dir.path(), "sync");
    hold.release();
    let options = world.options.clone().failpoints(&format!("raft_append_synced={}", hold.action()));
    let node = Node::start(&options);
    let answer = node.recover("local/web", &["--wait=applied"]);
    assert_eq!(answer.exit, 0, "{answer:?}");
    let mut health = Health::of(&node).await;
    health.wait_for(ServingStatus::Serving).await;

    hold.arm();
    let asking = node.ask("local/other", &["--request-id", "q1"]);
    hold.reached();
    health.wait_for(ServingStatus::NotServing).await;
    hold.release();
    health.wait_for(ServingStatus::Serving).await;
    drop(asking);
    // It was given up on before it committed, and so it was never dispatched.
    let run = node.recover("local/other", &["--request-id", "q1"]).run_id();
    node.wait_for_status(&run, "NOT_APPLIED");
    let other = world.engine.container_id("other").unwrap();
    assert_eq!(world.engine.log().posts(&other).len(), 0);
    node.stop();
}

/// An orderly end loses no answer; whoever is in a hurry says so twice.
#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_end_waits_for_the_answer_of_a_restart_and_a_second_signal_does_not() {
    for (hurried, quarantined) in [(false, false), (true, true)] {
        let world = World::new().await;
        let node = Node::start(&world.options);
        let run = node.recover("local/web", &["--grace", "3s"]).run_id();
        world.engine.log().wait_until(|history| !history.posts(&world.id()).is_empty()).await;
        node.terminate();
        if hurried {
            let mut health = Health::of(&node).await;
            health.wait_for(ServingStatus::NotServing).await;
            node.terminate();
        }
        node.ended();
        let node = Node::start(&world.options);
        let run = node.wait_for_status(&run, "APPLIED");
        assert_eq!(run["quarantined"], quarantined, "{run:#}");
        assert_eq!(world.posts(), 1);
        node.stop();
    }
}

pub struct Health(HealthClient<Channel>);

impl Health {
    pub async fn of(node: &Node) -> Self {
        let channel = tonic::transport::Endpoint::from_shared(node.addr().to_owned()).unwrap();
        Self(HealthClient::new(channel.connect().await.unwrap()))
    }

    pub async fn wait_for(&mut self, wanted: ServingStatus) {
        let begun = Instant::now();
        loop {
            let request = HealthCheckRequest { service: String::new() };
            let said = self.0.check(request).await.unwrap().into_inner().status();
            if said == wanted {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "gave up waiting for {wanted:?}: {said:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
