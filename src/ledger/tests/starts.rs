//! When a start of what was left down is opened, what its evidence does, and what it never does.

use super::operators::{down, hold, journal_word, of_target, start_id};
use super::*;

#[test]
fn a_start_has_a_fence_and_a_deadline_of_its_own_and_is_shown_as_awaited() {
    let mut world = World::roomy();
    let run = world.left_down();
    world.term = Term(4);
    world.clock_ms = 1_000;
    let approval = world.approval(&run, 1);
    assert_eq!(world.approve(approval), []);
    let start = world.run(&run).start(&start_id(1)).unwrap();
    assert_eq!((start.fence.term, start.fence.index), (Term(4), LogIndex(world.index)));
    assert_eq!(start.deadline, ClusterTime(1_000 + 5_000 + 3_000 + 20_000), "no grace: nothing is stopped");
    let awaited = world.run(&run).reasons().iter().find(|reason| reason.code == ReasonCode::StartAwaited);
    assert_eq!(awaited.and_then(|reason| reason.until), Some(ClusterTime(29_000)));
    assert_eq!(world.word(&run), "UNRESOLVED", "an approval claims nothing");
}

#[test]
fn a_start_is_refused_for_each_reason_by_its_name() {
    let look = |change: &dyn Fn(&mut Sighting)| {
        let mut seen = down();
        change(&mut seen);
        Observation::Seen(seen)
    };
    let gone = Observation::Gone { engine_id: engine("E1"), successor: None };
    for (what, look, code) in [
        ("it runs", look(&|seen| seen.state = ContainerState::Running), ReasonCode::TargetNotDown),
        ("it is paused", look(&|seen| seen.state = ContainerState::Paused), ReasonCode::TargetNotDown),
        ("it restarts", look(&|seen| seen.state = ContainerState::Restarting), ReasonCode::TargetNotDown),
        ("it is dead", look(&|seen| seen.state = ContainerState::Dead), ReasonCode::TargetNotDown),
        ("later life", look(&|s| s.started_at = StartedAt::At(at(101))), ReasonCode::IncarnationChanged),
        ("no life", look(&|seen| seen.started_at = StartedAt::Zero), ReasonCode::IncarnationChanged),
        ("other id", look(&|seen| seen.container_id = container("2")), ReasonCode::IncarnationChanged),
        ("other engine", look(&|seen| seen.engine_id = engine("E2")), ReasonCode::IncarnationChanged),
        ("gone", gone, ReasonCode::IncarnationChanged),
        ("hangs", Observation::Unreadable { detail: "test".to_owned() }, ReasonCode::BaselineUnreadable),
    ] {
        let mut world = World::roomy();
        let run = world.left_down();
        let mut approval = world.approval(&run, 1);
        approval.look = look;
        assert_eq!(world.approve(approval), [code], "{what}");
        assert_eq!(world.run(&run).starts, [], "{what}");
    }
}

#[test]
fn a_start_needs_a_restart_that_was_sent_and_is_over() {
    let mut world = World::roomy();
    let ask = world.ask();
    let run = world.open(ask);
    let ask = |world: &mut World, n| {
        let approval = world.approval(&run, n);
        world.approve(approval)
    };
    let not_sent = ReasonCode::RestartNotSent;
    let under_way = ReasonCode::RestartUnderWay;
    assert_eq!(ask(&mut world, 1), [not_sent, under_way], "nobody has reported");
    world.journal_says(&run, position("a", 6), JournalWord::Unreachable { detail: "test".to_owned() });
    assert_eq!(ask(&mut world, 1), [not_sent, under_way], "nobody knows");
    world.journal_says(&run, position("a", 6), JournalWord::Intent);
    assert_eq!(ask(&mut world, 1), [under_way], "an intent, and no end of the exchange");
    world.exchanged(&run, replied(502, Wire::Tcp, EngineProof::Unproven));
    assert_eq!(ask(&mut world, 1), [under_way], "a proxy may still hold it");
    let deadline = world.run(&run).interlock.as_ref().unwrap().deadline;
    world.clock_ms = deadline.0 - 1;
    assert_eq!(ask(&mut world, 1), [under_way]);
    world.clock_ms = deadline.0;
    assert_eq!(ask(&mut world, 1), []);
}

