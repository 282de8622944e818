//! `Holds`: what they cover, how long they stand, and what they stand in the way of.

use prost_types::Duration;
use relatch::rpc::v1::hold_scope::Scope;
use relatch::rpc::v1::{
    Decision, Hold, HoldOwner, HoldScope, LiftHoldRequest, PlaceHoldRequest, RenewHoldRequest, RunStatus,
    Verdict,
};
use relatch::sim::{Action, Compose, ContainerSpec, Endpoint, ListenMode};
use tonic::Status;

use crate::world::{Clients, World, ask, codes, fields, hold, missing, precondition, wait};

async fn lift(clients: &mut Clients, which: LiftHoldRequest) -> Result<Vec<Hold>, Status> {
    clients.holds.lift_hold(which).await.map(|answer| answer.into_inner().lifted)
}

fn by_id(id: &str) -> LiftHoldRequest {
    LiftHoldRequest { hold_id: id.to_owned(), scope: None, operator: "lee".to_owned() }
}

fn by_scope(scope: Scope) -> LiftHoldRequest {
    let scope = Some(HoldScope { scope: Some(scope) });
    LiftHoldRequest { hold_id: String::new(), scope, operator: "lee".to_owned() }
}

fn ids(holds: &[Hold]) -> Vec<&str> {
    holds.iter().map(|hold| hold.hold_id.as_str()).collect()
}

fn shop() -> [ContainerSpec; 4] {
    let one_off = |name: &str| ContainerSpec {
        compose: Some(Compose { project: "shop".into(), service: name.into(), number: 1 }),
        ..ContainerSpec::default()
    };
    [
        ContainerSpec::compose("shop", "web", 1),
        ContainerSpec::compose("shop", "web", 2),
        one_off("db"),
        ContainerSpec::named("api"),
    ]
}

const TARGETS: [&str; 4] = ["local/shop/web/1", "local/shop/web/2", "local/shop/db/1", "local/api"];

/// Those that are held, by a request that is not made: each is refused for its hold alone.
async fn held(clients: &mut Clients) -> Vec<&'static str> {
    let mut held = Vec::new();
    for target in TARGETS {
        let answer = clients.explained(target).await;
        let blocks: Vec<_> = answer.checks.iter().filter(|check| check.verdict() == Verdict::Block).collect();
        match blocks.as_slice() {
            [] => {}
            [check] => {
                assert_eq!(
                    (check.name.as_str(), codes(&check.reasons)),
                    ("hold", vec!["held"]),
                    "{answer:#?}"
                );
                held.push(target);
            }
            _ => panic!("{answer:#?}"),
        }
    }
    held
}

