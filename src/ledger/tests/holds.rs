//! What holds stop, how they end, and what they leave alone.

use super::operators::{hold, hold_id, of_target};
use super::*;

fn host(name: &str) -> HostName {
    HostName::new(name).unwrap()
}

fn project(on: &str, project: &str) -> HoldScope {
    HoldScope::Project { host: host(on), project: project.to_owned() }
}

fn placed(outcome: Outcome) -> (Hold, bool) {
    match outcome {
        Outcome::Held { hold, repeated } => (*hold, repeated),
        other => panic!("not placed: {other:?}"),
    }
}

#[test]
fn every_scope_holds_what_it_covers_and_nothing_else() {
    let plain = ("local/web", "web");
    let compose = ("local/shop/web/1", "shop-web-1");
    for (scope, (target, name), held) in [
        (HoldScope::Everything, plain, true),
        (HoldScope::Everything, compose, true),
        (HoldScope::Host(host("local")), plain, true),
        (HoldScope::Host(host("edge")), plain, false),
        (project("local", "shop"), compose, true),
        (project("local", "sho"), compose, false),
        (project("edge", "shop"), compose, false),
        (project("local", "web"), plain, false),
        (of_target("local/web"), plain, true),
        (of_target("edge/web"), plain, false),
        (of_target("local/we"), plain, false),
        (of_target("local/shop/web/1"), compose, true),
        (of_target("local/shop/web/2"), compose, false),
        (of_target("local/shop-web-1"), compose, true),
        (of_target("edge/shop-web-1"), compose, false),
    ] {
        let mut world = World::roomy();
        let shown = scope.to_string();
        placed(world.place(hold(1, scope)));
        let mut ask = world.ask().target(target);
        ask.0.baseline.name = name.to_owned();
        let decision = world.decide(ask);
        let expected: &[ReasonCode] = if held { &[ReasonCode::Held] } else { &[] };
        let reasons = world.reasons(&decision.run);
        let reasons = if decision.kind == DecisionKind::Opened { Vec::new() } else { reasons };
        assert_eq!(reasons, expected, "a hold on {shown} against {target}, which is named {name}");
    }
}

#[test]
fn a_hold_by_an_id_or_the_beginning_that_stands_for_it_holds_its_container() {
    for (host, chars, held) in
        [("local", 64, true), ("local", 12, true), ("local", 11, false), ("edge", 64, false)]
    {
        let mut world = World::roomy();
        let ask = world.ask();
        let id = ask.0.baseline.incarnation.container_id.clone();
        let spelled = format!("{host}/{}", &id.as_str()[..chars]);
        placed(world.place(hold(1, of_target(&spelled))));
        let kind = if held { DecisionKind::Refused } else { DecisionKind::Opened };
        assert_eq!(world.decide(ask).kind, kind, "{spelled}");
    }
}

#[test]
fn a_hold_says_who_and_why_since_when_and_until_when() {
    let mut world = World::roomy();
    world.clock_ms = 500;
    let (first, _) =
        placed(world.place(PlaceHold { duration_ms: Some(1_000), ..hold(1, HoldScope::Everything) }));
    placed(world.place(hold(2, of_target("local/web"))));
    world.clock_ms = 900;
    let ask = world.ask();
    let run = world.decide(ask).run;
    let reasons = world.run(&run).reasons().to_vec();
    let seen: Vec<_> = reasons.iter().map(|reason| (reason.code, reason.until, reason.since)).collect();
    assert_eq!(seen[0], (ReasonCode::Held, Some(ClusterTime(1_500)), first.placed.wall));
    assert_eq!((seen[1].0, seen[1].1, seen.len()), (ReasonCode::Held, None, 2));
    let detail = &reasons[0].detail;
    assert!(
        detail.contains("everything") && detail.contains("ann") && detail.contains("upgrade"),
        "{detail}"
    );
}