#[test]
fn a_start_of_a_settled_run_is_refused() {
    let mut world = World::roomy();
    let run = world.left_down();
    world.resolve(&run, false);
    let approval = world.approval(&run, 1);
    assert_eq!(world.approve(approval), [ReasonCode::RunSettled]);
}

#[test]
fn a_start_is_refused_while_a_hold_stands_on_any_name_of_its_container() {
    for scope in [HoldScope::Everything, of_target("local/web"), of_target("local/renamed-since")] {
        let mut world = World::roomy();
        let run = world.left_down();
        world.clock_ms = 100;
        let held = scope.to_string();
        world.place(PlaceHold { duration_ms: Some(50), ..hold(1, scope) });
        let mut approval = world.approval(&run, 1);
        let mut seen = down();
        seen.name = "renamed-since".to_owned();
        approval.look = Observation::Seen(seen);
        let outcome = world.apply(Command::OpenStart(Box::new(approval.clone())));
        let Outcome::StartDecided(decision) = outcome else { panic!("{held}: {outcome:?}") };
        let seen: Vec<_> = decision.reasons.iter().map(|reason| (reason.code, reason.until)).collect();
        assert_eq!(seen, [(ReasonCode::Held, Some(ClusterTime(150)))], "{held}");
        world.clock_ms = 150;
        assert_eq!(world.approve(approval), [], "{held}");
    }
}

#[test]
fn a_start_goes_through_the_dispatcher_that_is_bound_now() {
    let mut world = World::roomy();
    let run = world.left_down();
    world.bind("local", "E1", "b");
    let approval = world.approval(&run, 1);
    assert_eq!(world.approve(approval.clone()), [ReasonCode::HostDiffers]);
    let dispatcher = DispatcherRef { journal: position("b", 0), ..approval.dispatcher.clone() };
    assert_eq!(world.approve(OpenStart { dispatcher, ..approval }), []);
    // From now on the old journal speaks for the restart alone, the new one for the start alone.
    let outcome = world.start_exchanged(&run, 1, never_written(NotWrittenCause::Fenced));
    assert!(matches!(outcome, Outcome::Rejected(Rejection::NotItsWord { .. })), "{outcome:?}");
    world.start_attested(&run, 1, journal_word(JournalWord::NoIntent));
    let start = world.run(&run).start(&start_id(1)).unwrap();
    assert!(matches!(start.word, Some(JournalWord::Unreachable { .. })), "{:?}", start.word);
    let attestation = Attestation::Journal { at: position("b", 1), word: JournalWord::NoIntent };
    world.start_attested(&run, 1, attestation);
    assert!(world.run(&run).start(&start_id(1)).unwrap().has_ended());
}

#[test]
fn every_reason_against_a_start_is_given_and_not_only_the_first() {
    let mut world = World::roomy();
    let ask = world.ask();
    let run = world.open(ask);
    world.place(hold(1, HoldScope::Everything));
    world.bind("local", "E1", "b");
    let mut approval = world.approval(&run, 1);
    approval.look = seen(StartedAt::At(at(100)));
    assert_eq!(
        world.approve(approval),
        [
            ReasonCode::RestartNotSent,
            ReasonCode::RestartUnderWay,
            ReasonCode::HostDiffers,
            ReasonCode::TargetNotDown,
            ReasonCode::Held
        ]
    );
}

#[test]
fn a_start_proposed_in_one_term_is_not_opened_in_another() {
    let mut world = World::roomy();
    let run = world.left_down();
    let approval = world.approval(&run, 1);
    world.term = Term(2);
    let outcome = world.apply(Command::OpenStart(Box::new(approval)));
    assert_eq!(outcome, Outcome::StaleTerm { proposed: Term(1), committed: Term(2) });
    assert_eq!(world.run(&run).starts, []);
}

