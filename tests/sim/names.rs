//! Names that move from one container to another, and containers with several names.

use relatch::sim::{Action, ContainerSpec, End, Endpoint, Event, Hold as EngineHold, Rule};

use crate::world::{World, attached, codes, event, opened, refused, settlement, unresolved};

/// What Compose does first when it recreates a container: the old one goes on under another name.
fn recreated(old: &str) -> Action {
    let keep_old_as = Some(format!("{}_shop-web-1", &old[..12]));
    Action::Replace { id: None, keep_old_as, rules: Vec::new() }
}

fn reply_is_lost() -> Rule {
    Rule::on(Endpoint::Restart).no_effect().cut(End::Fin)
}

/// docker/compose#11151, #10460, containrrr/watchtower#235: recreated while its run is open, and the old one is
/// removed.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_recreated_under_its_name_and_removed_is_superseded_and_the_new_one_is_left_alone() {
    let world = World::new([ContainerSpec::compose("shop", "web", 1).rule(reply_is_lost())]).await;
    let (node, old) = (world.node(), world.id("shop-web-1"));
    let run = opened(&node, "local/shop/web", &[]);
    unresolved(&node, &run, &["reply-lost", "started-at-equal"]);
    world.act(&old, recreated(&old));
    let new = world.id("shop-web-1");
    let started_at = world.started_at(&new);
    world.looked_again(&node, &old).await;
    world.act(&old, Action::Remove);
    let run = node.wait_for_status(&run, "SUPERSEDED");
    assert_eq!(settlement(&run), format!("incarnation-replaced: {new} answers to the target"));
    assert_eq!(run["disposition"], "DISPOSITION_UNCERTAIN", "no recovery is claimed: {run:#}");
    assert_eq!(run["verification"], "VERIFICATION_UNSPECIFIED", "{run:#}");
    assert_eq!((world.posts(&old), world.posts(&new)), (1, 0));
    assert_eq!(world.started_at(&new), started_at);
    // The attempt stays charged to the name.
    refused(&node, "local/shop/web", "backing-off");
    world.judge(&node);
}

/// docker/compose#1573: recreated, and both stay. The old one is judged by its own id.
#[tokio::test(flavor = "multi_thread")]
async fn a_newer_container_under_the_name_settles_nothing_while_the_old_one_exists() {
    let world = World::new([ContainerSpec::compose("shop", "web", 1).rule(reply_is_lost())]).await;
    let (node, old) = (world.node(), world.id("shop-web-1"));
    let run = opened(&node, "local/shop/web/1", &[]);
    unresolved(&node, &run, &["reply-lost", "started-at-equal"]);
    world.act(&old, recreated(&old));
    let new = world.id("shop-web-1");
    world.looked_again(&node, &old).await;
    let open = unresolved(&node, &run, &["reply-lost", "started-at-equal"]);
    assert_eq!(open["observed"]["containerId"], old.as_str(), "{open:#}");
    // The target's name is the new one's, and the run stands in its way too; the service has two containers now.
    assert_eq!(attached(&node, "local/shop-web-1", &[]), run);
    assert_eq!(attached(&node, &format!("local/{}", &old[..12]), &[]), run);
    refused(&node, "local/shop/web", "target-ambiguous");
    world.act(&old, Action::MoveStartedAt);
    let run = node.wait_for_status(&run, "APPLIED");
    assert_eq!(run["observed"]["containerId"], old.as_str(), "{run:#}");
    assert_eq!((world.posts(&old), world.posts(&new)), (1, 0));
    world.judge(&node);
}

/// The same between the decision and the POST: what is sent is sent to the old one's full id, or not at all.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_recreated_before_the_post_is_restarted_by_its_id_or_not_at_all() {
    for removed in [false, true] {
        let world = World::new([ContainerSpec::compose("shop", "web", 1)]).await;
        let old = world.id("shop-web-1");
        let (node, hold) = world.node_held_at("coordinator-after-commit");
        let run = opened(&node, "local/shop/web", &[]);
        hold.reached();
        world.act(&old, recreated(&old));
        let new = world.id("shop-web-1");
        if removed {
            world.act(&old, Action::Remove);
        }
        hold.release();
        node.wait_for_status(&run, if removed { "NOT_APPLIED" } else { "APPLIED" });
        assert_eq!((world.posts(&old), world.posts(&new)), (usize::from(!removed), 0));
        world.judge(&node);
    }
}

/// Compose renames A, creates B, fails, and takes both back: A was there all the time.
#[tokio::test(flavor = "multi_thread")]
async fn a_recreation_that_is_rolled_back_never_superseded_the_run() {
    let world = World::new([ContainerSpec::compose("shop", "web", 1).rule(reply_is_lost())]).await;
    let (node, old) = (world.node(), world.id("shop-web-1"));
    let run = opened(&node, "local/shop/web", &[]);
    unresolved(&node, &run, &["reply-lost", "started-at-equal"]);
    world.act(&old, recreated(&old));
    let new = world.id("shop-web-1");
    world.looked_again(&node, &old).await;
    world.act(&new, Action::Remove);
    world.looked_again(&node, &old).await;
    world.act(&old, Action::Rename { name: "shop-web-1".to_owned() });
    world.looked_again(&node, &old).await;
    unresolved(&node, &run, &["reply-lost", "started-at-equal"]);
    world.act(&old, Action::MoveStartedAt);
    let run = node.wait_for_status(&run, "APPLIED");
    assert_eq!(event(&run, "SUPERSEDED"), None, "{run:#}");
    assert_eq!((world.posts(&old), world.posts(&new)), (1, 0));
    world.judge(&node);
}