#[tokio::test(flavor = "multi_thread")]
async fn each_scope_holds_what_it_covers_and_is_lifted_by_its_id_or_as_it_was_named() {
    let (world, _node, mut clients) = World::up(shop()).await;
    let short_id = format!("local/{}", &world.id("api")[..12]);
    let target = |text: &str| Scope::Target(text.to_owned());
    for (named, canonical, covered) in [
        (Scope::Everything(true), Scope::Everything(true), TARGETS.as_slice()),
        (Scope::Host("local".into()), Scope::Host("local".into()), TARGETS.as_slice()),
        (Scope::Project("local/shop".into()), Scope::Project("local/shop".into()), &TARGETS[..3]),
        (target("local/shop/web"), target("local/shop/web/1"), &TARGETS[..1]),
        (target("local/shop-web-2"), target("local/shop/web/2"), &TARGETS[1..2]),
        (target(&short_id), target("local/api"), &TARGETS[3..]),
    ] {
        let placed = clients.place(hold(named.clone())).await;
        assert!(!placed.repeated_answer && placed.open_run_ids.is_empty(), "{placed:#?}");
        let placed = placed.hold.unwrap();
        assert_eq!(placed.scope, Some(HoldScope { scope: Some(canonical) }));
        assert_eq!((placed.owner(), placed.operator.as_str()), (HoldOwner::Operator, "kim"));
        assert_eq!((placed.reason.as_str(), placed.ends_in), ("an upgrade", None));
        assert_eq!(clients.standing().await, std::slice::from_ref(&placed));
        assert_eq!(held(&mut clients).await, covered, "{named:?}");
        let refused = clients.decided(&ask(covered[0]), Decision::Refused).await;
        assert_eq!(codes(&refused.reasons), ["held"]);
        assert_eq!(lift(&mut clients, by_id(&placed.hold_id)).await.unwrap(), std::slice::from_ref(&placed));
        assert_eq!(
            missing(&lift(&mut clients, by_id(&placed.hold_id)).await.unwrap_err()).0,
            "relatch.v1.Hold"
        );
        assert_eq!(held(&mut clients).await, [""; 0]);

        // Every hold of exactly this scope, by the same words.
        let two = [clients.place(hold(named.clone())).await, clients.place(hold(named.clone())).await];
        let two = two.map(|placed| placed.hold.unwrap());
        assert_eq!(ids(&lift(&mut clients, by_scope(named.clone())).await.unwrap()), ids(&two));
        let status = lift(&mut clients, by_scope(named)).await.unwrap_err();
        assert_eq!(missing(&status).0, "relatch.v1.Hold");
        assert!(status.message().contains("relatch holds"), "{status:?}");
    }
    let wide = clients.place(hold(Scope::Everything(true))).await.hold.unwrap();
    let status = lift(&mut clients, by_scope(Scope::Host("local".into()))).await.unwrap_err();
    assert_eq!(missing(&status).1, "host local", "a wider one is another");
    assert_eq!(clients.standing().await, [wide]);
    assert_eq!(world.changes(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_placed_once_under_its_id_and_outlives_a_node_that_is_killed() {
    let (world, node, mut clients) = World::up(shop()).await;
    let first = PlaceHoldRequest {
        hold_id: "ab".repeat(16),
        duration: Some(Duration { seconds: 7_200, nanos: 0 }),
        ..hold(Scope::Target("local/shop-web-1".into()))
    };
    let placed = clients.place(first.clone()).await.hold.unwrap();
    assert_eq!(placed.hold_id, first.hold_id);
    assert!(placed.ends_in.unwrap().seconds >= 7_190, "{placed:#?}");
    let again = clients.place(first.clone()).await;
    assert!(again.repeated_answer, "{again:#?}");
    assert_eq!(again.hold.unwrap().placed_at, placed.placed_at);
    for other in [
        PlaceHoldRequest { reason: "another".into(), ..first.clone() },
        PlaceHoldRequest { operator: "lee".into(), ..first.clone() },
        PlaceHoldRequest { duration: None, ..first.clone() },
        PlaceHoldRequest { scope: hold(Scope::Everything(true)).scope, ..first.clone() },
    ] {
        let status = clients.holds.place_hold(other).await.unwrap_err();
        assert_eq!(fields(&status), ["hold_id"], "{status:?}");
        assert!(status.message().contains("use a new id"), "{status:?}");
    }
    // SIGKILL: what was answered is there.
    node.kill();
    let (_node, mut clients) = world.start(&world.options).await;
    assert_eq!(ids(&clients.standing().await), [first.hold_id.as_str()]);
    assert!(clients.place(first).await.repeated_answer);
    assert_eq!(held(&mut clients).await, ["local/shop/web/1"]);
    let refused = clients.decided(&ask("local/shop/web"), Decision::Refused).await;
    assert_eq!(codes(&refused.reasons), ["held"]);
    assert_eq!(world.changes(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_ends_by_itself_when_its_time_is_over() {
    let (_world, _node, mut clients) = World::up([ContainerSpec::named("api")]).await;
    let short = Some(Duration { seconds: 0, nanos: 500_000_000 });
    clients.place(PlaceHoldRequest { duration: short, ..hold(Scope::Everything(true)) }).await;
    wait("the hold to end", async || match clients.standing().await.as_slice() {
        [] => Ok(()),
        standing => Err(format!("{standing:#?}")),
    })
    .await;
    clients.opened("local/api").await;
    // The longest that there is has an end that can be told.
    let longest = Some(Duration { seconds: i64::MAX / 1_000, nanos: 0 });
    let longest = PlaceHoldRequest { duration: longest, ..hold(Scope::Everything(true)) };
    let placed = clients.place(longest).await.hold.unwrap();
    assert_eq!(placed.ends_in, Some(Duration { seconds: 315_576_000_000, nanos: 0 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_yet_is_held_by_the_name_that_it_comes_to_bear_and_lifted_by_that() {
    let (world, _node, mut clients) = World::up([]).await;
    let named = Scope::Target("local/shop-web-1".into());
    let answer = clients.place(hold(named.clone())).await;
    let note = "no container on host local answers to shop-web-1 now: the hold stands all the same";
    assert!(answer.note.starts_with(note) && answer.note.contains("there are no containers"), "{answer:#?}");
    let placed = answer.hold.unwrap();
    assert_eq!(placed.scope, Some(HoldScope { scope: Some(named.clone()) }), "as it was spelled");
    let project = clients.place(hold(Scope::Project("local/shop".into()))).await;
    assert!(project.note.starts_with("no container on host local is of project shop now"), "{project:#?}");
    lift(&mut clients, by_scope(Scope::Project("local/shop".into()))).await.unwrap();
    world.engine.add_container(ContainerSpec::compose("shop", "web", 1)).unwrap();
    let refused = clients.decided(&ask("local/shop/web"), Decision::Refused).await;
    assert_eq!(codes(&refused.reasons), ["held"]);
    // Now the name stands for a container of Compose, and for the hold all the same.
    let answer = clients.place(hold(named.clone())).await;
    assert_eq!(answer.note, "");
    let second = answer.hold.unwrap();
    assert_eq!(second.scope, hold(Scope::Target("local/shop/web/1".into())).scope);
    let mut lifted = lift(&mut clients, by_scope(named)).await.unwrap();
    lifted.sort_by_key(|hold| hold.placed_at.map(|at| (at.seconds, at.nanos)));
    assert_eq!(ids(&lifted), [placed.hold_id, second.hold_id]);

    // An engine that does not answer keeps nobody from holding what is on it.
    world.act_on_engine(Action::Listen { mode: ListenMode::Refuse });
    let answer = clients.place(hold(Scope::Target("local/shop/web".into()))).await;
    assert!(answer.note.starts_with("the engine of host local does not answer"), "{answer:#?}");
    assert_eq!(answer.hold.unwrap().scope, hold(Scope::Target("local/shop/web/1".into())).scope);
}

/// The answer to the first was lost; until it is sent again, the container gets another name, or its engine goes
/// away, or comes back.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_is_sent_again_is_the_same_whatever_became_of_its_container() {
    let (world, _node, mut clients) = World::up(shop()).await;
    let ask = |id: &str| PlaceHoldRequest {
        hold_id: id.repeat(16),
        ..hold(Scope::Target("local/shop-web-1".into()))
    };
    let listen = |mode| world.act_on_engine(Action::Listen { mode });
    let first = clients.place(ask("ab")).await.hold.unwrap();
    listen(ListenMode::Refuse);
    let second = clients.place(ask("cd")).await.hold.unwrap();
    let again = async |clients: &mut Clients| {
        for (id, known) in [("ab", &first), ("cd", &second)] {
            let answer = clients.place(ask(id)).await;
            assert!(answer.repeated_answer, "{answer:#?}");
            assert_eq!((&answer.hold.unwrap().scope, answer.note.as_str()), (&known.scope, ""));
        }
    };
    again(&mut clients).await;
    listen(ListenMode::Open);
    again(&mut clients).await;
    world.act("shop-web-1", Action::Rename { name: "old".into() });
    again(&mut clients).await;
    assert_eq!(clients.standing().await.len(), 2);
    let other = PlaceHoldRequest { scope: hold(Scope::Target("local/api".into())).scope, ..ask("ab") };
    let status = clients.holds.place_hold(other).await.unwrap_err();
    assert_eq!(fields(&status), ["hold_id"], "another wish needs another id: {status:?}");
}

/// opf/openproject-docker-compose#64: somebody begins to work on a container that is about to be restarted.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_between_the_interlock_and_the_post_stops_it_and_the_attempt_is_given_back() {
    let world = World::new([ContainerSpec::named("web")]).await;
    let (_node, mut clients, point) = world.start_held_at("coordinator-after-commit").await;
    let run = clients.opened("local/web").await;
    point.reached();
    let placed = clients.place(hold(Scope::Host("local".into()))).await;
    assert_eq!(placed.open_run_ids, [run.run_id.as_str()], "it may be on its way");
    point.release();
    let run = clients.wait_for_status(&run.run_id, RunStatus::NotApplied).await;
    assert!(run.settlement.contains("is held by kim: an upgrade"), "{run:#?}");
    assert!(!run.quarantined);
    assert_eq!(world.changes(), 0, "nothing was sent");
    lift(&mut clients, by_scope(Scope::Host("local".into()))).await.unwrap();
    let run = clients.opened("local/web").await;
    clients.wait_for_status(&run.run_id, RunStatus::Applied).await;
    assert_eq!(world.asked("web", Endpoint::Restart), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_is_one_too_many_is_refused_with_what_to_do() {
    let (_world, _node, mut clients) = World::up([]).await;
    let place = |mut clients: Clients| async move {
        clients.holds.place_hold(hold(Scope::Host("local".into()))).await.map(drop)
    };
    for _ in 0..10 {
        let all = futures::future::join_all((0..100).map(|_| place(clients.clone()))).await;
        assert!(all.iter().all(Result::is_ok), "{all:?}");
    }
    assert_eq!(clients.standing().await.len(), 1_000);
    let status = place(clients.clone()).await.unwrap_err();
    assert_eq!(precondition(&status), "RULE");
    assert!(status.message().contains("1000 holds: lift some"), "{status:?}");
    assert_eq!(clients.standing().await.len(), 1_000);
    let lifted = lift(&mut clients, by_scope(Scope::Host("local".into()))).await.unwrap();
    assert_eq!(lifted.len(), 1_000);
    place(clients.clone()).await.unwrap();
}

/// Somebody renames the container between the decision and the send, and holds it by the name that they see.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_on_the_name_that_a_container_was_given_since_the_decision_stops_its_restart() {
    let world = World::new([ContainerSpec::named("web")]).await;
    let (_node, mut clients, point) = world.start_held_at("coordinator-after-commit").await;
    let run = clients.opened("local/web").await;
    point.reached();
    world.act("web", Action::Rename { name: "old".into() });
    clients.place(hold(Scope::Target("local/old".into()))).await;
    point.release();
    let run =
        clients.wait_for_run(&run.run_id, "the end", |run| run.status() != RunStatus::Interlocked).await;
    assert_eq!(run.status(), RunStatus::NotApplied, "{run:#?}");
    assert!(run.settlement.contains("is held by kim: an upgrade"), "{run:#?}");
    assert_eq!(world.changes(), 0, "nothing was sent");
}

/// The engine does not say which container an id is of while the hold is placed.
#[tokio::test(flavor = "multi_thread")]
async fn a_hold_by_an_id_holds_though_the_engine_was_silent_when_it_was_placed() {
    let (world, _node, mut clients) =
        World::up([ContainerSpec::named("web"), ContainerSpec::named("api")]).await;
    let id = world.id("web");
    for spelling in [&id[..12], id.as_str()] {
        let named = Scope::Target(format!("local/{spelling}"));
        world.act_on_engine(Action::Listen { mode: ListenMode::Refuse });
        clients.place(hold(named.clone())).await;
        world.act_on_engine(Action::Listen { mode: ListenMode::Open });
        let refused = clients.decided(&ask("local/web"), Decision::Refused).await;
        assert_eq!(codes(&refused.reasons), ["held"]);
        assert!(
            clients.explained("local/api").await.checks.iter().all(|check| check.verdict() == Verdict::Pass)
        );
        assert_eq!(lift(&mut clients, by_scope(named)).await.unwrap().len(), 1);
    }
    clients.opened("local/web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_is_lifted_by_the_name_that_its_container_had_when_it_was_placed_and_by_the_containers_id() {
    let (world, _node, mut clients) = World::up(shop()).await;
    let target = |text: &str| Scope::Target(text.to_owned());
    let other = clients.place(hold(target("local/shop/web/2"))).await.hold.unwrap();
    let by_name = clients.place(hold(target("local/shop-web-1"))).await.hold.unwrap();
    world.act("shop-web-1", Action::Rename { name: "old".into() });
    let lifted = lift(&mut clients, by_scope(target("local/shop-web-1"))).await.unwrap();
    assert_eq!(ids(&lifted), [by_name.hold_id], "nothing bears that name now");

    let id = world.id("api")[..12].to_owned();
    let by_id = async |clients: &mut Clients| clients.place(hold(target(&format!("local/{id}")))).await.hold;
    let first = by_id(&mut clients).await.unwrap();
    world.act("api", Action::Rename { name: "api-2".into() });
    let status = lift(&mut clients, by_scope(target("local/old"))).await.unwrap_err();
    assert_eq!(missing(&status).0, "relatch.v1.Hold", "another container's");
    let lifted = lift(&mut clients, by_scope(target("local/api-2"))).await.unwrap();
    assert_eq!(ids(&lifted), [first.hold_id], "it is the container that was held by its id");
    let second = by_id(&mut clients).await.unwrap();
    world.act("api-2", Action::Rename { name: "api-3".into() });
    let lifted = lift(&mut clients, by_scope(target(&format!("local/{id}")))).await.unwrap();
    assert_eq!(ids(&lifted), [second.hold_id]);
    assert_eq!(clients.standing().await, [other]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_is_renewed_goes_on_and_one_that_has_ended_is_not_there_to_be() {
    let (_world, _node, mut clients) = World::up([ContainerSpec::named("api")]).await;
    let renew = async |clients: &mut Clients, id: &str| {
        let request = RenewHoldRequest { hold_id: id.to_owned() };
        clients.holds.renew_hold(request).await.map(|answer| answer.into_inner().hold.expect("a hold"))
    };
    let time = |seconds| Some(Duration { seconds, nanos: 0 });
    let placed = clients
        .place(PlaceHoldRequest { duration: time(600), ..hold(Scope::Everything(true)) })
        .await
        .hold
        .unwrap();
    // Its time passes.
    wait("some of its time to pass", async || match clients.standing().await[0].ends_in {
        Some(left) if left.seconds < 599 => Ok(()),
        left => Err(format!("{left:?}")),
    })
    .await;
    let renewed = renew(&mut clients, &placed.hold_id).await.unwrap();
    assert!(renewed.ends_in.unwrap().seconds >= 599, "{renewed:#?}");
    assert_eq!(Hold { ends_in: placed.ends_in, ..renewed }, placed, "the same hold");

    let short = PlaceHoldRequest {
        duration: Some(Duration { seconds: 0, nanos: 100_000_000 }),
        ..hold(Scope::Target("local/api".into()))
    };
    let short = clients.place(short).await.hold.unwrap();
    wait("the hold to end", async || match clients.standing().await.len() {
        1 => Ok(()),
        more => Err(format!("{more} stand")),
    })
    .await;
    let status = renew(&mut clients, &short.hold_id).await.unwrap_err();
    assert_eq!(missing(&status), ("relatch.v1.Hold".to_owned(), format!("hold {}", short.hold_id)));
    let status = renew(&mut clients, "short").await.unwrap_err();
    assert_eq!(fields(&status), ["hold_id"]);
}
