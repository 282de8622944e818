//! Interleavings that broke earlier drafts (DESIGN §9), as far as the ledger alone decides them. 9 and 21 are
//! with the memory of requests.

use super::*;

fn open(world: &mut World) -> RunId {
    let ask = world.ask();
    world.open(ask)
}

fn unreachable() -> JournalWord {
    JournalWord::Unreachable { detail: "test".to_owned() }
}

/// 3, the journal can be asked: the leader died between commit and connect, and the container's own policy
/// restarted it.
#[test]
fn a_restart_by_others_is_not_claimed_where_the_journal_says_that_nothing_was_sent() {
    let later = || seen(StartedAt::At(at(200)));
    let mut world = World::new();
    let run = open(&mut world);
    world.term = Term(2);
    world.journal_says(&run, position("a", 6), JournalWord::NoIntent);
    world.observe(&run, later());
    assert_eq!(world.run(&run).status, Status::NotApplied { proof: Proof::NoIntent });
    // It was looked at first, or could not be asked at first: the same.
    for first in [later(), Observation::Unreadable { detail: "test".to_owned() }] {
        let mut world = World::new();
        let run = open(&mut world);
        world.observe(&run, first);
        world.journal_says(&run, position("a", 6), JournalWord::NoIntent);
        assert_eq!(world.run(&run).status, Status::NotApplied { proof: Proof::NoIntent });
        open(&mut world);
    }
}

/// 3, the journal cannot be asked until later.
#[test]
fn a_restart_of_unknown_cause_keeps_the_target_closed_and_the_journals_later_word_is_set_beside_it() {
    for word in [JournalWord::NoIntent, JournalWord::NotSent] {
        let mut world = World::roomy();
        let run = open(&mut world);
        world.journal_says(&run, position("a", 6), unreachable());
        world.observe(&run, seen(StartedAt::At(at(200))));
        let applied = world.run(&run).status.clone();
        assert!(
            matches!(applied, Status::Applied { evidence: Evidence::JournalUnreachable, .. }),
            "{applied:?}"
        );
        let ask = world.ask();
        assert_eq!(world.refused(ask), [ReasonCode::Quarantined]);
        // Another journal's word is not its word.
        world.journal_says(&run, position("b", 9), word.clone());
        assert!(world.is_quarantined(&run));
        world.journal_says(&run, position("a", 7), word.clone());
        assert_eq!(world.run(&run).status, applied, "the settlement stands");
        assert_eq!(world.run(&run).word, Some(word));
        assert_eq!(world.run(&run).changed(), LogIndex(world.index), "whoever watches is told");
        open(&mut world);
    }
}

/// 5: a killed coordinator finds no intent in its own journal for a run that a remote agent sent.
#[test]
fn a_journal_that_the_interlock_does_not_name_attests_nothing() {
    for word in [JournalWord::NoIntent, JournalWord::NotSent, JournalWord::Intent] {
        let mut world = World::roomy();
        let run = open(&mut world);
        world.journal_says(&run, position("b", 1_000), word);
        assert!(matches!(world.run(&run).word, Some(JournalWord::Unreachable { .. })));
        assert_eq!(world.word(&run), "UNRESOLVED");
        let outcome = world.exchanged_by(&run, never_written(NotWrittenCause::Revoked), position("b", 1_000));
        assert!(matches!(outcome, Outcome::Rejected(Rejection::NotItsWord { .. })), "{outcome:?}");
        // The one that is named may still speak.
        world.journal_says(&run, position("a", 6), JournalWord::NoIntent);
        assert_eq!(world.word(&run), "NOT_APPLIED");
    }
}

/// 6: a journal rolled back with its identity intact.
#[test]
fn a_journal_behind_the_named_sequence_proves_nothing_and_one_at_it_does() {
    for (sequence, word) in [(0, "UNRESOLVED"), (4, "UNRESOLVED"), (5, "NOT_APPLIED"), (6, "NOT_APPLIED")] {
        let mut world = World::roomy();
        let run = open(&mut world);
        world.journal_says(&run, position("a", sequence), JournalWord::NoIntent);
        assert_eq!(world.word(&run), word, "sequence {sequence}");
        let mut world = World::roomy();
        let run = open(&mut world);
        world.exchanged_by(&run, never_written(NotWrittenCause::Revoked), position("a", sequence));
        let expected = if word == "UNRESOLVED" { "INTERLOCKED" } else { word };
        assert_eq!(world.word(&run), expected, "sequence {sequence}");
    }
}

/// 17: the link is cut, a proxy still holds the POST, and the container restarts by itself.
#[test]
fn a_quarantine_goes_on_while_a_proxy_may_hold_the_request_whatever_else_is_learned() {
    let mut world = World::roomy();
    let run = open(&mut world);
    world.exchanged(&run, lost(false));
    world.observe(&run, seen(StartedAt::At(at(200))));
    assert_eq!(world.word(&run), "APPLIED");
    let until = world.run(&run).quarantine.unwrap().until;
    world.observe(&run, seen(StartedAt::At(at(300))));
    world.journal_says(&run, position("a", 6), JournalWord::Intent);
    world.exchanged(&run, lost(true));
    world.exchanged(&run, replied(504, Wire::Tcp, EngineProof::Unproven));
    world.journal_says(&run, position("a", 9), JournalWord::NoIntent);
    assert_eq!(world.run(&run).quarantine, Some(Quarantine { until, ended: false }));
    world.clock_ms = until.0 - 1;
    let ask = world.ask();
    assert_eq!(world.refused(ask), [ReasonCode::Quarantined]);
    world.exchanged(&run, replied(204, Wire::Tcp, EngineProof::Proven));
    assert!(!world.is_quarantined(&run));
}
