//! What evidence settles, and what it leaves uncertain.

use super::*;

fn open(world: &mut World) -> RunId {
    let ask = world.ask();
    world.open(ask)
}

#[test]
fn a_lost_reply_is_uncertain_not_a_no() {
    for timed_out in [false, true] {
        let mut world = World::roomy();
        let run = open(&mut world);
        world.exchanged(&run, lost(timed_out));
        assert_eq!(world.word(&run), "UNRESOLVED");
        assert_eq!(world.run(&run).disposition(), Disposition::Uncertain);
        world.observe(&run, seen(StartedAt::At(at(100))));
        assert_eq!(world.word(&run), "UNRESOLVED", "an unchanged StartedAt proves nothing");
    }
}

#[test]
fn a_204_alone_is_not_evidence() {
    let mut world = World::roomy();
    let run = open(&mut world);
    world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
    assert_eq!(world.word(&run), "UNRESOLVED");
    assert_eq!(world.reasons(&run), [ReasonCode::AwaitingStart, ReasonCode::NotObserved]);
}

#[test]
fn a_strictly_later_start_of_the_same_container_is_applied() {
    let mut world = World::roomy();
    let run = open(&mut world);
    world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
    let later = EngineInstant::new(100, 501).unwrap();
    world.observe(&run, seen(StartedAt::At(later)));
    assert!(matches!(
        &world.run(&run).status,
        Status::Applied { observed, evidence: Evidence::StartedAtAndReply } if observed.started_at == later
    ));
    assert!(!world.run(&run).is_quarantined(world.ledger.clock()), "the reply was complete");
}

#[test]
fn equal_earlier_zero_empty_and_unreadable_are_uncertain_each_for_its_own_reason() {
    for (started_at, code) in [
        (StartedAt::At(at(100)), ReasonCode::StartedAtEqual),
        (StartedAt::At(at(99)), ReasonCode::StartedAtEarlier),
        (StartedAt::Zero, ReasonCode::StartedAtZero),
        (StartedAt::Empty, ReasonCode::StartedAtEmpty),
        (StartedAt::Unreadable("soon".to_owned()), ReasonCode::StartedAtUnreadable),
    ] {
        let mut world = World::roomy();
        let run = open(&mut world);
        world.exchanged(&run, lost(false));
        world.observe(&run, seen(started_at.clone()));
        assert_eq!(world.word(&run), "UNRESOLVED", "{started_at:?}");
        assert_eq!(world.reasons(&run), [ReasonCode::ReplyLost, code], "{started_at:?}");
    }
}

#[test]
fn a_later_start_elsewhere_settles_nothing() {
    let mut other_engine = sighting(StartedAt::At(at(200)));
    other_engine.engine_id = engine("E2");
    let mut other_container = sighting(StartedAt::At(at(200)));
    other_container.container_id = container("2");
    for elsewhere in [other_engine, other_container] {
        let mut world = World::roomy();
        let run = open(&mut world);
        world.exchanged(&run, lost(false));
        world.observe(&run, Observation::Seen(elsewhere));
        assert_eq!(world.reasons(&run), [ReasonCode::ReplyLost, ReasonCode::EngineDiffers]);
    }
}

#[test]
fn a_look_before_anybody_reported_settles_nothing() {
    // The journal is asked first: a container can be started again by others.
    let mut world = World::roomy();
    let run = open(&mut world);
    world.observe(&run, seen(StartedAt::At(at(200))));
    assert_eq!(world.word(&run), "INTERLOCKED");
    world.journal_says(&run, position("a", 6), JournalWord::NoIntent);
    assert_eq!(world.word(&run), "NOT_APPLIED", "whatever StartedAt says");
}

#[test]
fn a_later_start_with_an_unreachable_journal_is_applied_of_unknown_cause_and_quarantined() {
    let mut world = World::roomy();
    let run = open(&mut world);
    world.journal_says(&run, position("a", 6), JournalWord::Unreachable { detail: "gone".to_owned() });
    assert_eq!(world.word(&run), "UNRESOLVED");
    world.observe(&run, seen(StartedAt::At(at(200))));
    assert!(matches!(world.run(&run).status, Status::Applied { evidence: Evidence::JournalUnreachable, .. }));
    assert!(world.run(&run).is_quarantined(world.ledger.clock()));
    // The journal's later word is set beside it.
    world.journal_says(&run, position("a", 7), JournalWord::NoIntent);
    assert_eq!(world.word(&run), "APPLIED", "a settled run does not change its mind");
    assert_eq!(world.run(&run).word, Some(JournalWord::NoIntent));
    assert!(!world.run(&run).is_quarantined(world.ledger.clock()));
}

#[test]
fn a_closed_gate_is_proof_and_gives_the_attempt_back() {
    let mut world = World::new();
    let run = open(&mut world);
    world.exchanged(&run, never_written(NotWrittenCause::TicketExpired));
    assert_eq!(world.word(&run), "NOT_APPLIED");
    open(&mut world);
}

