//! An operator's word: what it needs, what it leaves, and what it never claims.

use super::operators::{down, journal_word};
use super::*;

fn open(world: &mut World) -> RunId {
    let ask = world.ask();
    world.open(ask)
}

fn unreachable() -> JournalWord {
    JournalWord::Unreachable { detail: "test".to_owned() }
}

/// What is put on record of a run before it is resolved.
type Tell = fn(&mut World, &RunId);

#[test]
fn a_run_is_resolved_only_once_its_dispatcher_has_spoken() {
    let cases: [(&str, Tell, bool); 7] = [
        ("nobody has reported", |_, _| {}, false),
        (
            "its journal cannot be asked",
            |w, run| drop(w.journal_says(run, position("a", 6), unreachable())),
            false,
        ),
        (
            "another journal speaks",
            |w, run| drop(w.journal_says(run, position("b", 6), JournalWord::Intent)),
            false,
        ),
        (
            "revoked, with an intent",
            |w, run| drop(w.journal_says(run, position("a", 6), JournalWord::Intent)),
            true,
        ),
        ("its reply was lost", |w, run| drop(w.exchanged(run, lost(true))), true),
        (
            "a proxy answered",
            |w, run| drop(w.exchanged(run, replied(502, Wire::Tcp, EngineProof::Unproven))),
            true,
        ),
        (
            "the engine answered",
            |w, run| drop(w.exchanged(run, replied(500, Wire::Unix, EngineProof::Proven))),
            true,
        ),
    ];
    for (what, tell, enough) in cases {
        let mut world = World::roomy();
        let run = open(&mut world);
        tell(&mut world, &run);
        let before = world.run(&run).clone();
        let outcome = world.resolve(&run, false);
        if enough {
            assert_eq!(outcome, Outcome::Recorded { changed: true }, "{what}");
            assert!(matches!(
                &world.run(&run).status,
                Status::OperatorResolved { resolution } if !resolution.accepted_late_post
            ));
        } else {
            assert_eq!(outcome, Outcome::Rejected(Rejection::MayStillLand { run: run.clone() }), "{what}");
            assert_eq!(*world.run(&run), before, "{what}");
        }
    }
}

#[test]
fn without_the_dispatchers_word_a_late_post_is_accepted_by_name_and_the_target_stays_closed() {
    let mut world = World::roomy();
    let run = open(&mut world);
    assert_eq!(world.resolve(&run, true), Outcome::Recorded { changed: true });
    let Status::OperatorResolved { resolution } = &world.run(&run).status else {
        panic!("{:?}", world.run(&run).status)
    };
    assert!(resolution.accepted_late_post);
    let until = world.run(&run).interlock.as_ref().unwrap().deadline.after_ms(600_000);
    assert_eq!(world.run(&run).quarantine, Some(Quarantine { until, ended: false }));
    let ask = world.ask();
    assert_eq!(world.refused(ask), [ReasonCode::Quarantined]);
}

#[test]
fn a_resolved_run_stays_uncertain_and_the_assertion_stands_beside_it() {
    let mut world = World::roomy();
    let run = open(&mut world);
    world.exchanged(&run, replied(500, Wire::Unix, EngineProof::Proven));
    world.resolve(&run, false);
    let resolved = world.run(&run);
    assert_eq!(resolved.disposition(), Disposition::Uncertain);
    let Status::OperatorResolved { resolution } = &resolved.status else { panic!("{:?}", resolved.status) };
    assert_eq!(resolution.assertion, Some(Assertion::NotApplied));
    assert_eq!((resolution.by.as_str(), resolution.reason.as_str()), ("ann", "looked at by hand"));
    assert_eq!(resolved.observation, None, "what somebody says is no observation");
    // A later look is not what it was resolved by.
    let outcome = world.observe(&run, seen(StartedAt::At(at(200))));
    assert_eq!(outcome, Outcome::Recorded { changed: false });
    assert_eq!(world.word(&run), "OPERATOR_RESOLVED");
}

#[test]
fn the_same_operators_same_word_is_the_same_answer_and_anothers_is_not() {
    let mut world = World::roomy();
    let run = open(&mut world);
    world.exchanged(&run, lost(false));
    world.resolve(&run, false);
    let before = world.run(&run).clone();
    assert_eq!(world.resolve(&run, true), Outcome::Recorded { changed: false });
    let settled = Rejection::RunSettled { run: run.clone(), status: "OPERATOR_RESOLVED".to_owned() };
    assert_eq!(world.resolve_by("bob", &run, true), Outcome::Rejected(settled));
    assert_eq!(*world.run(&run), before);
}

