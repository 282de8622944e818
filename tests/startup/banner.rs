//! What `relatch dev` claims once it serves.

use relatch::sim::{Engine, ListenMode};
use serde_json::Value;

use crate::World;
use crate::process::Running;
use crate::support::node::relatch;

/// `relatch dev` as it is typed, on a free port.
fn dev(world: &World, args: &[&str]) -> Running {
    let data_dir = world.options.data_dir.to_str().unwrap();
    let mut command = relatch();
    command.args(["dev", "--listen", "127.0.0.1:0", "--docker", &world.options.docker]);
    Running::start(command.args(["--ephemeral-data", "--data-dir", data_dir]).args(args))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_is_said_to_answer_only_once_it_has_and_is_asked_until_it_does() {
    let world = World::new().await;
    world.engine.listen(ListenMode::Unlink).await;
    let node = dev(&world, &[]);
    let said = node.says(&["relatch serves clients on http://127.0.0.1:", "asked again", "No such file"]);
    assert!(!said.contains("answered"), "{said}");
    world.engine.listen(ListenMode::Open).await;
    node.says(&["Docker Engine 29.3.1 answered"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_hangs_keeps_nobody_from_being_told_that_clients_can_connect() {
    let world = World::new().await;
    world.engine.listen(ListenMode::Deaf).await;
    let node = dev(&world, &[]);
    let said = node.says(&["relatch serves clients on http://127.0.0.1:", "asked again"]);
    assert!(said.contains("no whole answer within") && !said.contains("answered"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_is_refused_by_name() {
    let spec =
        serde_json::json!({ "engine": { "server": "Libpod/5.4.0 (linux)", "new_id_each_time": true } });
    let spec = serde_json::from_value(spec).unwrap();
    let world = World::serving(Engine::builder().spec(spec).build().unwrap()).await;
    let said = dev(&world, &[]).says(&["asked again"]);
    assert!(said.contains("it is Podman"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_get_the_address_first_and_then_what_is_heard_of_the_engine() {
    let world = World::new().await;
    let node = dev(&world, &["-o", "json"]);
    let said = node.says(&["\"engine\""]);
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines[0]["addr"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{said}");
    assert_eq!(lines[1], serde_json::json!({ "engine": { "answers": true, "version": "29.3.1" } }));
}

/// Nothing has to be configured: the port, the engine and the place of the data all have defaults.
#[tokio::test(flavor = "multi_thread")]
async fn the_data_goes_where_the_system_keeps_state() {
    let world = World::new().await;
    let state = world.dir.path().join("state");
    let mut command = relatch();
    command.args(["dev", "--ephemeral-data", "--listen", "127.0.0.1:0", "--docker", &world.options.docker]);
    let node = Running::start(command.env("XDG_STATE_HOME", &state));
    let said = node.says(&["answered"]);
    assert!(said.contains(state.join("relatch/dev").to_str().unwrap()), "{said}");
    assert!(state.join("relatch/dev/identity.json").exists());
}
