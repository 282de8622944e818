//! Random histories against the invariants.

use proptest::prelude::*;

use super::*;

/// One step of a random history.
#[derive(Debug, Clone)]
enum Step {
    Ask { container: u8, target: u8, request: Option<u8>, stale: bool },
    Exchange { run: u8, kind: u8 },
    Journal { run: u8, word: u8, right: bool },
    Look { run: u8, kind: u8 },
    Clock { forward_ms: i64 },
    Term,
    Reload,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..3_u8, 0..3_u8, proptest::option::of(0..6_u8), one_in(10))
            .prop_map(|(container, target, request, stale)| Step::Ask { container, target, request, stale }),
        3 => (0..12_u8, 0..7_u8).prop_map(|(run, kind)| Step::Exchange { run, kind }),
        3 => (0..12_u8, 0..4_u8, one_in(5).prop_map(|wrong| !wrong))
            .prop_map(|(run, word, right)| Step::Journal { run, word, right }),
        3 => (0..12_u8, 0..6_u8).prop_map(|(run, kind)| Step::Look { run, kind }),
        1 => (-100_000..900_000_i64).prop_map(|forward_ms| Step::Clock { forward_ms }),
        1 => Just(Step::Term),
        1 => Just(Step::Reload),
    ]
}

fn one_in(n: u32) -> impl Strategy<Value = bool> {
    prop_oneof![1 => Just(true), n - 1 => Just(false)]
}

fn exchange(kind: u8) -> Exchange {
    match kind {
        0 => never_written(NotWrittenCause::Unreachable),
        1 => lost(false),
        2 => lost(true),
        3 => replied(204, Wire::Unix, EngineProof::Proven),
        4 => replied(404, Wire::Unix, EngineProof::Proven),
        5 => replied(404, Wire::Tcp, EngineProof::Proven),
        _ => replied(500, Wire::Unix, EngineProof::Proven),
    }
}

/// Takes one step. Every id is one that the world may know, or not.
fn take(world: &mut World, step: &Step) {
    let known = |n: u8| run_id(u64::from(n) + 1);
    match step {
        Step::Ask { container, target, request, stale } => {
            let digit = (container + 1).to_string();
            let mut ask = world.ask().container(&digit).target(&format!("local/t{target}"));
            if let Some(n) = request {
                ask = ask.id(&format!("q{n}"));
            }
            if *stale {
                ask.0.term = Term(world.term.0 + 1);
            }
            world.apply(Command::OpenInterlock(Box::new(ask.0)));
        }
        Step::Exchange { run, kind } => {
            world.exchanged(&known(*run), exchange(*kind));
        }
        Step::Journal { run, word, right } => {
            let word = match word {
                0 => JournalWord::NoIntent,
                1 => JournalWord::Intent,
                2 => JournalWord::NotSent,
                _ => JournalWord::Unreachable { detail: "test".to_owned() },
            };
            world.journal_says(&known(*run), position(if *right { "a" } else { "b" }, 9), word);
        }
        Step::Look { run, kind } => {
            let id = known(*run);
            let Some(baseline) = world.ledger.run(&id).and_then(|run| run.baseline.clone()) else { return };
            let look = |started_at| {
                let mut sighting = sighting(started_at);
                sighting.container_id = baseline.incarnation.container_id.clone();
                Observation::Seen(sighting)
            };
            let observation = match kind {
                0 => look(StartedAt::At(at(99))),
                1 => look(StartedAt::At(at(100))),
                2 => look(StartedAt::At(at(101))),
                3 => look(StartedAt::Zero),
                4 => Observation::Gone { engine_id: engine("E1"), successor: None },
                _ => Observation::Unreadable { detail: "test".to_owned() },
            };
            world.observe(&id, observation);
        }
        Step::Clock { forward_ms } => world.clock_ms = world.clock_ms.saturating_add_signed(*forward_ms),
        Step::Term => world.term = Term(world.term.0 + 1),
        Step::Reload => {
            let stored: Vec<_> = world.ledger.records().map(|r| (r.key().to_string(), r)).collect();
            world.ledger = Ledger::load(cluster(), holes(), stored).unwrap();
        }
    }
}

/// Invariant 3: at most one run stands per target and per container.
fn one_at_a_time(ledger: &Ledger) -> Result<(), TestCaseError> {
    let (mut targets, mut containers) =
        (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    for run in ledger.runs_newest_first().filter(|run| run.is_open() || run.is_quarantined(ledger.clock())) {
        let baseline = run.baseline.as_ref().expect("a standing run has a baseline");
        prop_assert!(targets.insert(run.target.clone()), "two runs stand for {}", run.target);
        let container = baseline.incarnation.container_id.clone();
        prop_assert!(containers.insert(container.clone()), "two runs stand for {container}");
    }
    Ok(())
}

/// Invariants 4 and 5, from the facts on record alone.
fn claims_have_grounds(run: &Run) -> Result<(), TestCaseError> {
    match &run.status {
        Status::NotApplied { proof } => {
            let written = run.exchange.as_ref().is_some_and(Exchange::was_written);
            let by_engine = matches!(proof, Proof::EngineRefused { .. });
            prop_assert!(by_engine || !written, "not-applied although bytes were written: {run:?}");
        }
        Status::Applied { observed, .. } => {
            let before = run.baseline.as_ref().map(|baseline| baseline.incarnation.started_at);
            prop_assert!(Some(observed.started_at) > before, "applied without a later start: {run:?}");
        }
        _ => {}
    }
    if run.disposition() == Disposition::Uncertain && run.is_open() {
        prop_assert!(!run.reasons().is_empty(), "uncertain without a reason: {run:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn no_history_breaks_an_invariant(steps in proptest::collection::vec(step(), 1..60)) {
        let mut world = World::roomy();
        let mut settled = std::collections::BTreeMap::new();
        let mut clock = world.ledger.clock();
        for step in &steps {
            take(&mut world, step);
            one_at_a_time(&world.ledger)?;
            prop_assert!(world.ledger.clock() >= clock, "the cluster clock stepped back");
            clock = world.ledger.clock();
            for run in world.ledger.runs_newest_first() {
                claims_have_grounds(run)?;
                if !run.is_open() {
                    let word = settled.entry(run.id.clone()).or_insert_with(|| run.status.clone());
                    prop_assert_eq!(&*word, &run.status, "a settled run changed its mind");
                }
            }
            // Invariant 6: what was open is still known.
            for run in settled.keys() {
                prop_assert!(world.ledger.run(run).is_some());
            }
        }
    }

    #[test]
    fn the_same_history_makes_the_same_ledger(steps in proptest::collection::vec(step(), 1..40)) {
        let (mut one, mut two) = (World::roomy(), World::roomy());
        for step in &steps {
            take(&mut one, step);
            if !matches!(step, Step::Reload) {
                take(&mut two, step);
            }
        }
        let records = |world: &World| world.ledger.records().collect::<Vec<_>>();
        prop_assert_eq!(records(&one), records(&two));
    }
}
