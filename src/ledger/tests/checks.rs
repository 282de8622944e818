//! The list of checks, as admission makes it and as a person is shown it who only asks.

use super::operators::{hold, of_target};
use super::*;

fn weigh(world: &World, ask: &Ask) -> Weighed {
    let clock = ClusterTime(world.clock_ms).max(world.ledger.clock());
    world.ledger.weigh(clock, WallTime(7), NodeId(1), &ask.0)
}

fn check(weighed: &Weighed, name: CheckName) -> &Check {
    weighed.checks.iter().find(|check| check.name == name).unwrap()
}

fn codes(weighed: &Weighed) -> Vec<(CheckName, ReasonCode)> {
    let blocking =
        |check: &Check| check.reasons.iter().map(|reason| (check.name, reason.code)).collect::<Vec<_>>();
    weighed.checks.iter().flat_map(blocking).collect()
}

#[test]
fn every_check_is_made_once_and_in_order_whatever_blocks() {
    let mut world = World::roomy();
    let fine = world.ask();
    let mut blocked = world.ask().state(ContainerState::Paused).target("elsewhere/web");
    blocked.0.grace.seconds = 9_999;
    for (ask, kind) in [(fine, DecisionKind::Opened), (blocked, DecisionKind::Refused)] {
        let weighed = weigh(&world, &ask);
        let names: Vec<CheckName> = weighed.checks.iter().map(|check| check.name).collect();
        assert_eq!(names, CheckName::ALL);
        assert!(weighed.checks.iter().all(|check| !check.detail.is_empty()), "{:?}", weighed.checks);
        assert_eq!(weighed.kind, kind);
    }
}

#[test]
fn each_check_blocks_under_its_own_name() {
    let mut world = World::with(Limits {
        attempts: 1,
        in_flight_cluster: 1,
        in_flight_host: 1,
        unresolved_host: 1,
        ..Limits::default()
    });
    // One unresolved past its deadline, one in flight, and an attempt of `local/web`.
    let ask = world.ask().container("2").target("local/old");
    let old = world.open(ask);
    world.exchanged(&old, lost(false));
    world.clock_ms = 600_000;
    world.change_limits(LimitsChange { unresolved_host: Some(2), ..LimitsChange::default() });
    let ask = world.ask();
    let run = world.open(ask);
    world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
    world.observe(&run, seen(StartedAt::At(at(200))));
    let ask = world.ask().container("3").target("local/new");
    world.open(ask);
    world.change_limits(LimitsChange { unresolved_host: Some(1), ..LimitsChange::default() });
    world.place(hold(1, of_target("local/web")));
    let mut ask = world.ask().state(ContainerState::Paused);
    ask.0.grace.seconds = 301;
    ask.0.diagnosis = Diagnosis::Unhealthy;
    ask.0.dispatcher.journal = position("b", 5);
    ask.0.expect = Some(Expectation { container_id: container("1"), started_at: at(99) });
    assert_eq!(
        codes(&weigh(&world, &ask)),
        [
            (CheckName::Host, ReasonCode::HostDiffers),
            (CheckName::State, ReasonCode::TargetPaused),
            (CheckName::Health, ReasonCode::TargetNotUnhealthy),
            (CheckName::Expectation, ReasonCode::ExpectationMismatch),
            (CheckName::Grace, ReasonCode::GraceAboveLimit),
            (CheckName::Hold, ReasonCode::Held),
            (CheckName::Attempts, ReasonCode::AttemptsExhausted),
            (CheckName::Backoff, ReasonCode::BackingOff),
            (CheckName::InFlightCluster, ReasonCode::InFlightCluster),
            (CheckName::InFlightHost, ReasonCode::InFlightHost),
            (CheckName::UnresolvedHost, ReasonCode::UnresolvedHost),
        ]
    );
    let expected: Vec<ReasonCode> = codes(&weigh(&world, &ask)).into_iter().map(|(_, code)| code).collect();
    assert_eq!(world.refused(ask), expected, "and apply says the same");
}

#[test]
fn a_request_for_the_unhealthy_alone_is_opened_for_nothing_else() {
    for health in [Health::None, Health::Starting, Health::Healthy, Health::Unhealthy] {
        for diagnosis in [Diagnosis::Callers, Diagnosis::Unhealthy] {
            let mut world = World::roomy();
            let mut ask = world.ask();
            ask.0.diagnosis = diagnosis;
            ask.0.baseline.health = health;
            let decision = world.decide(ask);
            let opens = diagnosis == Diagnosis::Callers || health == Health::Unhealthy;
            if opens {
                let interlock = world.run(&decision.run).interlock.as_ref().unwrap();
                assert_eq!(
                    (decision.kind, interlock.diagnosis),
                    (DecisionKind::Opened, diagnosis),
                    "{health:?}"
                );
            } else {
                assert_eq!(world.reasons(&decision.run), [ReasonCode::TargetNotUnhealthy], "{health:?}");
            }
        }
    }
}