#[test]
fn an_unreachable_engine_gives_the_attempt_back_and_still_pauses() {
    let mut world = World::new();
    let run = open(&mut world);
    world.exchanged(&run, never_written(NotWrittenCause::Unreachable));
    assert_eq!(world.word(&run), "NOT_APPLIED");
    let ask = world.ask();
    assert_eq!(world.refused(ask), [ReasonCode::BackingOff]);
}

#[test]
fn only_the_journal_that_the_interlock_names_proves_anything() {
    for (at, why) in [(position("b", 9), "another's"), (position("a", 4), "behind the named sequence")] {
        let mut world = World::roomy();
        let run = open(&mut world);
        let outcome = world.exchanged_by(&run, never_written(NotWrittenCause::Unreachable), at.clone());
        assert!(matches!(outcome, Outcome::Rejected(Rejection::NotItsWord { .. })), "{why}: {outcome:?}");
        world.journal_says(&run, at, JournalWord::NoIntent);
        assert_eq!(world.word(&run), "UNRESOLVED", "{why}");
        assert!(world.reasons(&run).contains(&ReasonCode::JournalUnreachable), "{why}");
    }
}

#[test]
fn only_the_proposer_in_the_same_life_says_that_it_never_handed_a_run_on() {
    let mut world = World::roomy();
    let run = open(&mut world);
    let refusal = NotWritten { cause: NotWrittenCause::AuthorityLost, detail: "test".to_owned() };
    let say = |proposer: Proposer| {
        let attestation = Attestation::NeverHandedOn { proposer, refusal: refusal.clone() };
        Command::Attest(Box::new(Attest { run: run.clone(), start: None, attestation }))
    };
    let mut restarted = proposer();
    restarted.nonce = ProcessNonce::new("e".repeat(32)).unwrap();
    assert!(matches!(world.apply(say(restarted)), Outcome::Rejected(Rejection::NotItsWord { .. })));
    assert_eq!(world.word(&run), "INTERLOCKED");
    world.apply(say(proposer()));
    assert_eq!(world.word(&run), "NOT_APPLIED");
}

#[test]
fn once_a_byte_is_recorded_no_proof_is_accepted() {
    let mut world = World::roomy();
    let run = open(&mut world);
    world.exchanged(&run, lost(false));
    let outcome = world.exchanged(&run, never_written(NotWrittenCause::Unreachable));
    assert!(matches!(outcome, Outcome::Rejected(Rejection::Contradiction { .. })), "{outcome:?}");
    let outcome = world.journal_says(&run, position("a", 9), JournalWord::NoIntent);
    assert!(matches!(outcome, Outcome::Rejected(_) | Outcome::Recorded { changed: false }), "{outcome:?}");
    assert_eq!(world.word(&run), "UNRESOLVED");
}

#[test]
fn a_400_or_404_is_proof_over_a_unix_socket_from_a_proven_engine_alone() {
    for (status, wire, proof, word) in [
        (404, Wire::Unix, EngineProof::Proven, "NOT_APPLIED"),
        (400, Wire::Unix, EngineProof::Proven, "NOT_APPLIED"),
        (404, Wire::Tcp, EngineProof::Proven, "UNRESOLVED"),
        (404, Wire::Unix, EngineProof::Unproven, "UNRESOLVED"),
        (500, Wire::Unix, EngineProof::Proven, "UNRESOLVED"),
        (403, Wire::Unix, EngineProof::Proven, "UNRESOLVED"),
        (409, Wire::Unix, EngineProof::Proven, "UNRESOLVED"),
    ] {
        let mut world = World::new();
        let run = open(&mut world);
        world.exchanged(&run, replied(status, wire, proof));
        assert_eq!(world.word(&run), word, "{status} {wire:?} {proof:?}");
        let ask = world.ask();
        if word == "NOT_APPLIED" {
            assert_eq!(world.refused(ask), [ReasonCode::BackingOff], "proof (c) stays charged");
        }
    }
}

#[test]
fn an_error_after_the_stop_says_that_the_target_is_down() {
    let mut world = World::roomy();
    let run = open(&mut world);
    world.exchanged(&run, replied(500, Wire::Unix, EngineProof::Proven));
    let mut down = sighting(StartedAt::At(at(100)));
    down.state = ContainerState::Exited;
    down.finished_at = Some(at(150));
    world.observe(&run, Observation::Seen(down));
    assert_eq!(
        world.reasons(&run),
        [ReasonCode::ErrorReply, ReasonCode::StartedAtEqual, ReasonCode::TargetDown]
    );
    assert!(world.run(&run).reasons()[0].detail.contains("500: test"), "the engine's text is kept");
}

#[test]
fn a_404_for_the_full_id_supersedes_and_says_what_is_there_instead() {
    for (successor, by) in
        [(Some(container("2")), SupersededBy::Replaced(container("2"))), (None, SupersededBy::Removed)]
    {
        let mut world = World::roomy();
        let run = open(&mut world);
        world.exchanged(&run, lost(false));
        world.observe(&run, Observation::Gone { engine_id: engine("E1"), successor });
        assert_eq!(world.run(&run).status, Status::Superseded { by });
        assert_eq!(world.run(&run).disposition(), Disposition::Uncertain);
    }
}