/// Asked for side by side under every spelling that it has, and then under a name that it got meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn all_spellings_of_a_container_share_one_interlock_and_one_post() {
    let world = World::new([ContainerSpec::compose("shop", "web", 1)]).await;
    let (node, id) = (world.node(), world.id("shop-web-1"));
    world.script("shop-web-1", Rule::on(Endpoint::Restart).hold_effect(EngineHold::Until("go".to_owned())));
    let short = format!("local/{}", &id[..12]);
    let full = format!("local/{id}");
    let spellings = ["local/shop/web", "local/shop/web/1", "local/shop-web-1", &short, &full];
    let answers = std::thread::scope(|scope| {
        let asking = spellings.map(|spelling| scope.spawn(|| node.recover(spelling, &[])));
        asking.map(|asking| asking.join().expect("asking"))
    });
    let opened = |answer: &&crate::support::node::Answer| answer.json["decision"] == "DECISION_OPENED";
    assert_eq!(answers.iter().filter(opened).count(), 1, "{answers:#?}");
    let run = answers[0].run_id();
    for answer in &answers {
        assert_eq!(answer.exit, 0, "{answer:#?}");
        assert_eq!(answer.run_id(), run);
        assert_eq!(answer.run()["target"], "local/shop/web/1");
    }
    world.reached("go").await;
    world.act(&id, Action::Rename { name: "renamed".to_owned() });
    assert_eq!(attached(&node, "local/renamed", &[]), run);
    world.engine.release("go");
    let run = node.wait_for_status(&run, "APPLIED");
    assert_eq!(codes(&run), Vec::<&str>::new(), "{run:#}");
    assert_eq!(world.posts(&id), 1);
    world.judge(&node);
}

/// A container without Compose's labels goes by its name, and so its target changes with a rename.
#[tokio::test(flavor = "multi_thread")]
async fn a_rename_during_an_open_run_opens_no_second_one() {
    let world = World::new([ContainerSpec::named("web").rule(reply_is_lost())]).await;
    let (node, id) = (world.node(), world.id("web"));
    let run = opened(&node, "local/web", &[]);
    unresolved(&node, &run, &["reply-lost", "started-at-equal"]);
    world.act(&id, Action::Rename { name: "web-old".to_owned() });
    let other = world.engine.add_container(ContainerSpec::named("web")).unwrap();
    assert_eq!(attached(&node, "local/web-old", &[]), run, "the same container");
    assert_eq!(attached(&node, "local/web", &[]), run, "the same target");
    world.act(&id, Action::MoveStartedAt);
    node.wait_for_status(&run, "APPLIED");
    // The exchange is not known to have ended: the container stays closed under either name.
    refused(&node, "local/web-old", "quarantined");
    refused(&node, "local/web", "quarantined");
    assert_eq!((world.posts(&id), world.posts(&other)), (1, 0));
    world.judge(&node);
}

/// An engine with many containers is asked for all of them only where no name answers to the spelling.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_by_name_reads_no_list_of_all_containers() {
    let others = (0..40).map(|number| ContainerSpec::named(format!("other-{number}")));
    let world = World::new(
        [ContainerSpec::named("web"), ContainerSpec::compose("shop", "api", 1)].into_iter().chain(others),
    )
    .await;
    let node = world.node();
    let lists = || {
        let history = world.engine.log().history();
        let listed = history.entries.iter().filter_map(|entry| match &entry.event {
            Event::Request { endpoint: Endpoint::List, target, .. } => Some(target.clone()),
            _ => None,
        });
        let (some, all): (Vec<_>, Vec<_>) = listed.partition(|target| target.contains("filters="));
        (some.len(), all.len())
    };
    let dry = |spelling: &str| node.recover(spelling, &["--dry-run"]);
    for (number, spelling) in
        ["local/web", "local/shop/api", "local/shop/api/1", "local/shop-api-1"].iter().enumerate()
    {
        let answer = dry(spelling);
        assert_eq!(answer.exit, 0, "{spelling}: {answer:?}");
        assert_eq!(lists(), (number + 1, 0), "{spelling}");
    }
    let answer = dry(&format!("local/{}", &world.id("web")[..12]));
    assert_eq!((answer.exit, lists()), (0, (5, 1)), "by the beginning of an id: {answer:?}");
    let answer = dry("local/nobody");
    assert_eq!((answer.exit, lists()), (3, (6, 2)), "{answer:?}");
    assert!(answer.run()["reasons"][0]["detail"].as_str().unwrap().contains("local/other-39"), "{answer:?}");
}
