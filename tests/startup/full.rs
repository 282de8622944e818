//! A disk that is full, when the node starts and while it runs: it ends and says so, and loses nothing.

use relatch::sim::{ContainerSpec, Endpoint, Engine, Hold, Rule};

use crate::World;
use crate::mount::Mount;
use crate::support::node::{Node, NodeOptions, wait_for};

/// The size of the whole file system.
const SIZE_KIB: u64 = 32 << 10;

/// Room for a node to begin, but less than a database wants to set aside for its next log file (4 MiB and a bit):
/// what is written then needs room at once.
const TIGHT_KIB: u64 = 3 << 10;

fn on(mount: &Mount, world: &World) -> NodeOptions {
    NodeOptions { data_dir: mount.path().join("data"), ..world.options.clone() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_at_the_start_is_said_to_be_and_a_new_node_begins_once_there_is_room() {
    let world = World::new().await;
    let mount = Mount::of_kib(SIZE_KIB);
    let options = on(&mount, &world);
    let ballast = mount.fill("ballast");
    for _ in 0..2 {
        let said = Node::refuses_to_start(&options);
        assert!(said.contains("there is no room left: make some"), "{said}");
    }
    std::fs::remove_file(ballast).unwrap();
    Node::start(&options).stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full_at_the_next_start_loses_nothing() {
    let world = World::new().await;
    let mount = Mount::of_kib(SIZE_KIB);
    let options = on(&mount, &world);
    let node = Node::start(&options);
    let run = node.recover("local/web", &["--grace", "0s", "--wait=applied"]).run_id();
    node.stop();
    let ballast = mount.fill("ballast");
    for _ in 0..2 {
        let said = Node::refuses_to_start(&options);
        assert!(said.contains("there is no room left: make some"), "{said}");
    }
    std::fs::remove_file(ballast).unwrap();
    let node = Node::start(&options);
    assert_eq!(node.run(&run)["status"], "RUN_STATUS_APPLIED");
    node.stop();
}

/// Each request that was answered before the disk was full is known afterwards, as it was answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_while_it_runs_ends_it_and_what_was_answered_is_kept() {
    let world = World::new().await;
    let mount = Mount::of_kib(SIZE_KIB);
    let options = on(&mount, &world);
    let tight = mount.fill_but("tight", TIGHT_KIB);
    let mut node = Node::start(&options);
    let answer = node.recover("local/web", &["--grace", "0s", "--wait=applied"]);
    assert_eq!(answer.exit, 0, "{answer:?}");
    let mut known = vec![answer.run_id()];
    let full = mount.fill("full");
    // Refusals are recorded too, so that each takes a little of what is left in the files' last pages.
    wait_for("the node to run out of room", || {
        let answer = node.recover("local/web", &["--retry-for", "1ms"]);
        if answer.exit == 3 {
            known.push(answer.run_id());
        }
        if node.runs_still() { Err(format!("{answer:?}")) } else { Ok(()) }
    });
    let said = node.fails();
    assert!(said.contains("there is no room left: make some") && said.contains("start it again"), "{said}");

    for file in [full, tight] {
        std::fs::remove_file(file).unwrap();
    }
    let node = Node::start(&options);
    for run in &known {
        let status = if run == &known[0] { "RUN_STATUS_APPLIED" } else { "RUN_STATUS_REFUSED" };
        assert_eq!(node.run(run)["status"], status, "of {} runs", known.len());
    }
    assert_eq!(world.posts(), 1);
    node.stop();
}

/// The restart is at the engine when the disk fills, so that nothing of its answer can be kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_that_is_under_way_when_the_disk_fills_is_settled_by_what_is_seen_later() {
    let hold = Rule { hold_reply: Some(Hold::Until("answer".to_owned())), ..Rule::on(Endpoint::Restart) };
    let web = ContainerSpec::named("web").rule(hold);
    let world = World::serving(Engine::builder().container(web).build().unwrap()).await;
    let mount = Mount::of_kib(SIZE_KIB);
    let options = on(&mount, &world);
    let tight = mount.fill_but("tight", TIGHT_KIB);
    let mut node = Node::start(&options);
    let run = node.recover("local/web", &["--grace", "1s"]).run_id();
    let id = world.engine.container_id("web").unwrap();
    world.engine.log().wait_until(|history| !history.posts(&id).is_empty()).await;
    let full = mount.fill("full");
    world.engine.release("answer");
    wait_for("the node to run out of room", || {
        let answer = node.recover("local/web", &["--retry-for", "1ms"]);
        if node.runs_still() { Err(format!("{answer:?}")) } else { Ok(()) }
    });
    let said = node.fails();
    assert!(said.contains("there is no room left: make some"), "{said}");

    for file in [full, tight] {
        std::fs::remove_file(file).unwrap();
    }
    let node = Node::start(&options);
    node.wait_for_status(&run, "APPLIED");
    assert_eq!(world.posts(), 1);
    node.stop();
}