#[test]
fn an_open_run_stands_and_a_request_attaches_to_it_whatever_else_blocks() {
    let mut world = World::new();
    let ask = world.ask();
    let run = world.open(ask);
    world.place(hold(1, HoldScope::Everything));
    let mut ask = world.ask();
    ask.0.grace.seconds = 20;
    let weighed = weigh(&world, &ask);
    assert_eq!(
        (weighed.kind, &weighed.run.id, &weighed.standing),
        (DecisionKind::Attached, &run, &Some(run.clone()))
    );
    let standing = check(&weighed, CheckName::Standing);
    assert_eq!(standing.reasons, []);
    assert!(standing.detail.contains(run.as_str()), "{}", standing.detail);
    assert!(weighed.ignored[0].contains("grace 20 s"), "{:?}", weighed.ignored);
    assert_eq!(
        check(&weighed, CheckName::Hold).reasons[0].code,
        ReasonCode::Held,
        "it is shown all the same"
    );
    let decision = world.decide(ask);
    assert_eq!((decision.kind, decision.run, decision.ignored), (weighed.kind, run, weighed.ignored));
}

#[test]
fn an_open_run_of_another_incarnation_than_is_meant_blocks_since_it_was_opened() {
    let mut world = World::roomy();
    let ask = world.ask();
    let run = world.open(ask);
    let opened = world.run(&run).opened.wall;
    let mut ask = world.ask();
    ask.0.expect = Some(Expectation { container_id: container("1"), started_at: at(99) });
    let weighed = weigh(&world, &ask);
    assert_eq!((weighed.kind, weighed.standing.as_ref()), (DecisionKind::Refused, Some(&run)));
    let standing = &check(&weighed, CheckName::Standing).reasons[0];
    assert_eq!((standing.code, standing.since), (ReasonCode::ExpectationMismatch, opened));
}

#[test]
fn a_quarantined_run_stands_and_blocks_since_it_began_and_until_its_bound() {
    let mut world = World::roomy();
    let ask = world.ask();
    let run = world.open(ask);
    world.exchanged(&run, lost(false));
    world.observe(&run, seen(StartedAt::At(at(200))));
    let (began, until) = (world.wall(), world.run(&run).quarantine.unwrap().until);
    world.apply(Command::Tick);
    // By its target, and by its container under another name.
    for ask in [world.ask().container("2"), world.ask().target("local/renamed")] {
        let weighed = weigh(&world, &ask);
        assert_eq!((weighed.kind, weighed.standing.as_ref()), (DecisionKind::Refused, Some(&run)));
        let standing = &check(&weighed, CheckName::Standing).reasons[0];
        assert_eq!(
            (standing.code, standing.since, standing.until),
            (ReasonCode::Quarantined, began, Some(until))
        );
    }
    assert_eq!(world.ledger.standing_for_target(&Target::parse("local/web").unwrap()), Some(world.run(&run)));
    world.clock_ms = until.0;
    let ask = world.ask();
    let weighed = weigh(&world, &ask);
    assert_eq!((weighed.kind, weighed.standing), (DecisionKind::Opened, None));
}

#[test]
fn what_is_weighed_is_weighed_at_the_time_that_is_named() {
    let mut world = World::with(Limits { in_flight_host: 1, ..Limits::default() });
    let ask = world.ask();
    let run = world.open(ask);
    world.place(PlaceHold { duration_ms: Some(100), ..hold(1, HoldScope::Everything) });
    let ask = world.ask().container("2").target("local/other");
    let at = |clock_ms| {
        let weighed = world.ledger.weigh(ClusterTime(clock_ms), WallTime(7), NodeId(1), &ask.0);
        codes(&weighed).into_iter().map(|(_, code)| code).collect::<Vec<_>>()
    };
    let deadline = world.run(&run).interlock.as_ref().unwrap().deadline;
    assert_eq!(at(99), [ReasonCode::Held, ReasonCode::InFlightHost]);
    assert_eq!(at(deadline.0 - 1), [ReasonCode::InFlightHost]);
    assert_eq!(at(deadline.0), []);
}

#[test]
fn a_dry_run_shows_the_run_that_would_be() {
    let mut world = World::roomy();
    world.clock_ms = 1_000;
    let ask = world.ask();
    let weighed = weigh(&world, &ask);
    let id = world.open(ask);
    let real = world.run(&id);
    let (shown, real) = (weighed.run.interlock.unwrap(), real.interlock.clone().unwrap());
    assert_eq!((shown.deadline, shown.client_deadline_ms), (real.deadline, real.client_deadline_ms));
    assert_eq!(weighed.run.status.word(), "INTERLOCKED");
}

#[test]
fn a_refusal_from_before_the_proposal_is_shown_with_its_reasons() {
    let mut world = World::roomy();
    let ask = world.ask().0;
    let refusal = RefuseRequest {
        run: ask.run,
        request: ask.request,
        target: ask.target,
        reasons: vec![Reason::new(ReasonCode::TargetNotFound, "test", WallTime(1))],
        diagnosis: Diagnosis::Callers,
    };
    let weighed = world.ledger.weigh_refusal(ClusterTime(1), WallTime(2), NodeId(1), &refusal);
    assert_eq!((weighed.kind, weighed.run.reasons()), (DecisionKind::Refused, refusal.reasons.as_slice()));
    assert_eq!(world.ledger.runs_newest_first().count(), 0);
}

#[test]
fn a_refusal_without_a_reason_is_no_refusal() {
    let mut world = World::roomy();
    let ask = world.ask().0;
    let (run, request, target) = (ask.run, ask.request, ask.target);
    let refusal = RefuseRequest { run, request, target, reasons: Vec::new(), diagnosis: Diagnosis::Callers };
    let outcome = world.apply(Command::RefuseRequest(Box::new(refusal)));
    assert!(matches!(outcome, Outcome::Rejected(Rejection::Invalid { .. })), "{outcome:?}");
    assert_eq!(world.ledger.runs_newest_first().count(), 0);
}