#[test]
fn a_start_that_is_known_is_answered_as_before_whatever_the_rules_say_now() {
    let mut world = World::roomy();
    let run = world.started();
    let again = world.approval(&run, 1);
    world.term = Term(9);
    world.place(hold(1, HoldScope::Everything));
    let outcome = world.apply(Command::OpenStart(Box::new(again.clone())));
    let known = StartDecision { start: start_id(1), reasons: Vec::new(), repeated: true };
    assert_eq!(outcome, Outcome::StartDecided(known));
    assert_eq!(world.run(&run).starts.len(), 1);
    // The same id for another start, of this run or of another one.
    let reused = Outcome::Rejected(Rejection::StartIdReused { start: start_id(1) });
    let by_another = OpenStart { by: "bob".to_owned(), ..again.clone() };
    assert_eq!(world.apply(Command::OpenStart(Box::new(by_another))), reused);
    world.term = Term(1);
    world.lift(LiftHold::Scope(HoldScope::Everything));
    let ask = world.ask().container("2").target("local/other");
    let other = world.open(ask);
    let of_another = OpenStart { run: other, ..again };
    assert_eq!(world.apply(Command::OpenStart(Box::new(of_another))), reused);
}

#[test]
fn one_start_is_outstanding_at_a_time_and_is_spent_at_its_deadline() {
    let mut world = World::roomy();
    let run = world.started();
    let deadline = world.run(&run).starts[0].deadline;
    world.start_exchanged(&run, 1, lost(true));
    world.clock_ms = deadline.0 - 1;
    let approval = world.approval(&run, 2);
    assert_eq!(world.approve(approval), [ReasonCode::StartOutstanding]);
    world.clock_ms = deadline.0;
    let approval = world.approval(&run, 2);
    assert_eq!(world.approve(approval), []);
    assert_eq!(world.run(&run).outstanding_start(world.ledger.clock()).unwrap().id, start_id(2));
    let approval = world.approval(&run, 3);
    assert_eq!(world.approve(approval), [ReasonCode::StartOutstanding]);
}

#[test]
fn a_run_has_so_many_starts_and_no_more_however_each_ends() {
    let mut world = World::roomy();
    let run = world.left_down();
    for n in 1..=20 {
        let approval = world.approval(&run, n);
        assert_eq!(world.approve(approval), [], "start {n}");
        world.start_exchanged(&run, n, replied(500, Wire::Unix, EngineProof::Proven));
    }
    let approval = world.approval(&run, 21);
    assert_eq!(world.approve(approval), [ReasonCode::StartsExhausted]);
    assert_eq!(world.run(&run).starts.len(), 20);
    assert_eq!(world.word(&run), "UNRESOLVED", "it can be resolved");
}

/// Every way to know that a start was not sent and never will be.
fn tell_unsent(world: &mut World, run: &RunId, way: usize) {
    let refusal = NotWritten { cause: NotWrittenCause::IncarnationChanged, detail: "test".to_owned() };
    match way {
        0 => world.start_exchanged(run, 1, never_written(NotWrittenCause::TicketExpired)),
        1 => world.start_attested(run, 1, journal_word(JournalWord::NoIntent)),
        2 => world.start_attested(run, 1, journal_word(JournalWord::NotSent)),
        _ => world.start_attested(run, 1, Attestation::NeverHandedOn { proposer: proposer(), refusal }),
    };
}

#[test]
fn a_start_that_was_never_sent_frees_the_next_and_settles_nothing() {
    for way in 0..4 {
        let mut world = World::roomy();
        let run = world.started();
        tell_unsent(&mut world, &run, way);
        assert_eq!(world.word(&run), "UNRESOLVED", "way {way}: it says nothing of the restart");
        assert!(!world.reasons(&run).contains(&ReasonCode::StartAwaited), "way {way}");
        let approval = world.approval(&run, 2);
        assert_eq!(world.approve(approval), [], "way {way}");
    }
}

