//! What admission opens, attaches and refuses.

use super::*;

#[test]
fn the_fence_is_the_entrys_own_term_and_index() {
    let mut world = World::new();
    world.term = Term(7);
    let ask = world.ask();
    let run = world.open(ask);
    let fence = &world.run(&run).interlock.as_ref().unwrap().fence;
    assert_eq!((fence.term, fence.index), (Term(7), LogIndex(world.index)));
}

#[test]
fn an_interlock_proposed_in_one_term_is_not_opened_in_another() {
    let mut world = World::new();
    let ask = world.ask();
    world.term = Term(2);
    let outcome = world.apply(Command::OpenInterlock(Box::new(ask.0)));
    assert_eq!(outcome, Outcome::StaleTerm { proposed: Term(1), committed: Term(2) });
    assert_eq!(world.ledger.runs_newest_first().count(), 0);
}

#[test]
fn a_second_request_for_an_open_target_attaches() {
    let mut world = World::roomy();
    let ask = world.ask();
    let first = world.open(ask);
    let ask = world.ask();
    let decision = world.decide(ask);
    assert_eq!((decision.kind, decision.run), (DecisionKind::Attached, first));
}

#[test]
fn a_client_that_asks_again_and_again_makes_no_endless_history() {
    let mut world = World::roomy();
    let ask = world.ask();
    let run = world.open(ask);
    for _ in 0..50 {
        let ask = world.ask();
        assert_eq!(world.decide(ask).kind, DecisionKind::Attached);
    }
    assert_eq!(world.run(&run).times(EventKind::Attached), 50);
    assert_eq!(world.run(&run).events.len(), 2, "{:?}", world.run(&run).events);
    assert_eq!(world.run(&run).changed(), LogIndex(world.index), "each of them is a change");
}

#[test]
fn two_spellings_of_one_container_share_one_interlock() {
    let mut world = World::roomy();
    let ask = world.ask();
    let first = world.open(ask);
    // Renamed meanwhile: another target, the same container.
    let ask = world.ask().target("local/renamed");
    let decision = world.decide(ask);
    assert_eq!((decision.kind, decision.run), (DecisionKind::Attached, first));
    assert_eq!(world.ledger.open_runs().count(), 1);
}

#[test]
fn another_container_under_the_name_of_an_open_one_attaches_and_is_not_restarted() {
    let mut world = World::roomy();
    let ask = world.ask();
    let first = world.open(ask);
    let ask = world.ask().container("2");
    let decision = world.decide(ask);
    assert_eq!((decision.kind, decision.run), (DecisionKind::Attached, first));
}

#[test]
fn an_attach_that_expects_another_incarnation_is_refused() {
    let mut world = World::roomy();
    let ask = world.ask();
    world.open(ask);
    let mut ask = world.ask();
    ask.0.expect = Some(Expectation { container_id: container("1"), started_at: at(99) });
    assert!(world.refused(ask).contains(&ReasonCode::ExpectationMismatch));
}

#[test]
fn only_a_running_container_is_restarted() {
    for (state, code) in [
        (ContainerState::Paused, ReasonCode::TargetPaused),
        (ContainerState::Restarting, ReasonCode::TargetRestarting),
        (ContainerState::Removing, ReasonCode::TargetRemoving),
        (ContainerState::Exited, ReasonCode::TargetNotRunning),
        (ContainerState::Created, ReasonCode::TargetNotRunning),
        (ContainerState::Dead, ReasonCode::TargetNotRunning),
        (ContainerState::Unknown, ReasonCode::TargetNotRunning),
    ] {
        let mut world = World::new();
        let ask = world.ask().state(state);
        assert_eq!(world.refused(ask), [code], "{state:?}");
    }
}

#[test]
fn a_grace_above_the_limit_is_refused_by_name_and_not_clamped() {
    let mut world = World::new();
    let mut ask = world.ask();
    ask.0.grace.seconds = 301;
    assert_eq!(world.refused(ask), [ReasonCode::GraceAboveLimit]);
}

#[test]
fn the_client_deadline_is_the_grace_and_the_margin() {
    let mut world = World::new();
    let ask = world.ask();
    let run = world.open(ask);
    let interlock = world.run(&run).interlock.clone().unwrap();
    assert_eq!(interlock.client_deadline_ms, 10_000 + 20_000);
    assert_eq!(interlock.deadline, ClusterTime(5_000 + 3_000 + 30_000));
}

#[test]
fn every_reason_is_given_and_not_only_the_first() {
    let mut world = World::new();
    let mut ask = world.ask().state(ContainerState::Paused).target("elsewhere/web");
    ask.0.grace.seconds = 1000;
    assert_eq!(
        world.refused(ask),
        [ReasonCode::HostUnknown, ReasonCode::TargetPaused, ReasonCode::GraceAboveLimit]
    );
}

#[test]
fn an_attempt_is_charged_when_the_interlock_commits_and_pauses_the_next() {
    let mut world = World::new();
    let ask = world.ask();
    let run = world.open(ask);
    world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
    world.observe(&run, seen(StartedAt::At(at(200))));
    assert_eq!(world.word(&run), "APPLIED");
    let ask = world.ask();
    assert_eq!(world.refused(ask), [ReasonCode::BackingOff]);
    world.clock_ms = 300_000;
    let ask = world.ask();
    world.open(ask);
}