#[test]
fn a_hold_ends_at_its_time_on_the_cluster_clock_and_not_before() {
    let mut world = World::roomy();
    world.clock_ms = 500;
    world.place(PlaceHold { duration_ms: Some(1_000), ..hold(1, HoldScope::Everything) });
    assert!(world.ledger.has_timed_work(), "its end must come");
    world.clock_ms = 1_499;
    let ask = world.ask();
    assert_eq!(world.refused(ask), [ReasonCode::Held]);
    world.clock_ms = 1_500;
    let ask = world.ask();
    world.open(ask);
}

#[test]
fn a_hold_that_is_renewed_in_time_stands_as_long_again_and_one_that_has_ended_stays_so() {
    let mut world = World::roomy();
    let renew = |world: &mut World| match world.apply(Command::RenewHold { hold: hold_id(1) }) {
        Outcome::Renewed(hold) => hold.map(|hold| hold.until()),
        other => panic!("{other:?}"),
    };
    assert_eq!(renew(&mut world), None, "there is none");
    world.clock_ms = 500;
    let timed = PlaceHold { duration_ms: Some(1_000), ..hold(1, HoldScope::Everything) };
    world.place(timed.clone());
    world.clock_ms = 1_499;
    assert_eq!(renew(&mut world), Some(Some(ClusterTime(2_499))));
    let (again, repeated) = placed(world.place(timed));
    assert!(repeated && again.until() == Some(ClusterTime(2_499)), "it is the same hold: {again:?}");
    world.clock_ms = 2_498;
    let ask = world.ask();
    assert_eq!(world.refused(ask), [ReasonCode::Held]);
    world.clock_ms = 2_499;
    assert_eq!(renew(&mut world), None, "something may have been restarted meanwhile");
    let ask = world.ask();
    world.open(ask);
}

#[test]
fn a_hold_without_an_end_goes_on_without_one() {
    let mut world = World::roomy();
    let (first, _) = placed(world.place(hold(1, HoldScope::Everything)));
    world.clock_ms = 500;
    assert_eq!(
        world.apply(Command::RenewHold { hold: hold_id(1) }),
        Outcome::Renewed(Some(Box::new(first.clone())))
    );
    assert_eq!(world.ledger.hold(&hold_id(1)), Some(&first));
}

#[test]
fn a_hold_without_an_end_stands_until_it_is_lifted_and_needs_no_clock() {
    let mut world = World::roomy();
    world.place(hold(1, HoldScope::Everything));
    assert!(!world.ledger.has_timed_work());
    world.clock_ms = u64::MAX;
    let ask = world.ask();
    assert_eq!(world.refused(ask), [ReasonCode::Held]);
    assert_eq!(world.lift(LiftHold::Id(hold_id(1))), [hold_id(1)]);
    let ask = world.ask();
    world.open(ask);
}

#[test]
fn a_holds_id_is_one_hold_for_as_long_as_it_is_known() {
    let mut world = World::roomy();
    let timed = PlaceHold { duration_ms: Some(1_000), ..hold(1, HoldScope::Everything) };
    let (first, repeated) = placed(world.place(timed.clone()));
    assert!(!repeated);
    // The same again, later: the same hold, which does not end later for it.
    world.clock_ms = 400;
    assert_eq!(placed(world.place(timed.clone())), (first, true));
    let reused = Outcome::Rejected(Rejection::HoldIdReused { hold: hold_id(1) });
    for other in [
        PlaceHold { scope: HoldScope::Host(host("local")), ..timed.clone() },
        PlaceHold { by: "bob".to_owned(), ..timed.clone() },
        PlaceHold { reason: "another".to_owned(), ..timed.clone() },
        PlaceHold { owner: HoldOwner::Auto, ..timed.clone() },
        PlaceHold { duration_ms: None, ..timed.clone() },
    ] {
        assert_eq!(world.place(other), reused);
    }
    assert_eq!(world.ledger.holds().count(), 1);
    // Once it is over, nobody is told that it stands.
    world.clock_ms = 1_000;
    assert_eq!(world.place(timed.clone()), reused);
    world.prune();
    assert!(!placed(world.place(timed)).1, "its id is free again");
}

