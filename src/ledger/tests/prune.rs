//! What is forgotten, and what never is.

use super::operators::{hold, hold_id};
use super::*;

const DAY_MS: u64 = 86_400_000;

/// Everything that has ended is unwanted, as far as it may be forgotten at all.
fn forgetful() -> World {
    World::with(Limits { ended_runs: 1, ended_runs_ms: 1, request_memory_ms: 1_000, ..roomy_limits() })
}

/// The same ledger with these limits, as they may lie on a disk.
fn reload_with(world: &mut World, limits: Limits) {
    let stored = world.ledger.records().map(|record| match record {
        Record::Meta(meta) => Record::Meta(Meta { limits: limits.clone(), ..meta }),
        other => other,
    });
    let stored: Vec<(String, Record)> = stored.map(|record| (record.key().to_string(), record)).collect();
    world.ledger = Ledger::load(cluster(), holes(), stored).unwrap();
}

fn ask_for(world: &mut World, n: u64) -> Ask {
    world.ask().container(&n.to_string()).target(&format!("local/c{n}"))
}

fn refuse(world: &mut World) -> RunId {
    let ask = world.ask().container("f").target("local/refused").state(ContainerState::Paused);
    let decision = world.decide(ask);
    assert_eq!(decision.kind, DecisionKind::Refused);
    decision.run
}

fn kept(world: &World, runs: &[RunId]) -> Vec<bool> {
    runs.iter().map(|run| world.ledger.run(run).is_some()).collect()
}

#[test]
fn what_is_open_quarantined_or_watched_is_never_pruned() {
    let mut world = forgetful();
    let ask = ask_for(&mut world, 1);
    let interlocked = world.open(ask);
    let ask = ask_for(&mut world, 2);
    let unresolved = world.open(ask);
    world.exchanged(&unresolved, lost(true));
    let ask = ask_for(&mut world, 3);
    let quarantined = world.open(ask);
    world.exchanged(&quarantined, lost(true));
    let mut later = sighting(StartedAt::At(at(200)));
    later.container_id = container("3");
    world.observe(&quarantined, Observation::Seen(later.clone()));
    let check = HealthCheck { interval_ms: 1_000, timeout_ms: 500, start_period_ms: 0 };
    let ask = ask_for(&mut world, 4).health_check(check);
    let watched = world.open(ask);
    world.exchanged(&watched, replied(204, Wire::Unix, EngineProof::Proven));
    later.container_id = container("4");
    world.observe(&watched, Observation::Seen(later));
    assert!(matches!(world.run(&watched).verification, Verification::Pending { .. }));
    let refused = refuse(&mut world);
    let standing = [interlocked, unresolved, quarantined.clone(), watched.clone()];
    // Long past every deadline, bound and window: time alone ends none of them.
    world.clock_ms = 1_000 * DAY_MS;
    world.prune();
    assert_eq!(kept(&world, &standing), [true; 4]);
    assert!(world.ledger.run(&refused).is_none(), "what has ended is forgotten");
    assert_eq!(world.ledger.open_runs().count(), 2);
    // Once it is known how they end, they may be forgotten, in their time.
    world.verify(&quarantined, None);
    world.apply(Command::EndQuarantine { run: quarantined });
    world.verify(&watched, None);
    world.clock_ms += 1_000;
    world.prune();
    assert_eq!(kept(&world, &standing), [true, true, false, false]);
}

#[test]
fn ended_runs_are_forgotten_by_count_those_first_that_ended_first() {
    let mut world = World::with(Limits { ended_runs: 2, request_memory_ms: 1, ..roomy_limits() });
    // What is open counts for nothing.
    for n in 1..4 {
        let ask = ask_for(&mut world, n);
        world.open(ask);
    }
    let ask = ask_for(&mut world, 4);
    let ended_last = world.open(ask);
    let runs: Vec<RunId> = (0..3).map(|_| refuse(&mut world)).collect();
    world.exchanged(&ended_last, never_written(NotWrittenCause::Fenced));
    world.clock_ms = 1;
    world.prune();
    assert_eq!(kept(&world, &runs), [false, false, true]);
    assert!(world.ledger.run(&ended_last).is_some(), "it was opened before them, and ended after them");
    assert_eq!(world.ledger.runs_newest_first().count(), 5);
    assert!(!world.ledger.has_something_to_prune());
}

#[test]
fn ended_runs_are_forgotten_by_age() {
    let mut world = World::with(Limits { ended_runs_ms: 2 * DAY_MS, ..roomy_limits() });
    let first = refuse(&mut world);
    world.clock_ms = DAY_MS;
    let second = refuse(&mut world);
    world.clock_ms = 2 * DAY_MS - 1;
    world.prune();
    assert_eq!(kept(&world, &[first.clone(), second.clone()]), [true, true]);
    world.clock_ms = 2 * DAY_MS;
    world.apply(Command::Tick);
    assert!(world.ledger.has_something_to_prune());
    world.prune();
    assert_eq!(kept(&world, &[first, second]), [false, true]);
}

#[test]
fn nothing_is_forgotten_before_its_answer_may_be() {
    let mut world = World::with(Limits { ended_runs: 1, ended_runs_ms: 1, ..roomy_limits() });
    let runs: Vec<RunId> = (0..5).map(|_| refuse(&mut world)).collect();
    world.clock_ms = DAY_MS - 1;
    world.prune();
    assert_eq!(kept(&world, &runs), [true; 5]);
    world.clock_ms = DAY_MS;
    world.prune();
    assert_eq!(kept(&world, &runs), [false; 5]);
}

