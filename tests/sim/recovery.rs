//! Applied is not recovered: what is seen of a container within its verify window.

use relatch::ledger::{EventKind, ReasonCode, Run, Status, Verification};
use relatch::model::RunId;
use relatch::sim::{Action, ContainerSpec, Endpoint, Health, HealthStatus, History, Hold, Rule};

use crate::leader::Leader;
use crate::support::node::{answered, relatch};
use crate::world::{World, codes, opened, reason};

/// The verify window of a container without a health check.
const WINDOW_MS: u64 = 30_000;

/// A run that was applied, and whose container is watched.
async fn watched(leader: &Leader, target: &str) -> RunId {
    let run = leader.ask(target, "r-1").await.expect("an answer").run.id;
    let is_watched = |run: &Run| {
        let applied = matches!(run.status, Status::Applied { .. });
        applied && matches!(run.verification, Verification::Pending { .. })
    };
    leader.wait_for_run(&run, "the watch to begin", is_watched).await;
    run
}

async fn ended(leader: &Leader, run: &RunId) -> Run {
    let is_over = |run: &Run| !matches!(run.verification, Verification::Pending { .. });
    leader.wait_for_run(run, "the watch to end", is_over).await
}

fn unwell(run: &Run) -> Option<ReasonCode> {
    run.unwell.as_ref().map(|reason| reason.code)
}

/// Waits until the container was looked at so many times more.
async fn looked_at(world: &World, id: &str, times: usize) {
    let looks = |history: &History| history.requests(id, Endpoint::Inspect).len();
    let before = looks(&world.engine.log().history());
    world.logged("more looks", |history| looks(history) >= before + times).await;
}

/// The script that trusted an exit code of 0: the container without a health check ran for a moment, and went down.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_goes_down_again_is_not_recovered_and_the_wait_says_so() {
    let world = World::web().await;
    let node = world.node();
    let run = opened(&node, "local/web", &["--request-id", "r-1"]);
    node.wait_for_status(&run, "APPLIED");
    world.act("web", Action::Exit { code: 1 });
    let answer = node.recover("local/web", &["--request-id", "r-1", "--wait"]);
    assert_eq!(answer.exit, 7, "{answer:?}");
    let run = answer.run();
    assert_eq!(run["status"], "RUN_STATUS_APPLIED", "{run:#}");
    assert_eq!(run["verification"], "VERIFICATION_NOT_RECOVERED", "{run:#}");
    assert_eq!(codes(run), ["target-went-down"]);
    let said = reason(run, "target-went-down");
    assert!(said["detail"].as_str().unwrap().contains("web is exited since "), "{run:#}");
    assert!(said["endsWhen"].as_str().unwrap().contains("starts the container"), "{run:#}");
    let page = answered(relatch().args(["--addr", node.addr(), "runs", "show", &answer.run_id()]));
    assert!(page.stdout.contains("next: `docker logs "), "{page:?}");
    assert_eq!(
        world.engine.log().history().starts(&world.id("web")),
        1,
        "but by the restart, it was not started"
    );
    world.judge(&node);
}

/// Nothing but a look at the window's end says that it ran so long. A look that changes nothing costs no entry.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_is_watched_to_the_end_of_its_window_and_only_news_is_committed() {
    for (health, verification, code) in [
        (Health::None, Verification::Unverified, None),
        (Health::Unhealthy, Verification::NotRecovered, Some(ReasonCode::TargetNotHealthy)),
    ] {
        let world = World::new([ContainerSpec::named("web").health(health)]).await;
        let leader = Leader::start(&world).await;
        let run = watched(&leader, "local/web").await;
        let before = leader.consensus.applied().borrow().0;
        looked_at(&world, &world.id("web"), 4).await;
        let entries = leader.consensus.applied().borrow().0 - before;
        // The clock of the cluster is moved on every 10 s.
        assert!(entries <= 1, "{entries} entries for four looks that showed nothing new");
        leader.clock.skip_ms(30 * 60_000);
        let run = ended(&leader, &run).await;
        assert_eq!((run.verification, unwell(&run)), (verification, code), "{run:#?}");
        assert_eq!(run.times(EventKind::Verified), 1, "{run:#?}");
        leader.end().await;
    }
}