#[test]
fn a_hold_that_is_asked_for_again_is_the_same_though_its_container_has_another_name_by_now() {
    let mut world = World::roomy();
    let asked = of_target("local/shop-web-1");
    let wish = |scope| PlaceHold { asked_as: Some(asked.clone()), ..hold(1, of_target(scope)) };
    let (first, _) = placed(world.place(wish("local/shop/web/1")));
    for again in [wish("local/shop/web/1"), wish("local/shop-web-1"), hold(1, asked.clone())] {
        assert_eq!(placed(world.place(again)), (first.clone(), true));
    }
    let reused = Outcome::Rejected(Rejection::HoldIdReused { hold: hold_id(1) });
    assert_eq!(world.place(hold(1, of_target("local/other"))), reused);
    assert_eq!(world.ledger.hold(&hold_id(1)), Some(&first));
}

#[test]
fn a_scope_lifts_the_operators_holds_of_exactly_that_scope() {
    let mut world = World::roomy();
    let local = || HoldScope::Host(host("local"));
    world.place(hold(1, local()));
    world.place(PlaceHold { by: "bob".to_owned(), ..hold(2, local()) });
    world.place(PlaceHold { owner: HoldOwner::Auto, ..hold(3, local()) });
    world.place(hold(4, HoldScope::Everything));
    world.place(hold(5, of_target("local/web")));
    world.place(PlaceHold { duration_ms: Some(10), ..hold(6, local()) });
    world.clock_ms = 10;
    assert_eq!(world.lift(LiftHold::Scope(local())), [hold_id(1), hold_id(2)]);
    assert_eq!(world.lift(LiftHold::Scope(local())), [], "they are gone");
    assert_eq!(world.lift(LiftHold::Id(hold_id(6))), [], "it was over");
    assert_eq!(world.lift(LiftHold::Id(hold_id(3))), [hold_id(3)], "by its id, whoever placed it");
    assert_eq!(world.lift(LiftHold::Id(hold_id(3))), []);
    let left: Vec<HoldId> = world.ledger.holds().map(|hold| hold.id.clone()).collect();
    assert_eq!(left, [hold_id(4), hold_id(5), hold_id(6)]);
}

#[test]
fn a_hold_of_no_time_and_one_too_many_are_refused() {
    let mut world = World::roomy();
    let nothing = PlaceHold { duration_ms: Some(0), ..hold(1, HoldScope::Everything) };
    let outcome = world.place(nothing);
    assert!(matches!(outcome, Outcome::Rejected(Rejection::Invalid { .. })), "{outcome:?}");
    for n in 0..1_000 {
        placed(world.place(hold(n, of_target(&format!("local/c{n}")))));
    }
    let outcome = world.place(hold(1_000, HoldScope::Everything));
    assert!(matches!(outcome, Outcome::Rejected(Rejection::Invalid { .. })), "{outcome:?}");
    assert!(
        placed(world.place(hold(7, of_target("local/c7")))).1,
        "one that stands is answered all the same"
    );
}

#[test]
fn a_hold_ends_no_run_and_keeps_no_request_from_attaching() {
    let mut world = World::roomy();
    let ask = world.ask();
    let run = world.open(ask);
    let before = world.run(&run).clone();
    world.place(hold(1, HoldScope::Everything));
    assert_eq!(*world.run(&run), before);
    let ask = world.ask();
    assert_eq!(world.decide(ask).kind, DecisionKind::Attached);
}

#[test]
fn an_attempt_that_a_hold_stopped_is_given_back_without_a_pause() {
    // By the dispatcher's own gate, and by the proposer, which never handed it on.
    let mut world = World::new();
    let ask = world.ask();
    let run = world.open(ask);
    world.exchanged(&run, never_written(NotWrittenCause::Held));
    assert_eq!(world.word(&run), "NOT_APPLIED");
    let ask = world.ask();
    let run = world.open(ask);
    world.never_handed_on(&run, NotWrittenCause::Held);
    assert_eq!(world.word(&run), "NOT_APPLIED");
    let ask = world.ask();
    world.open(ask);
}