#[test]
fn a_run_that_was_open_for_long_is_kept_for_its_time_once_it_ended() {
    let mut world = World::with(Limits { ended_runs_ms: 2 * DAY_MS, ..roomy_limits() });
    let ask = world.ask();
    let run = world.open(ask);
    world.exchanged(&run, lost(false));
    let refused = refuse(&mut world);
    world.clock_ms = 30 * DAY_MS;
    world.resolve(&run, false);
    world.apply(Command::EndQuarantine { run: run.clone() });
    world.clock_ms = 32 * DAY_MS - 1;
    world.prune();
    assert!(world.ledger.run(&run).is_some(), "how it ended can still be read");
    assert!(world.ledger.run(&refused).is_none(), "and it keeps nothing else");
    world.clock_ms = 32 * DAY_MS;
    world.prune();
    assert!(world.ledger.run(&run).is_none());
}

#[test]
fn attempts_outlive_the_runs_that_made_them_and_go_when_they_leave_the_window() {
    let mut world = World::with(Limits {
        request_memory_ms: 1,
        ended_runs_ms: 1,
        attempts: 1,
        backoff_first_ms: 0,
        ..Limits::default()
    });
    let ask = world.ask();
    let run = world.open(ask);
    world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
    world.observe(&run, seen(StartedAt::At(at(200))));
    world.clock_ms = 3_599_998;
    world.verify(&run, None);
    world.clock_ms = 3_599_999;
    world.prune();
    assert!(world.ledger.run(&run).is_none());
    let ask = world.ask();
    assert_eq!(world.refused(ask), [ReasonCode::AttemptsExhausted]);
    world.clock_ms = 3_600_000;
    world.prune();
    let accounts = world.ledger.records().filter(|record| matches!(record, Record::Attempts(_))).count();
    assert_eq!(accounts, 0);
    let ask = world.ask();
    world.open(ask);
}

#[test]
fn holds_are_forgotten_once_they_are_over_and_not_before() {
    let mut world = World::roomy();
    world.place(PlaceHold { duration_ms: Some(10), ..hold(1, HoldScope::Everything) });
    world.place(hold(2, HoldScope::Everything));
    let there = |world: &World| world.ledger.holds().map(|hold| hold.id.clone()).collect::<Vec<_>>();
    world.clock_ms = 9;
    world.prune();
    assert_eq!(there(&world), [hold_id(1), hold_id(2)]);
    world.clock_ms = 10;
    world.prune();
    assert_eq!(there(&world), [hold_id(2)]);
}

#[test]
fn one_command_forgets_a_thousand_at_most_and_more_is_seen_to_be_left() {
    let mut world = forgetful();
    for n in 0..1_002_u64 {
        let ask = world.ask().id(&format!("q{n}")).state(ContainerState::Paused);
        world.decide(ask);
    }
    world.clock_ms = 1_000;
    let left = |world: &World| {
        let remembered = world.ledger.records().filter(|record| matches!(record, Record::Request(_))).count();
        (world.ledger.runs_newest_first().count(), remembered)
    };
    world.prune();
    assert_eq!(left(&world), (2, 2));
    assert!(world.ledger.has_something_to_prune());
    world.prune();
    assert_eq!(left(&world), (0, 0));
    assert!(!world.ledger.has_something_to_prune());
}

#[test]
fn answers_that_outlast_their_run_go_in_their_turn_wherever_the_ledger_was_loaded_in_between() {
    let mut world = forgetful();
    let ask = world.ask();
    let run = world.open(ask);
    for n in 0..1_003_u64 {
        let ask = world.ask().id(&format!("q{n}"));
        assert_eq!(world.decide(ask).kind, DecisionKind::Attached);
    }
    world.exchanged(&run, never_written(NotWrittenCause::Fenced));
    world.clock_ms = 1_000;
    world.prune();
    let remembered = |ledger: &Ledger| ledger.memory().all().count();
    assert_eq!((world.ledger.run(&run), remembered(&world.ledger)), (None, 3));
    // No command sets so little any more, but it may be stored.
    let limits = Limits { request_memory_ms: 2_000, ..world.ledger.limits().clone() };
    reload_with(&mut world, limits);
    world.prune();
    assert_eq!(remembered(&world.ledger), 3, "they may be asked for again");
    world.clock_ms = 2_000;
    world.apply(Command::Tick);
    for mut ledger in [world.ledger.clone(), world.reloaded()] {
        assert!(ledger.has_something_to_prune());
        std::mem::swap(&mut world.ledger, &mut ledger);
        world.prune();
        assert_eq!(remembered(&world.ledger), 0);
        assert!(!world.ledger.has_something_to_prune());
        world.ledger = ledger;
    }
}

#[test]
fn a_starts_id_is_free_once_its_run_is_forgotten() {
    let mut world = forgetful();
    let run = world.started();
    world.start_exchanged(&run, 1, replied(204, Wire::Unix, EngineProof::Proven));
    world.observe(&run, seen(StartedAt::At(at(200))));
    assert_eq!(world.word(&run), "APPLIED");
    world.clock_ms = 30_000;
    world.verify(&run, None);
    world.clock_ms = 31_000;
    world.prune();
    assert!(world.ledger.run(&run).is_none());
    let run = world.started();
    assert_eq!(world.run(&run).starts.len(), 1);
}