#[test]
fn no_answer_to_a_start_ends_the_restarts_interlock() {
    for exchange in [
        replied(204, Wire::Unix, EngineProof::Proven),
        replied(304, Wire::Unix, EngineProof::Proven),
        replied(404, Wire::Unix, EngineProof::Proven),
        replied(400, Wire::Unix, EngineProof::Proven),
        replied(500, Wire::Unix, EngineProof::Proven),
        lost(true),
    ] {
        let mut world = World::roomy();
        let run = world.started();
        let before = world.run(&run).exchange.clone();
        world.start_exchanged(&run, 1, exchange.clone());
        assert_eq!(world.word(&run), "UNRESOLVED", "{exchange:?}");
        assert_eq!(world.run(&run).exchange, before, "{exchange:?} is the start's");
        let awaited = world.reasons(&run).contains(&ReasonCode::StartAwaited);
        assert_eq!(awaited, !exchange.has_ended(), "{exchange:?}");
    }
}

#[test]
fn a_later_start_is_the_follow_up_starts_if_that_may_have_done_it_and_never_the_restarts() {
    let by_start = Evidence::ByFollowUpStart;
    let only = Evidence::StartedAtOnly;
    let unreachable = JournalWord::Unreachable { detail: "test".to_owned() };
    type Tell = Box<dyn Fn(&mut World, &RunId)>;
    let answered = |status, wire, proof| -> Tell {
        Box::new(move |world, run| drop(world.start_exchanged(run, 1, replied(status, wire, proof))))
    };
    let cases: [(&str, Tell, Evidence); 14] = [
        ("no word yet", Box::new(|_, _| {}), by_start),
        (
            "an intent",
            Box::new(|world, run| drop(world.start_attested(run, 1, journal_word(JournalWord::Intent)))),
            by_start,
        ),
        ("written", Box::new(|world, run| drop(world.start_exchanged(run, 1, lost(false)))), by_start),
        (
            "its journal cannot be asked",
            Box::new(move |w, run| drop(w.start_attested(run, 1, journal_word(unreachable.clone())))),
            Evidence::JournalUnreachable,
        ),
        ("204", answered(204, Wire::Unix, EngineProof::Proven), by_start),
        ("500", answered(500, Wire::Unix, EngineProof::Proven), by_start),
        ("304 of whoever", answered(304, Wire::Unix, EngineProof::Unproven), by_start),
        ("304 of what may have sent it twice", answered(304, Wire::Tcp, EngineProof::Proven), by_start),
        ("it ran already", answered(304, Wire::Unix, EngineProof::Proven), only),
        ("the engine refused it", answered(404, Wire::Unix, EngineProof::Proven), only),
        ("never written", Box::new(|world, run| tell_unsent(world, run, 0)), only),
        ("no intent", Box::new(|world, run| tell_unsent(world, run, 1)), only),
        ("not sent", Box::new(|world, run| tell_unsent(world, run, 2)), only),
        ("never handed on", Box::new(|world, run| tell_unsent(world, run, 3)), only),
    ];
    for (what, tell, expected) in cases {
        let mut world = World::roomy();
        let run = world.started();
        tell(&mut world, &run);
        world.observe(&run, seen(StartedAt::At(at(200))));
        let Status::Applied { evidence, .. } = world.run(&run).status else {
            panic!("{what}: {:?}", world.run(&run).status)
        };
        assert_eq!(evidence, expected, "{what}");
    }
}

#[test]
fn word_that_contradicts_what_is_on_record_of_a_start_changes_nothing_but_the_history() {
    let mut world = World::roomy();
    let run = world.started();
    world.start_exchanged(&run, 1, lost(false));
    for way in 0..4 {
        tell_unsent(&mut world, &run, way);
        let start = world.run(&run).start(&start_id(1)).unwrap();
        assert_eq!((&start.exchange, &start.word), (&Some(lost(false)), &None), "way {way}");
    }
    assert_eq!(world.run(&run).times(EventKind::Contradicted), 4);

    let mut world = World::roomy();
    let run = world.started();
    tell_unsent(&mut world, &run, 3);
    let outcome = world.start_exchanged(&run, 1, lost(false));
    assert!(matches!(outcome, Outcome::Rejected(Rejection::Contradiction { .. })), "{outcome:?}");
    assert_eq!(world.run(&run).start(&start_id(1)).unwrap().exchange, None);
}

