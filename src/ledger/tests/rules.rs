//! Levels of rules: what comes into force when, and what older entries still mean.

use super::operators::{hold, start_id};
use super::*;

/// Every command that the first rules did not know.
fn newer_commands(world: &mut World, run: &RunId) -> Vec<Command> {
    let mut unhealthy = world.ask().container("2").target("local/other").0;
    unhealthy.diagnosis = Diagnosis::Unhealthy;
    unhealthy.baseline.health = Health::Unhealthy;
    let resolve = Resolve {
        run: run.clone(),
        by: "ann".to_owned(),
        reason: "test".to_owned(),
        assertion: None,
        accept_late_post: true,
    };
    let exchange = RecordExchange {
        run: run.clone(),
        start: Some(start_id(1)),
        journal: position("a", 9),
        exchange: lost(false),
    };
    let at = position("a", 9);
    let attestation = Attestation::Journal { at, word: JournalWord::NoIntent };
    let attest = Attest { run: run.clone(), start: Some(start_id(1)), attestation };
    vec![
        Command::OpenInterlock(Box::new(unhealthy)),
        Command::ChangeLimits(LimitsChange { attempts: Some(7), ..LimitsChange::default() }),
        Command::OpenStart(Box::new(world.approval(run, 1))),
        Command::RecordExchange(Box::new(exchange)),
        Command::Attest(Box::new(attest)),
        Command::Resolve(Box::new(resolve)),
        Command::PlaceHold(Box::new(hold(1, HoldScope::Everything))),
        Command::LiftHold(LiftHold::Scope(HoldScope::Everything)),
        Command::EndQuarantine { run: run.clone() },
        Command::RemoveHost { host: HostName::new("local").unwrap() },
        Command::Prune,
    ]
}

#[test]
fn a_command_of_newer_rules_changes_nothing_but_the_clock_before_they_are_in_force() {
    let mut world = World::under_the_first_rules(roomy_limits());
    let run = world.left_down();
    for command in newer_commands(&mut world, &run) {
        world.clock_ms += 1;
        let what = format!("{command:?}");
        let before: Vec<Record> = world.ledger.records().skip(1).collect();
        let too_old = Rejection::RulesTooOld { needed: 2, in_force: 1 };
        assert_eq!(world.apply(command), Outcome::Rejected(too_old), "{what}");
        assert_eq!(world.ledger.records().skip(1).collect::<Vec<_>>(), before, "{what}");
        assert_eq!(world.ledger.limits(), &roomy_limits(), "{what}");
        assert_eq!(world.ledger.clock(), ClusterTime(world.clock_ms));
    }
    world.apply(Command::RaiseRulesLevel { level: 2 });
    for command in newer_commands(&mut world, &run) {
        let what = format!("{command:?}");
        let outcome = world.apply(command);
        assert!(!matches!(outcome, Outcome::Rejected(Rejection::RulesTooOld { .. })), "{what}: {outcome:?}");
    }
}

#[test]
fn rules_that_are_in_force_stay_in_force() {
    let mut world = World::roomy();
    assert_eq!(world.ledger.rules_level(), RULES_LEVEL);
    for level in 0..=RULES_LEVEL {
        assert_eq!(world.apply(Command::RaiseRulesLevel { level }), Outcome::Done);
        assert_eq!(world.ledger.rules_level(), RULES_LEVEL);
    }
}

#[test]
fn rules_above_this_build_are_never_applied_however_the_entry_is_stamped() {
    let mut world = World::roomy();
    let before: Vec<Record> = world.ledger.records().collect();
    let needed = RULES_LEVEL + 1;
    for (level, command) in [
        (needed, Command::Tick),
        (needed, Command::RaiseRulesLevel { level: needed }),
        (RULES_LEVEL, Command::RaiseRulesLevel { level: needed }),
    ] {
        let stamped = Stamped { level, clock: ClusterTime(99), wall: WallTime(0), node: NodeId(1), command };
        let at = EntryPosition { term: Term(1), index: LogIndex(99) };
        let newer = ApplyError::NewerRules { index: LogIndex(99), needed };
        assert_eq!(world.ledger.apply(at, stamped), Err(newer));
        assert_eq!(world.ledger.records().collect::<Vec<_>>(), before);
    }
}