/// Somebody else restarts it within the window: between their stop and their start it is down for a moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_is_down_for_a_moment_is_looked_at_again() {
    let world = World::new([ContainerSpec::named("web")]).await;
    let leader = Leader::start(&world).await;
    let run = watched(&leader, "local/web").await;
    world.act("web", Action::Exit { code: 0 });
    looked_at(&world, &world.id("web"), 1).await;
    world.act("web", Action::Start);
    looked_at(&world, &world.id("web"), 2).await;
    leader.clock.skip_ms(WINDOW_MS);
    let run = ended(&leader, &run).await;
    assert_eq!((run.verification, unwell(&run)), (Verification::Unverified, None), "{run:#?}");
    leader.end().await;
}

/// The watch of a container has come to the end of its window, and from now on its looks go by these rules.
async fn at_the_end(world: &World, leader: &Leader, rule: Rule) -> RunId {
    let run = watched(leader, "local/web").await;
    // A look is under way, so that the next is the first at the end.
    let held = Rule::on(Endpoint::Inspect).hold_reply(Hold::Until("end".to_owned()));
    world.act("web", Action::AddRules { rules: vec![held, rule] });
    world.reached("end").await;
    leader.clock.skip_ms(30 * 60_000);
    world.engine.release("end");
    run
}

/// An engine that is busy for a moment says nothing against a container that runs, or is healthy.
#[tokio::test(flavor = "multi_thread")]
async fn looks_that_fail_at_the_end_of_a_window_are_made_again() {
    for (health, verification) in
        [(Health::None, Verification::Unverified), (Health::Unhealthy, Verification::Recovered)]
    {
        let world = World::new([ContainerSpec::named("web").health(health)]).await;
        let leader = Leader::start(&world).await;
        let mut busy = Rule::on(Endpoint::Inspect).times(2).status(500, "busy");
        if verification == Verification::Recovered {
            busy = busy.then(Action::SetHealth { status: HealthStatus::Healthy });
        }
        let run = at_the_end(&world, &leader, busy).await;
        let run = ended(&leader, &run).await;
        assert_eq!((run.verification, unwell(&run)), (verification, None), "{run:#?}");
        assert_eq!(run.times(EventKind::Verified), 1, "{run:#?}");
        leader.end().await;
    }
}

/// Who cannot look knows nothing, and says why. No look is made without end.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_seen_at_the_end_of_its_window_is_unverified_and_says_why() {
    for health in [Health::None, Health::Unhealthy] {
        let world = World::new([ContainerSpec::named("web").health(health)]).await;
        let leader = Leader::start(&world).await;
        let run =
            at_the_end(&world, &leader, Rule::on(Endpoint::Inspect).forever().status(500, "busy")).await;
        let run = ended(&leader, &run).await;
        let expected = (Verification::Unverified, Some(ReasonCode::TargetNotSeen));
        assert_eq!((run.verification, unwell(&run)), expected, "{run:#?}");
        let detail = run.unwell.unwrap().detail;
        assert!(detail.contains("status 500: busy"), "{detail}");
        leader.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_is_gone_at_the_end_of_its_window_is_not_recovered() {
    let world = World::web().await;
    let leader = Leader::start(&world).await;
    let run = watched(&leader, "local/web").await;
    world.act("web", Action::Remove);
    leader.clock.skip_ms(WINDOW_MS);
    let run = ended(&leader, &run).await;
    assert_eq!(
        (run.verification, unwell(&run)),
        (Verification::NotRecovered, Some(ReasonCode::TargetNotSeen))
    );
    let detail = run.unwell.unwrap().detail;
    assert!(detail.contains("there is no such container"), "{detail}");
    leader.end().await;
}

/// A node that does not know the host of a run that it watches: the watch ends all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_host_is_not_known_any_more_is_not_watched_for_ever() {
    let world = World::web().await;
    let leader = Leader::start(&world).await;
    let run = watched(&leader, "local/web").await;
    let leader = leader.without_its_hosts().await;
    leader.clock.skip_ms(WINDOW_MS);
    let run = ended(&leader, &run).await;
    assert_eq!((run.verification, unwell(&run)), (Verification::Unverified, Some(ReasonCode::TargetNotSeen)));
    assert!(run.unwell.unwrap().detail.contains("its host is not known to this node"));
    leader.end().await;
}
