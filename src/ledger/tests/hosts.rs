//! What may change about a host, and what outlives it.

use super::*;

fn remove(world: &mut World, host: &str) -> Outcome {
    world.apply(Command::RemoveHost { host: HostName::new(host).unwrap() })
}

fn invalid(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Rejected(Rejection::Invalid { .. }))
}

#[test]
fn an_engine_has_one_name() {
    let mut world = World::roomy();
    let outcome = world.bind("other", "E1", "b");
    assert!(invalid(&outcome), "{outcome:?}");
    assert_eq!(world.bind("other", "E2", "b"), Outcome::Done);
}

#[test]
fn a_host_on_which_a_run_is_open_or_quarantined_is_not_removed() {
    let mut world = World::roomy();
    let ask = world.ask();
    let run = world.open(ask);
    assert!(invalid(&remove(&mut world, "local")), "open");
    world.exchanged(&run, lost(false));
    world.observe(&run, seen(StartedAt::At(at(200))));
    assert!(world.is_quarantined(&run));
    assert!(invalid(&remove(&mut world, "local")), "quarantined");
    world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
    assert_eq!(remove(&mut world, "local"), Outcome::Done);
    assert!(world.ledger.host(&HostName::new("local").unwrap()).is_none());
    assert!(invalid(&remove(&mut world, "local")), "it is not bound any more");
}

#[test]
fn an_open_run_keeps_the_journal_that_it_names_when_a_new_dispatcher_is_bound() {
    let mut world = World::roomy();
    let ask = world.ask();
    let old = world.open(ask);
    assert_eq!(world.bind("local", "E1", "b"), Outcome::Done);
    // The new journal proves nothing for it, however far it has got.
    world.journal_says(&old, position("b", 99), JournalWord::NoIntent);
    assert_eq!(world.word(&old), "UNRESOLVED");
    assert!(world.reasons(&old).contains(&ReasonCode::JournalUnreachable), "{:?}", world.reasons(&old));
    // What is proposed with the old one is refused from now on.
    let ask = world.ask().container("2").target("local/other");
    assert_eq!(world.refused(ask), [ReasonCode::HostDiffers]);
    let mut ask = world.ask().container("2").target("local/other");
    ask.0.dispatcher.journal = position("b", 5);
    world.open(ask);
}

#[test]
fn removing_or_renaming_a_host_clears_no_charge() {
    let mut world = World::new();
    let ask = world.ask();
    let run = world.open(ask);
    world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
    world.observe(&run, seen(StartedAt::At(at(200))));
    assert_eq!(remove(&mut world, "local"), Outcome::Done);
    assert_eq!(world.bind("renamed", "E1", "a"), Outcome::Done);
    let by_name = world.ask().target("renamed/web").container("2");
    assert_eq!(world.refused(by_name), [ReasonCode::BackingOff], "the name on its engine is charged");
    let by_container = world.ask().target("renamed/other");
    assert_eq!(world.refused(by_container), [ReasonCode::BackingOff], "the container id is charged");
}
