//! Two nodes with data of their own beside one engine.

use relatch::sim::ContainerSpec;

use crate::support::node::{Node, NodeOptions};
use crate::world::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_second_node_beside_an_engine_ends_by_itself_and_says_which_one_serves_it() {
    let (world, node, mut clients) = World::up([ContainerSpec::named("web")]).await;
    let second = NodeOptions::new(&world.options.docker, world.dir.path().join("second"));
    let refused = |options: &NodeOptions, by: &str| {
        let said = Node::refuses_to_start(options);
        assert!(said.contains("is served by another relatch already") && said.contains("--addr"), "{said}");
        assert!(said.contains(by), "{by} is not in {said}");
    };
    let data_of = |options: &NodeOptions| format!("its data in {})", options.data_dir.display());
    refused(&second, &format!("process {}, {}", node.pid(), data_of(&world.options)));
    clients.opened("local/web").await;

    // Whoever is killed serves nothing any more.
    node.kill();
    let (other, mut clients) = world.start(&second).await;
    assert_eq!(clients.standing().await, []);
    refused(&world.options, &data_of(&second));
    other.stop();
    world.start(&world.options).await;
}