#[test]
fn a_settled_run_is_not_resolved_and_one_without_an_interlock_neither() {
    let settle: [(&str, Tell); 3] = [
        ("NOT_APPLIED", |w, run| drop(w.exchanged(run, never_written(NotWrittenCause::Unreachable)))),
        ("APPLIED", |w, run| {
            w.exchanged(run, lost(false));
            w.observe(run, seen(StartedAt::At(at(200))));
        }),
        ("SUPERSEDED", |w, run| {
            w.exchanged(run, lost(false));
            w.observe(run, Observation::Gone { engine_id: engine("E1"), successor: None });
        }),
    ];
    for (word, settle) in settle {
        let mut world = World::roomy();
        let run = open(&mut world);
        settle(&mut world, &run);
        let before = world.run(&run).clone();
        let settled = Rejection::RunSettled { run: run.clone(), status: word.to_owned() };
        assert_eq!(world.resolve(&run, true), Outcome::Rejected(settled));
        assert_eq!(*world.run(&run), before);
    }
    let mut world = World::roomy();
    let ask = world.ask().state(ContainerState::Paused);
    let refused = world.decide(ask).run;
    for run in [refused, run_id(999)] {
        let outcome = world.resolve(&run, true);
        assert_eq!(outcome, Outcome::Rejected(Rejection::NoInterlock { run }));
    }
}

#[test]
fn the_attempts_of_a_resolved_run_stay_charged() {
    let mut world = World::new();
    let run = open(&mut world);
    world.exchanged(&run, replied(500, Wire::Unix, EngineProof::Proven));
    world.resolve(&run, false);
    assert!(!world.is_quarantined(&run), "the engine's reply was whole");
    let ask = world.ask();
    assert_eq!(world.refused(ask), [ReasonCode::BackingOff]);
}

#[test]
fn only_word_of_the_end_ends_the_quarantine_of_a_resolved_run() {
    let cases: [(&str, Tell, bool); 6] = [
        ("no intent", |w, run| drop(w.journal_says(run, position("a", 6), JournalWord::NoIntent)), true),
        ("not sent", |w, run| drop(w.exchanged(run, never_written(NotWrittenCause::Revoked))), true),
        ("never handed on", |w, run| drop(w.never_handed_on(run, NotWrittenCause::AuthorityLost)), true),
        ("whole reply", |w, run| drop(w.exchanged(run, replied(204, Wire::Unix, EngineProof::Proven))), true),
        ("lost reply", |w, run| drop(w.exchanged(run, lost(true))), false),
        ("an intent", |w, run| drop(w.journal_says(run, position("a", 6), JournalWord::Intent)), false),
    ];
    for (what, tell, ends) in cases {
        let mut world = World::roomy();
        let run = open(&mut world);
        world.resolve(&run, true);
        assert!(world.is_quarantined(&run), "{what}");
        tell(&mut world, &run);
        assert_eq!(world.word(&run), "OPERATOR_RESOLVED", "{what}");
        assert_eq!(world.is_quarantined(&run), !ends, "{what}");
    }
}

#[test]
fn bytes_after_word_that_nothing_was_sent_are_a_contradiction_on_a_settled_run_too() {
    let unsent: [(&str, Tell); 2] = [
        ("no intent", |w, run| drop(w.journal_says(run, position("a", 6), JournalWord::NoIntent))),
        ("never handed on", |w, run| drop(w.never_handed_on(run, NotWrittenCause::AuthorityLost))),
    ];
    for (what, tell) in unsent {
        let mut world = World::roomy();
        let run = open(&mut world);
        world.resolve(&run, true);
        tell(&mut world, &run);
        let outcome = world.exchanged(&run, lost(false));
        assert!(matches!(outcome, Outcome::Rejected(Rejection::Contradiction { .. })), "{what}: {outcome:?}");
        assert_eq!(world.run(&run).exchange, None, "{what}");
        assert_eq!(world.run(&run).times(EventKind::Contradicted), 1, "{what}");
    }
}

#[test]
fn a_run_with_a_start_needs_the_word_about_the_start_as_well() {
    let mut world = World::roomy();
    let run = world.started();
    assert_eq!(world.resolve(&run, false), Outcome::Rejected(Rejection::MayStillLand { run: run.clone() }));
    world.start_attested(&run, 1, journal_word(JournalWord::Intent));
    assert_eq!(world.resolve(&run, false), Outcome::Recorded { changed: true });
    assert!(world.is_quarantined(&run), "the start may still land");
    world.start_exchanged(&run, 1, replied(304, Wire::Unix, EngineProof::Proven));
    assert!(!world.is_quarantined(&run));
}

#[test]
fn the_bound_of_a_quarantine_ends_it_and_says_that_it_is_no_proof() {
    let mut world = World::roomy();
    let run = open(&mut world);
    world.exchanged(&run, lost(false));
    world.observe(&run, Observation::Seen(down()));
    world.resolve(&run, false);
    let until = world.run(&run).quarantine.unwrap().until;
    let end = Command::EndQuarantine { run: run.clone() };
    world.clock_ms = until.0 - 1;
    assert_eq!(world.apply(end.clone()), Outcome::Recorded { changed: false });
    world.clock_ms = until.0;
    assert_eq!(world.apply(end.clone()), Outcome::Recorded { changed: true });
    let last = world.run(&run).events.last().unwrap();
    assert_eq!(last.kind, EventKind::QuarantineEnded);
    assert!(last.detail.contains("no proof"), "{}", last.detail);
    assert_eq!(world.run(&run).changed(), LogIndex(world.index));
    assert_eq!(world.ledger.quarantined_runs().count(), 0);
    assert_eq!(world.apply(end), Outcome::Recorded { changed: false });
    let ask = world.ask();
    world.open(ask);
}
