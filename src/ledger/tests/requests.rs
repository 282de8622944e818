//! The memory of requests, and each caller's share of it.

use super::*;

const DAY_MS: u64 = 86_400_000;

fn shares(refusals: u32, attaches: u32) -> World {
    World::with(Limits {
        refusals_per_caller: refusals,
        attaches_per_caller: attaches,
        ended_runs_ms: 1,
        ..roomy_limits()
    })
}

fn exhausted(outcome: Outcome) -> Exhausted {
    match outcome {
        Outcome::Exhausted(full) => full,
        other => panic!("not exhausted: {other:?}"),
    }
}

fn ask(world: &mut World, ask: Ask) -> Outcome {
    world.apply(Command::OpenInterlock(Box::new(ask.0)))
}

fn paused(world: &mut World, caller: &str) -> Ask {
    world.ask().state(ContainerState::Paused).caller(caller)
}

#[test]
fn an_answer_is_remembered_for_a_day_of_cluster_clock_and_then_forgotten_with_its_run() {
    let mut world = shares(10, 10);
    world.clock_ms = 1_000;
    let request = world.ask().id("q1").state(ContainerState::Paused);
    let first = world.decide(request);
    world.clock_ms = 1_000 + DAY_MS - 1;
    world.prune();
    let request = world.ask().id("q1");
    let again = world.decide(request);
    assert_eq!((again.kind, &again.run, again.repeated), (DecisionKind::Refused, &first.run, true));
    world.clock_ms = 1_000 + DAY_MS;
    world.prune();
    assert!(world.ledger.run(&first.run).is_none());
    assert!(world.ledger.remembered(&RequestId::new("q1").unwrap()).is_none());
    let request = world.ask().id("q1");
    assert_eq!(world.decide(request).kind, DecisionKind::Opened, "it is a new request by now");
}

#[test]
fn an_answer_is_remembered_for_as_long_as_its_run_is_kept() {
    let mut world = World::with(Limits { ended_runs_ms: 10 * DAY_MS, ..roomy_limits() });
    let request = world.ask().id("q1").state(ContainerState::Paused);
    let first = world.decide(request);
    world.clock_ms = 10 * DAY_MS - 1;
    world.prune();
    let request = world.ask().id("q1");
    assert_eq!(world.decide(request).run, first.run);
    // An open run is kept whatever its age.
    let request = world.ask().id("q2");
    let open = world.open(request);
    world.clock_ms = 100 * DAY_MS;
    world.prune();
    let request = world.ask().id("q2");
    assert_eq!(world.decide(request).run, open);
}

#[test]
fn a_request_that_attached_late_to_an_old_run_has_its_answer_for_a_whole_day() {
    let mut world = shares(10, 10);
    let request = world.ask();
    let run = world.open(request);
    world.exchanged(&run, lost(false));
    world.clock_ms = 3 * DAY_MS;
    let request = world.ask().id("late");
    assert_eq!(world.decide(request).kind, DecisionKind::Attached);
    world.observe(&run, Observation::Gone { engine_id: engine("E1"), successor: None });
    world.clock_ms = 4 * DAY_MS - 1;
    world.prune();
    let request = world.ask().id("late");
    let again = world.decide(request);
    assert_eq!((again.kind, again.repeated), (DecisionKind::Attached, true));
    assert!(world.ledger.run(&again.run).is_some(), "an answer is shown with its run");
    world.clock_ms = 4 * DAY_MS;
    world.prune();
    assert!(world.ledger.run(&run).is_none());
    assert!(world.ledger.remembered(&RequestId::new("late").unwrap()).is_none());
}

#[test]
fn a_full_share_of_refusals_answers_its_caller_alone_with_what_it_would_be_refused_for() {
    let mut world = shares(2, 10);
    for clock_ms in [0, 100] {
        world.clock_ms = clock_ms;
        let request = paused(&mut world, "ann");
        assert_eq!(world.refused(request), [ReasonCode::TargetPaused]);
    }
    world.clock_ms = 200;
    let before: Vec<Record> = world.ledger.records().collect();
    let request = paused(&mut world, "ann").id("q1");
    let full = exhausted(ask(&mut world, request));
    assert_eq!((full.share, full.most, full.frees), (Share::Refusals, 2, ClusterTime(DAY_MS)));
    let codes: Vec<ReasonCode> = full.reasons.iter().map(|reason| reason.code).collect();
    assert_eq!(codes, [ReasonCode::TargetPaused]);
    let after: Vec<Record> = world.ledger.records().collect();
    assert_eq!(after[1..], before[1..], "nothing is stored but the clock");
    // A refusal from before the proposal counts in the same share.
    let request = paused(&mut world, "ann").0;
    let refusal = RefuseRequest {
        run: request.run,
        request: request.request,
        target: request.target,
        reasons: vec![Reason::new(ReasonCode::TargetNotFound, "test", WallTime(1))],
        diagnosis: Diagnosis::Callers,
    };
    let full = exhausted(world.apply(Command::RefuseRequest(Box::new(refusal))));
    assert_eq!(full.reasons[0].code, ReasonCode::TargetNotFound);
    let request = paused(&mut world, "bob");
    assert_eq!(world.refused(request), [ReasonCode::TargetPaused], "another caller has a share of its own");
    // Its first refusal leaves the share a day after it was given, whether or not it is pruned by then.
    world.clock_ms = DAY_MS;
    let request = paused(&mut world, "ann");
    assert_eq!(world.refused(request), [ReasonCode::TargetPaused]);
    let request = paused(&mut world, "ann");
    assert_eq!(exhausted(ask(&mut world, request)).frees, ClusterTime(DAY_MS + 100));
}