#[test]
fn renaming_or_recreating_a_container_clears_no_charge() {
    let mut world = World::new();
    let ask = world.ask();
    let run = world.open(ask);
    world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
    world.observe(&run, seen(StartedAt::At(at(200))));
    let renamed = world.ask().target("local/other");
    assert_eq!(world.refused(renamed), [ReasonCode::BackingOff], "the container id is charged");
    let recreated = world.ask().container("2");
    assert_eq!(world.refused(recreated), [ReasonCode::BackingOff], "the name is charged");
}

#[test]
fn a_clock_that_steps_back_opens_no_window() {
    let mut world = World::new();
    world.clock_ms = 1_000_000;
    let ask = world.ask();
    let run = world.open(ask);
    world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
    world.observe(&run, seen(StartedAt::At(at(200))));
    world.clock_ms = 0;
    let ask = world.ask();
    assert_eq!(world.refused(ask), [ReasonCode::BackingOff]);
    assert_eq!(world.ledger.clock(), ClusterTime(1_000_000));
}

#[test]
fn in_flight_limits_are_refused_by_name_and_free_themselves_at_the_deadline() {
    let mut world = World::new();
    for digit in ["1", "2"] {
        let ask = world.ask().container(digit).target(&format!("local/c{digit}"));
        world.open(ask);
    }
    let ask = world.ask().container("3").target("local/c3");
    assert_eq!(world.refused(ask), [ReasonCode::InFlightHost]);
    // Past their deadline they count as unresolved only.
    world.clock_ms = 60_000;
    let ask = world.ask().container("3").target("local/c3");
    world.open(ask);
}

#[test]
fn a_known_request_is_answered_as_before_whatever_the_rules_say_now() {
    let mut world = World::roomy();
    let ask = world.ask().id("q1");
    let first = world.decide(ask);
    world.term = Term(9);
    let mut late = world.ask().id("q1");
    late.0.term = Term(3);
    let again = world.decide(late);
    assert_eq!((again.kind, &again.run, again.repeated), (DecisionKind::Opened, &first.run, true));
    assert_eq!(world.ledger.runs_newest_first().count(), 1);
}

#[test]
fn a_refused_request_that_arrives_late_is_refused_as_before() {
    let mut world = World::new();
    let ask = world.ask().id("q1").state(ContainerState::Paused);
    let first = world.decide(ask);
    assert_eq!(first.kind, DecisionKind::Refused);
    // By now it would be opened.
    let ask = world.ask().id("q1");
    let again = world.decide(ask);
    assert_eq!((again.kind, again.run), (DecisionKind::Refused, first.run));
    assert_eq!(world.ledger.open_runs().count(), 0);
}

#[test]
fn an_attached_request_is_answered_as_before_though_its_run_is_settled() {
    let mut world = World::roomy();
    let ask = world.ask();
    let run = world.open(ask);
    let ask = world.ask().id("q2");
    assert_eq!(world.decide(ask).kind, DecisionKind::Attached);
    world.exchanged(&run, never_written(NotWrittenCause::Unreachable));
    assert_eq!(world.word(&run), "NOT_APPLIED");
    let ask = world.ask().id("q2");
    let again = world.decide(ask);
    assert_eq!((again.kind, again.run), (DecisionKind::Attached, run));
}

#[test]
fn one_request_id_for_two_requests_is_refused_as_an_error() {
    let mut world = World::roomy();
    let ask = world.ask().id("q1");
    let first = world.decide(ask);
    let ask = world.ask().id("q1").digest("ff");
    let outcome = world.apply(Command::OpenInterlock(Box::new(ask.0)));
    assert_eq!(outcome, Outcome::Rejected(Rejection::RequestIdReused { run: first.run }));
}

#[test]
fn a_run_id_is_used_once() {
    let mut world = World::roomy();
    let ask = world.ask();
    let run = world.open(ask);
    let mut ask = world.ask().container("2").target("local/other");
    ask.0.run = run.clone();
    let outcome = world.apply(Command::OpenInterlock(Box::new(ask.0)));
    assert_eq!(outcome, Outcome::Rejected(Rejection::DuplicateRun { run }));
}

#[test]
fn a_host_cannot_change_its_engine_while_a_run_is_open_there() {
    let mut world = World::roomy();
    let ask = world.ask();
    world.open(ask);
    let outcome = world.apply(Command::BindHost(BindHost {
        host: HostName::new("local").unwrap(),
        engine_id: engine("E2"),
        dispatcher: DispatcherRef { guard: Guard::Agent, journal: position("a", 5) },
    }));
    assert!(matches!(outcome, Outcome::Rejected(Rejection::Invalid { .. })), "{outcome:?}");
}

#[test]
fn entries_of_newer_rules_stop_apply_and_change_nothing() {
    let mut world = World::new();
    let before: Vec<Record> = world.ledger.records().collect();
    let stamped = Stamped {
        level: RULES_LEVEL + 1,
        clock: ClusterTime(99),
        wall: WallTime(0),
        node: NodeId(1),
        command: Command::Tick,
    };
    let entry = EntryPosition { term: Term(1), index: LogIndex(99) };
    assert!(matches!(world.ledger.apply(entry, stamped), Err(ApplyError::NewerRules { .. })));
    assert_eq!(world.ledger.records().collect::<Vec<_>>(), before);
}