#[test]
fn a_state_of_rules_above_this_build_is_not_loaded() {
    let world = World::roomy();
    let stored = world.ledger.records().map(|record| match record {
        Record::Meta(meta) => Record::Meta(Meta { rules_level: RULES_LEVEL + 1, ..meta }),
        other => other,
    });
    let stored = stored.map(|record| (record.key().to_string(), record));
    let newer = LoadError::NewerRules { needed: RULES_LEVEL + 1 };
    assert_eq!(Ledger::load(cluster(), holes(), stored).err(), Some(newer));
}

#[test]
fn under_the_first_rules_no_share_is_full() {
    let limits = Limits { refusals_per_caller: 1, attaches_per_caller: 1, ..roomy_limits() };
    let mut world = World::under_the_first_rules(limits);
    for _ in 0..3 {
        let ask = world.ask().state(ContainerState::Paused);
        assert_eq!(world.decide(ask).kind, DecisionKind::Refused);
    }
    let ask = world.ask();
    world.open(ask);
    for n in 0..3 {
        let ask = world.ask().id(&format!("q{n}"));
        assert_eq!(world.decide(ask).kind, DecisionKind::Attached);
    }
}

#[test]
fn who_is_there_instead_of_what_the_engine_did_not_find_is_set_beside_it_once_the_rules_know_that() {
    let gone = || Observation::Gone { engine_id: engine("E1"), successor: Some(container("2")) };
    for level in 1..=2 {
        let mut world = World::under_the_first_rules(roomy_limits());
        world.apply(Command::RaiseRulesLevel { level });
        let ask = world.ask();
        let run = world.open(ask);
        world.exchanged(&run, replied(404, Wire::Unix, EngineProof::Proven));
        let outcome = world.observe(&run, gone());
        assert_eq!(outcome, Outcome::Recorded { changed: level >= 2 }, "rules of level {level}");
        assert_eq!(world.run(&run).observation.is_some(), level >= 2, "rules of level {level}");
        assert_eq!(world.word(&run), "NOT_APPLIED");
        assert_eq!(world.observe(&run, gone()), Outcome::Recorded { changed: false });
    }
}

#[test]
fn a_reason_is_dated_from_its_own_beginning_and_under_the_first_rules_from_the_decision() {
    for level in 1..=2 {
        let mut world = World::under_the_first_rules(Limits::default());
        world.apply(Command::RaiseRulesLevel { level });
        let ask = world.ask();
        let run = world.open(ask);
        let opened = world.run(&run).opened.wall;
        world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
        world.observe(&run, seen(StartedAt::At(at(200))));
        let ask = world.ask();
        let refused = world.decide(ask).run;
        let since = world.run(&refused).reasons()[0].since;
        assert_eq!(since, if level == 1 { world.wall() } else { opened }, "rules of level {level}");
    }
}

#[test]
fn under_the_first_rules_the_reasons_of_both_accounts_stand_in_the_order_in_which_they_were_found() {
    // The name has a pause, the container's account is used up as well: it was renamed.
    let backing_off_first = [ReasonCode::BackingOff, ReasonCode::AttemptsExhausted];
    let in_the_order_of_checks = [ReasonCode::AttemptsExhausted, ReasonCode::BackingOff];
    for (level, expected) in [(1, backing_off_first), (2, in_the_order_of_checks)] {
        let mut world = World::under_the_first_rules(Limits { attempts: 2, ..Limits::default() });
        world.apply(Command::RaiseRulesLevel { level });
        for (clock_ms, target, digit) in
            [(0, "local/old", "1"), (300_000, "local/old", "1"), (300_000, "local/new", "2")]
        {
            world.clock_ms = clock_ms;
            let ask = world.ask().target(target).container(digit);
            let run = world.open(ask);
            world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
            let mut later = sighting(StartedAt::At(at(200)));
            later.container_id = container(digit);
            world.observe(&run, Observation::Seen(later));
        }
        let ask = world.ask().target("local/new").container("1");
        assert_eq!(world.refused(ask), expected, "rules of level {level}");
    }
}