#[test]
fn a_full_share_of_attaches_answers_its_caller_alone() {
    let mut world = shares(10, 1);
    let request = world.ask();
    let run = world.open(request);
    let request = world.ask().id("q1").caller("ann");
    assert_eq!(world.decide(request).kind, DecisionKind::Attached);
    let before = world.run(&run).clone();
    let request = world.ask().id("q2").caller("ann");
    let full = exhausted(ask(&mut world, request));
    assert_eq!((full.share, full.most, full.frees), (Share::Attaches, 1, ClusterTime(DAY_MS)));
    assert_eq!(*world.run(&run), before);
    for (id, caller) in [(Some("q3"), "bob"), (Some("q1"), "ann"), (None, "ann")] {
        let request = world.ask().caller(caller);
        let request = if let Some(id) = id { request.id(id) } else { request };
        assert_eq!(world.decide(request).kind, DecisionKind::Attached, "{id:?} of {caller}");
    }
}

#[test]
fn an_opened_request_is_never_kept_out_by_a_full_share() {
    let mut world = shares(1, 1);
    let request = paused(&mut world, "ann");
    world.refused(request);
    let request = world.ask().id("q1").caller("ann");
    world.open(request);
    let request = world.ask().id("q2").caller("ann");
    assert_eq!(world.decide(request).kind, DecisionKind::Attached);
    for n in 2..8 {
        let request = world.ask().id(&format!("r{n}")).caller("ann");
        let request = request.container(&n.to_string()).target(&format!("local/c{n}"));
        world.open(request);
    }
}

/// DESIGN §9, 21 and 9.
#[test]
fn a_late_duplicate_is_answered_as_before_though_the_share_is_full_by_now() {
    let mut world = shares(1, 1);
    let request = paused(&mut world, "ann").id("q1");
    let refused = world.decide(request);
    let request = world.ask().caller("ann");
    let run = world.open(request);
    let request = world.ask().id("q2").caller("ann");
    let attached = world.decide(request);
    world.exchanged(&run, never_written(NotWrittenCause::TicketExpired));
    assert_eq!(world.word(&run), "NOT_APPLIED");
    world.term = Term(5);
    for (id, first) in [("q1", refused), ("q2", attached)] {
        // By now it would be opened; and it says "term 1", which is over.
        let mut late = world.ask().id(id).caller("ann");
        late.0.term = Term(1);
        let again = world.decide(late);
        assert_eq!(again, Decision { repeated: true, ..first }, "{id}");
    }
    assert_eq!(world.ledger.open_runs().count(), 0);
}

#[test]
fn one_id_with_other_content_is_an_error_however_the_first_was_decided() {
    let mut world = shares(10, 10);
    let request = world.ask().id("opened");
    let opened = world.open(request);
    let request = world.ask().id("attached");
    world.decide(request);
    let request = paused(&mut world, "ann").id("refused").container("2").target("local/other");
    let refused = world.decide(request).run;
    for (id, run) in [("opened", &opened), ("attached", &opened), ("refused", &refused)] {
        let reused = Outcome::Rejected(Rejection::RequestIdReused { run: run.clone() });
        let request = world.ask().id(id).digest("ff");
        assert_eq!(ask(&mut world, request), reused, "{id}");
        let request = world.ask().id(id).digest("ff").0;
        let refusal = RefuseRequest {
            run: request.run,
            request: request.request,
            target: request.target,
            reasons: vec![Reason::new(ReasonCode::TargetNotFound, "test", WallTime(1))],
            diagnosis: Diagnosis::Callers,
        };
        assert_eq!(world.apply(Command::RefuseRequest(Box::new(refusal))), reused, "{id}");
    }
}

#[test]
fn a_share_that_is_made_smaller_counts_what_is_remembered_already() {
    let mut world = shares(10, 10);
    for _ in 0..3 {
        let request = paused(&mut world, "ann");
        world.refused(request);
    }
    world.change_limits(LimitsChange { refusals_per_caller: Some(2), ..LimitsChange::default() });
    let request = paused(&mut world, "ann");
    exhausted(ask(&mut world, request));
    world.change_limits(LimitsChange { refusals_per_caller: Some(4), ..LimitsChange::default() });
    let request = paused(&mut world, "ann");
    world.refused(request);
}

#[test]
fn an_attach_that_asks_under_another_condition_says_that_this_is_left_aside() {
    for (first, second, left_aside) in [
        (Diagnosis::Callers, Diagnosis::Callers, None),
        (Diagnosis::Callers, Diagnosis::Unhealthy, Some("is for any health")),
        (Diagnosis::Unhealthy, Diagnosis::Callers, Some("is for an unhealthy container alone")),
    ] {
        let mut world = World::roomy();
        let mut ask = world.ask();
        ask.0.diagnosis = first;
        ask.0.baseline.health = Health::Unhealthy;
        world.open(ask);
        let mut ask = world.ask();
        ask.0.diagnosis = second;
        let decision = world.decide(ask);
        assert_eq!(decision.kind, DecisionKind::Attached);
        let said: Vec<bool> =
            left_aside.iter().map(|text| decision.ignored.iter().any(|line| line.contains(text))).collect();
        assert_eq!(
            (said, decision.ignored.len()),
            (vec![true; left_aside.iter().len()], left_aside.iter().len())
        );
    }
}