#[test]
fn a_quarantine_waits_for_the_end_of_the_start_as_well() {
    let mut world = World::roomy();
    let run = world.left_down();
    world.clock_ms = 100_000;
    let approval = world.approval(&run, 1);
    assert_eq!(world.approve(approval), []);
    world.start_exchanged(&run, 1, lost(false));
    world.observe(&run, seen(StartedAt::At(at(200))));
    assert_eq!(world.word(&run), "APPLIED");
    let until = world.run(&run).quarantine.unwrap().until;
    let deadline = world.run(&run).starts[0].deadline;
    assert!(deadline > world.run(&run).interlock.as_ref().unwrap().deadline);
    assert_eq!(until, deadline.after_ms(600_000), "the restart was answered, the start was not");
    let ask = world.ask();
    assert_eq!(world.refused(ask), [ReasonCode::Quarantined]);
    world.start_exchanged(&run, 1, replied(204, Wire::Unix, EngineProof::Proven));
    assert!(!world.is_quarantined(&run));
    let ask = world.ask();
    world.open(ask);
}

#[test]
fn a_restart_that_proves_unsent_leaves_the_target_closed_while_a_start_may_still_land() {
    let mut world = World::roomy();
    let ask = world.ask();
    let run = world.open(ask);
    world.journal_says(&run, position("a", 6), JournalWord::Intent);
    world.observe(&run, Observation::Seen(down()));
    world.clock_ms = world.run(&run).interlock.as_ref().unwrap().deadline.0;
    let approval = world.approval(&run, 1);
    assert_eq!(world.approve(approval), []);
    world.journal_says(&run, position("a", 7), JournalWord::NotSent);
    assert_eq!(world.word(&run), "NOT_APPLIED");
    assert!(world.is_quarantined(&run));
    let ask = world.ask();
    assert_eq!(world.refused(ask), [ReasonCode::Quarantined]);
    world.start_attested(&run, 1, journal_word(JournalWord::NoIntent));
    assert!(!world.is_quarantined(&run));
}

#[test]
fn a_start_that_nobody_approved_has_no_evidence() {
    let mut world = World::roomy();
    let run = world.left_down();
    let outcome = world.start_exchanged(&run, 1, lost(false));
    assert!(matches!(outcome, Outcome::Rejected(Rejection::Invalid { .. })), "{outcome:?}");
}

#[test]
fn a_start_is_charged_to_nothing() {
    let mut world = World::with(Limits { attempts: 2, backoff_first_ms: 0, ..Limits::default() });
    let run = world.started();
    world.start_exchanged(&run, 1, replied(204, Wire::Unix, EngineProof::Proven));
    world.observe(&run, seen(StartedAt::At(at(200))));
    assert_eq!(world.word(&run), "APPLIED");
    let ask = world.ask();
    world.open(ask);
}

/// A run that is resolved revokes what its own tasks are about to send.
#[test]
fn the_proposers_word_after_the_journals_that_nothing_was_sent_is_no_contradiction() {
    for word in [JournalWord::NoIntent, JournalWord::NotSent] {
        let refusal = NotWritten { cause: NotWrittenCause::Held, detail: "test".to_owned() };
        let never = || Attestation::NeverHandedOn { proposer: proposer(), refusal: refusal.clone() };
        let mut world = World::roomy();
        let run = world.started();
        world.start_attested(&run, 1, journal_word(word.clone()));
        let outcome = world.start_attested(&run, 1, never());
        assert_eq!(outcome, Outcome::Recorded { changed: false }, "{word:?}");

        let ask = world.ask().id("q2").container("2").target("local/other");
        let run = world.open(ask);
        world.journal_says(&run, position("a", 9), word.clone());
        let outcome = world.apply(Command::Attest(Box::new(Attest {
            run: run.clone(),
            start: None,
            attestation: never(),
        })));
        assert_eq!(outcome, Outcome::Recorded { changed: false }, "{word:?}");
        assert_eq!(world.run(&run).times(EventKind::Contradicted), 0, "{word:?}");
    }
}