#[test]
fn a_long_history_tells_repetitions_by_their_number_and_whoever_watches_is_told_of_each() {
    for level in 1..=2 {
        let mut world = World::under_the_first_rules(roomy_limits());
        world.apply(Command::RaiseRulesLevel { level });
        let ask = world.ask();
        let run = world.open(ask);
        world.exchanged(&run, lost(false));
        for n in 0..400 {
            let hangs = Observation::Unreadable { detail: "hangs".to_owned() };
            world.observe(&run, if n % 2 == 0 { hangs } else { seen(StartedAt::At(at(100))) });
            assert_eq!(world.run(&run).changed(), LogIndex(world.index));
            let ask = world.ask();
            assert_eq!(world.decide(ask).run, run);
            assert_eq!(world.run(&run).changed(), LogIndex(world.index));
        }
        let known = world.run(&run);
        assert_eq!((known.times(EventKind::Observed), known.times(EventKind::Attached)), (400, 400));
        let events = known.events.len();
        assert!(if level == 1 { events > 800 } else { events < 210 }, "level {level}: {events} events");
        assert!(known.events.is_sorted_by_key(|event| event.at.index), "level {level}");
    }
}

#[test]
fn a_change_of_limits_changes_what_it_names_alone_and_an_invalid_one_nothing() {
    let mut world = World::with(Limits { attempts: 5, ..Limits::default() });
    world.change_limits(LimitsChange { grace_max_s: Some(60), ..LimitsChange::default() });
    let expected = Limits { attempts: 5, grace_max_s: 60, ..Limits::default() };
    assert_eq!(*world.ledger.limits(), expected);
    for (change, field) in [
        (LimitsChange { margin_ms: Some(14_999), ..LimitsChange::default() }, "margin_ms"),
        (LimitsChange { grace_default_s: Some(61), ..LimitsChange::default() }, "grace_default_s"),
        (LimitsChange { refusals_per_caller: Some(0), ..LimitsChange::default() }, "refusals_per_caller"),
        (LimitsChange { ended_runs: Some(0), ..LimitsChange::default() }, "ended_runs"),
    ] {
        let outcome = world.apply(Command::ChangeLimits(change));
        let Outcome::Rejected(Rejection::InvalidLimit(invalid)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(invalid.field, field);
        assert_eq!(*world.ledger.limits(), expected, "{field}");
    }
}

#[test]
fn no_limit_is_so_long_that_apply_cannot_reckon_with_it() {
    let longest = LimitsChange {
        connect_ms: Some(86_400_000),
        dispatch_by_ms: Some(86_400_000),
        quarantine_ms: Some(86_400_000),
        attempts_window_ms: Some(u64::MAX),
        backoff_first_ms: Some(u64::MAX),
        backoff_longest_ms: Some(u64::MAX),
        request_memory_ms: Some(u64::MAX),
        ended_runs_ms: Some(u64::MAX),
        ..LimitsChange::default()
    };
    let mut world = World::new();
    world.change_limits(longest);
    // At the end of time, so that whatever is added to it does not fit.
    world.clock_ms = u64::MAX - 1;
    let check = HealthCheck { interval_ms: u64::MAX, timeout_ms: u64::MAX, start_period_ms: u64::MAX };
    let ask = world.ask().id("q1").health_check(check);
    let run = world.open(ask);
    world.exchanged(&run, replied(500, Wire::Unix, EngineProof::Proven));
    let approval = world.approval(&run, 1);
    world.approve(approval);
    world.observe(&run, seen(StartedAt::At(at(200))));
    assert_eq!(world.word(&run), "APPLIED");
    let ask = world.ask().container("2");
    assert!(world.refused(ask).contains(&ReasonCode::BackingOff));
    world.prune();
}

/// A run whose journal could not be asked.
fn journal_unreachable(world: &mut World) -> RunId {
    let ask = world.ask();
    let run = world.open(ask);
    world.journal_says(&run, position("a", 6), JournalWord::Unreachable { detail: "hangs".to_owned() });
    run
}

#[test]
fn a_journal_that_could_not_be_asked_contradicts_nothing_once_the_rules_know_that() {
    for level in 2..=3 {
        let mut world = World::under_the_first_rules(roomy_limits());
        world.apply(Command::RaiseRulesLevel { level });
        let run = journal_unreachable(&mut world);
        let outcome = world.never_handed_on(&run, NotWrittenCause::AuthorityLost);
        let contradicts = matches!(outcome, Outcome::Rejected(Rejection::Contradiction { .. }));
        assert_eq!(contradicts, level == 2, "rules of level {level}: {outcome:?}");
        assert_eq!(world.word(&run), if level == 2 { "UNRESOLVED" } else { "NOT_APPLIED" });
    }
    // Set beside a settlement, it ends the quarantine.
    let mut world = World::roomy();
    let run = journal_unreachable(&mut world);
    world.observe(&run, seen(StartedAt::At(at(200))));
    assert!(world.run(&run).is_quarantined(world.ledger.clock()));
    world.never_handed_on(&run, NotWrittenCause::AuthorityLost);
    assert!(!world.run(&run).is_quarantined(world.ledger.clock()));
    assert_eq!(world.word(&run), "APPLIED");
    // An intent is contradicted by it as before.
    let ask = world.ask();
    let run = world.open(ask);
    world.journal_says(&run, position("a", 6), JournalWord::Intent);
    let outcome = world.never_handed_on(&run, NotWrittenCause::AuthorityLost);
    assert!(matches!(outcome, Outcome::Rejected(Rejection::Contradiction { .. })), "{outcome:?}");
}

#[test]
fn a_contradiction_is_told_once_however_often_it_comes_once_the_rules_know_that() {
    for level in 2..=3 {
        let mut world = World::under_the_first_rules(roomy_limits());
        world.apply(Command::RaiseRulesLevel { level });
        let ask = world.ask();
        let run = world.open(ask);
        world.exchanged(&run, lost(false));
        let contradict = |world: &mut World, cause| {
            let outcome = world.exchanged(&run, never_written(cause));
            assert!(matches!(outcome, Outcome::Rejected(Rejection::Contradiction { .. })), "{outcome:?}");
        };
        for _ in 0..3 {
            contradict(&mut world, NotWrittenCause::Held);
        }
        let times = world.run(&run).times(EventKind::Contradicted);
        assert_eq!(times, if level == 2 { 3 } else { 1 }, "rules of level {level}");
        world.journal_says(&run, position("a", 9), JournalWord::NoIntent);
        assert_eq!(world.run(&run).times(EventKind::Contradicted), times + 1, "another one is news");
    }
}

#[test]
fn what_was_stored_before_a_bound_came_stays_in_force_until_it_is_changed() {
    let mut world = World::under_the_first_rules(roomy_limits());
    world.apply(Command::RaiseRulesLevel { level: 2 });
    let old = LimitsChange {
        quarantine_ms: Some(u64::MAX),
        inspect_ms: Some(3_600_000),
        request_memory_ms: Some(1_000),
        attempts_window_ms: Some(60_000),
        ..LimitsChange::default()
    };
    world.change_limits(old);
    world.apply(Command::RaiseRulesLevel { level: 3 });
    let stored = world.ledger.limits().clone();
    assert_eq!((stored.quarantine_ms, stored.request_memory_ms), (u64::MAX, 1_000));
    world.change_limits(LimitsChange { attempts: Some(7), ..LimitsChange::default() });
    assert_eq!(*world.ledger.limits(), Limits { attempts: 7, ..stored });
    for (change, field) in [
        (LimitsChange { quarantine_ms: Some(86_400_001), ..LimitsChange::default() }, "quarantine_ms"),
        (LimitsChange { inspect_ms: Some(60_001), ..LimitsChange::default() }, "inspect_ms"),
        (
            LimitsChange { request_memory_ms: Some(86_399_999), ..LimitsChange::default() },
            "request_memory_ms",
        ),
        (LimitsChange { attempts_window_ms: Some(50_000), ..LimitsChange::default() }, "backoff_longest_ms"),
    ] {
        let outcome = world.apply(Command::ChangeLimits(change));
        let Outcome::Rejected(Rejection::InvalidLimit(invalid)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(invalid.field, field);
    }
}

#[test]
fn a_refused_request_says_what_it_was_for_once_the_rules_know_that() {
    for level in 2..=3 {
        let mut world = World::under_the_first_rules(roomy_limits());
        world.apply(Command::RaiseRulesLevel { level });
        let mut ask = world.ask();
        ask.0.diagnosis = Diagnosis::Unhealthy;
        let refused = world.decide(ask).run;
        assert_eq!(world.reasons(&refused), [ReasonCode::TargetNotUnhealthy]);
        let expected = if level == 2 { Diagnosis::Callers } else { Diagnosis::Unhealthy };
        assert_eq!(world.run(&refused).diagnosis(), expected, "rules of level {level}");
    }
}

#[test]
fn that_a_container_is_gone_changes_nothing_before_the_fourth_rules_are_in_force() {
    let mut world = World::under_the_first_rules(roomy_limits());
    world.apply(Command::RaiseRulesLevel { level: 3 });
    let ask = world.ask();
    let run = world.open(ask);
    let before: Vec<Record> = world.ledger.records().collect();
    let gone = Verify { run, sighting: None, unseen: None, gone: Some(engine("E1")) };
    let outcome = world.apply(Command::Verify(Box::new(gone)));
    assert_eq!(outcome, Outcome::Rejected(Rejection::RulesTooOld { needed: 4, in_force: 3 }));
    assert_eq!(world.ledger.records().collect::<Vec<_>>(), before);
}

#[test]
fn a_command_of_the_third_rules_changes_nothing_before_they_are_in_force() {
    let mut world = World::under_the_first_rules(roomy_limits());
    world.apply(Command::RaiseRulesLevel { level: 2 });
    let ask = world.ask();
    let run = world.open(ask);
    let request = world.ask().0;
    let refuse = RefuseRequest {
        run: request.run,
        request: request.request,
        target: request.target,
        reasons: vec![Reason::new(ReasonCode::TargetNotFound, "test", WallTime(1))],
        diagnosis: Diagnosis::Unhealthy,
    };
    let asked_as = Some(HoldScope::Everything);
    for command in [
        Command::RefuseRequest(Box::new(refuse)),
        Command::Verify(Box::new(Verify {
            run,
            sighting: None,
            unseen: Some("hangs".to_owned()),
            gone: None,
        })),
        Command::PlaceHold(Box::new(PlaceHold { asked_as, ..hold(1, HoldScope::Everything) })),
    ] {
        let before: Vec<Record> = world.ledger.records().collect();
        let too_old = Rejection::RulesTooOld { needed: 3, in_force: 2 };
        assert_eq!(world.apply(command), Outcome::Rejected(too_old));
        assert_eq!(world.ledger.records().collect::<Vec<_>>(), before);
    }
}

#[test]
fn a_command_of_the_fourth_rules_changes_nothing_before_they_are_in_force() {
    let mut world = World::under_the_first_rules(roomy_limits());
    world.apply(Command::RaiseRulesLevel { level: 3 });
    let mut open = world.ask().0;
    open.request.by = Some("ann".to_owned());
    let refuse = RefuseRequest {
        run: open.run.clone(),
        request: open.request.clone(),
        target: open.target.clone(),
        reasons: vec![Reason::new(ReasonCode::TargetNotFound, "test", WallTime(1))],
        diagnosis: Diagnosis::Callers,
    };
    for command in [
        Command::OpenInterlock(Box::new(open)),
        Command::RefuseRequest(Box::new(refuse)),
        Command::RenewHold { hold: HoldId::new("1".repeat(32)).unwrap() },
    ] {
        let before: Vec<Record> = world.ledger.records().collect();
        let too_old = Rejection::RulesTooOld { needed: 4, in_force: 3 };
        assert_eq!(world.apply(command), Outcome::Rejected(too_old));
        assert_eq!(world.ledger.records().collect::<Vec<_>>(), before);
    }
}

#[test]
fn whoever_asks_and_whoever_joins_is_on_record_by_name() {
    let mut world = World::roomy();
    let mut ask = world.ask();
    ask.0.request.by = Some("ann".to_owned());
    let run = world.open(ask);
    let mut ask = world.ask().id("q1");
    ask.0.request.by = Some("bob".to_owned());
    world.decide(ask);
    let known = world.run(&run);
    assert_eq!(known.request.by.as_deref(), Some("ann"));
    let attached = known.events.iter().find(|event| event.kind == EventKind::Attached).unwrap();
    assert_eq!(attached.detail, "request q1 by bob for local/web: test");
}