#[test]
fn a_404_from_another_engine_supersedes_nothing() {
    let mut world = World::roomy();
    let run = open(&mut world);
    world.exchanged(&run, lost(false));
    world.observe(&run, Observation::Gone { engine_id: engine("E2"), successor: None });
    assert_eq!(world.word(&run), "UNRESOLVED");
}

#[test]
fn applied_without_a_whole_reply_keeps_the_target_closed() {
    let mut world = World::roomy();
    let run = open(&mut world);
    world.exchanged(&run, lost(false));
    world.observe(&run, seen(StartedAt::At(at(200))));
    assert_eq!(world.word(&run), "APPLIED");
    let ask = world.ask();
    assert_eq!(world.refused(ask), [ReasonCode::Quarantined]);
    let renamed = world.ask().target("local/renamed");
    assert_eq!(world.refused(renamed), [ReasonCode::Quarantined], "by container id as well");
    // A bound, not a proof: deadline (38 s) and quarantine time (600 s).
    world.clock_ms = 637_999;
    let ask = world.ask();
    assert_eq!(world.refused(ask), [ReasonCode::Quarantined]);
    world.clock_ms = 638_000;
    open(&mut world);
}

#[test]
fn a_whole_reply_that_comes_later_ends_the_quarantine() {
    let mut world = World::roomy();
    let run = open(&mut world);
    world.journal_says(&run, position("a", 6), JournalWord::Intent);
    world.observe(&run, seen(StartedAt::At(at(200))));
    assert!(world.run(&run).is_quarantined(world.ledger.clock()));
    world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
    assert!(!world.run(&run).is_quarantined(world.ledger.clock()));
    open(&mut world);
}

#[test]
fn a_whole_reply_that_no_engine_wrote_ends_no_exchange() {
    let mut world = World::roomy();
    let run = open(&mut world);
    world.exchanged(&run, replied(504, Wire::Tcp, EngineProof::Unproven));
    world.observe(&run, seen(StartedAt::At(at(200))));
    assert_eq!(world.word(&run), "APPLIED");
    assert!(world.run(&run).is_quarantined(world.ledger.clock()), "a proxy may still hold the request");
}

#[test]
fn late_word_about_an_old_run_never_hides_the_one_that_is_open_now() {
    let mut world = World::roomy();
    let old = open(&mut world);
    world.journal_says(&old, position("a", 6), JournalWord::Intent);
    world.observe(&old, seen(StartedAt::At(at(200))));
    world.clock_ms = 700_000;
    let new = open(&mut world);
    // It ends no quarantine, but it changes the old run.
    world.exchanged(&old, lost(true));
    let ask = world.ask();
    let decision = world.decide(ask);
    assert_eq!((decision.kind, decision.run), (DecisionKind::Attached, new));
}

#[test]
fn an_intent_that_was_refused_at_the_gate_is_not_applied() {
    let mut world = World::roomy();
    let run = open(&mut world);
    world.journal_says(&run, position("a", 6), JournalWord::Intent);
    assert_eq!(world.word(&run), "UNRESOLVED");
    world.journal_says(&run, position("a", 7), JournalWord::NotSent);
    assert_eq!(world.word(&run), "NOT_APPLIED");
}

#[test]
fn a_reason_that_stands_keeps_its_date() {
    let mut world = World::roomy();
    let run = open(&mut world);
    world.exchanged(&run, lost(false));
    let since = world.run(&run).reasons()[0].since;
    world.observe(&run, seen(StartedAt::At(at(100))));
    world.observe(&run, Observation::Unreadable { detail: "hangs".to_owned() });
    assert_eq!(world.run(&run).reasons()[0].since, since);
}

#[test]
fn applied_is_not_recovered_until_a_look_shows_health() {
    let check = HealthCheck { interval_ms: 10_000, timeout_ms: 5_000, start_period_ms: 0 };
    for (health, clock_ms, expected) in [
        (Health::Healthy, 1_000, Verification::Recovered),
        (Health::Unhealthy, 45_001, Verification::NotRecovered),
    ] {
        let mut world = World::roomy();
        let ask = world.ask().health_check(check);
        let run = world.open(ask);
        world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
        world.observe(&run, seen(StartedAt::At(at(200))));
        assert_eq!(world.run(&run).verification, Verification::Pending { until: ClusterTime(45_000) });
        // The life before says nothing about this one.
        let mut old = sighting(StartedAt::At(at(100)));
        old.health = Health::Healthy;
        world.verify(&run, Some(old));
        assert!(matches!(world.run(&run).verification, Verification::Pending { .. }));
        world.clock_ms = clock_ms;
        let mut new = sighting(StartedAt::At(at(200)));
        new.health = health;
        world.verify(&run, Some(new));
        assert_eq!(world.run(&run).verification, expected);
    }
}
