//! Random histories against the invariants.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::histories::{CALLERS, Step, step};
use super::operators::start_id;
use super::*;

/// What is remembered beside the ledger, so that it can be held to it.
#[derive(Default)]
struct Witness {
    /// Every run as it was last, pruned ones included.
    runs: BTreeMap<RunId, Run>,
    /// Every interlock: its run, and when it was charged.
    charged: Vec<(RunId, ClusterTime)>,
    /// The records, by the changes that were reported alone.
    stored: BTreeMap<String, Record>,
    clock: ClusterTime,
}

/// Invariant 3: at most one run stands per target and per container.
fn one_at_a_time(ledger: &Ledger) -> Result<(), TestCaseError> {
    let (mut targets, mut containers) = (BTreeSet::new(), BTreeSet::new());
    for run in ledger.runs_newest_first().filter(|run| run.is_open() || run.is_quarantined(ledger.clock())) {
        let incarnation = &run.baseline.as_ref().expect("a standing run has a baseline").incarnation;
        prop_assert!(targets.insert(run.target.clone()), "two runs stand for {}", run.target);
        let container = (incarnation.engine_id.clone(), incarnation.container_id.clone());
        prop_assert!(containers.insert(container.clone()), "two runs stand for {container:?}");
    }
    Ok(())
}

/// True if it was proven that nothing was sent.
fn is_proven_unsent(run: &Run) -> bool {
    match &run.status {
        Status::NotApplied { proof } => !matches!(proof, Proof::EngineRefused { .. }),
        _ => false,
    }
}

/// Invariants 4, 5 and 11, from the facts on record alone.
fn claims_have_grounds(run: &Run, clock: ClusterTime) -> Result<(), TestCaseError> {
    let written = run.exchange.as_ref().is_some_and(Exchange::was_written);
    prop_assert!(!(is_proven_unsent(run) && written), "not-applied although bytes were written: {run:?}");
    if let Status::Applied { observed, .. } = &run.status {
        let before = &run.baseline.as_ref().unwrap().incarnation;
        let same = observed.engine_id == before.engine_id && observed.container_id == before.container_id;
        prop_assert!(
            same && observed.started_at > before.started_at,
            "applied without a later start: {run:?}"
        );
    }
    if run.is_open() || matches!(run.status, Status::Refused { .. }) {
        prop_assert!(!run.reasons().is_empty(), "uncertain or refused without a reason: {run:?}");
    }
    // Invariant 11: not well without a reason is a dead end. What nobody could see is not known to be unwell, and has
    // its reason too.
    let unseen = run.unwell.as_ref().is_some_and(|reason| reason.code == ReasonCode::TargetNotSeen);
    match run.verification {
        Verification::NotRecovered => prop_assert!(run.unwell.is_some(), "{run:?}"),
        Verification::Unverified => prop_assert!(run.unwell.is_none() || unseen, "{run:?}"),
        _ => prop_assert!(run.unwell.is_none(), "{run:?}"),
    }
    if matches!(run.status, Status::OperatorResolved { .. } | Status::Superseded { .. }) {
        prop_assert_eq!(run.disposition(), Disposition::Uncertain);
    }
    prop_assert_eq!(run.quarantine_reason(clock).is_some(), run.is_quarantined(clock), "{:?}", run);
    let outstanding = run.starts.iter().filter(|start| start.is_outstanding(clock)).count();
    prop_assert!(outstanding <= 1, "{outstanding} starts are outstanding: {run:?}");
    Ok(())
}

/// What may follow one state of a run, and what may not.
fn follows(before: &Run, now: &Run) -> Result<(), TestCaseError> {
    if !before.is_open() {
        prop_assert_eq!(&before.status, &now.status, "a settled run changed its mind");
    }
    if let (true, Status::Applied { evidence, .. }) = (before.is_open(), &now.status) {
        let by_start = now.starts.iter().any(Start::may_have_acted);
        let says_so = matches!(evidence, Evidence::ByFollowUpStart | Evidence::JournalUnreachable);
        prop_assert!(!by_start || says_so, "a start may have done it, and {evidence:?} is said: {now:?}");
        prop_assert!(
            by_start || *evidence != Evidence::ByFollowUpStart,
            "no start may have done it: {now:?}"
        );
        let closed = now.quarantine.is_some_and(|quarantine| !quarantine.ended);
        prop_assert!(
            closed || now.exchanges_have_ended(),
            "it may still land, and its target is free: {now:?}"
        );
    }
    // Once bytes were written, or it was proven that none were, no other word takes that back.
    let orders = |run: &Run| {
        let starts = run.starts.iter().map(|start| (start.exchange.clone(), !start.may_have_left()));
        std::iter::once((run.exchange.clone(), is_proven_unsent(run))).chain(starts).collect::<Vec<_>>()
    };
    for ((was, unsent), (is, _)) in orders(before).into_iter().zip(orders(now)) {
        let written = |exchange: &Option<Exchange>| exchange.as_ref().is_some_and(Exchange::was_written);
        prop_assert!(!written(&was) || written(&is), "bytes were taken back: {now:?}");
        prop_assert!(!unsent || !written(&is), "bytes after a proof that there were none: {now:?}");
    }
    let history = now.events.len() >= before.events.len() && before.starts.len() <= now.starts.len();
    prop_assert!(history, "a part of its history is gone: {now:?}");
    Ok(())
}

/// Invariant 9: what is charged in the window never exceeds the limit, under either key.
fn within_the_caps(witness: &Witness, run: &Run, limits: &Limits) -> Result<(), TestCaseError> {
    let keys = |run: &Run| {
        let incarnation = &run.baseline.as_ref().unwrap().incarnation;
        let name = (incarnation.engine_id.clone(), run.target.path().to_owned());
        (name, incarnation.container_id.clone())
    };
    let (name, container) = keys(run);
    let counted = |is_it: &dyn Fn(&Run) -> bool| {
        let charged = witness.charged.iter().filter(|(id, at)| {
            let charged = &witness.runs[id];
            let within = witness.clock.since_ms(*at) < limits.attempts_window_ms;
            within && is_it(charged) && !is_proven_unsent(charged)
        });
        charged.count()
    };
    let by_name = counted(&|charged| keys(charged).0 == name);
    let by_container = counted(&|charged| keys(charged).1 == container);
    let most = limits.attempts as usize;
    prop_assert!(by_name <= most && by_container <= most, "{by_name} and {by_container} of {most}: {run:?}");
    Ok(())
}

/// What is found by every way of looking things up.
fn look_ups(ledger: &Ledger) -> Vec<String> {
    let clock = ledger.clock();
    let ids = |what: &str, runs: &mut dyn Iterator<Item = &Run>| {
        format!("{what}: {:?}", runs.map(|run| run.id.clone()).collect::<Vec<_>>())
    };
    let stands = |id: Option<&RunId>| {
        let run = id.and_then(|id| ledger.run(id));
        run.filter(|run| run.is_open() || run.is_quarantined(clock)).map(|run| run.id.clone())
    };
    let mut found = vec![
        ids("open", &mut ledger.open_runs()),
        ids("verifying", &mut ledger.verifying_runs()),
        ids("quarantined", &mut ledger.quarantined_runs()),
        ids("newest first", &mut ledger.runs_newest_first()),
        ids("changed", &mut ledger.runs_changed_after(LogIndex(0))),
        format!("ended {}, timed {}", ledger.ended_runs_count(), ledger.has_timed_work()),
        format!("to prune {}", ledger.has_something_to_prune()),
        format!("forgettable {:?}", ledger.memory().forgettable(clock, ledger.limits(), 9)),
        // All of it: a count that is never taken back would be seen by no look-up, and grow for ever.
        format!("{:?}", ledger.memory()),
    ];
    for run in ledger.runs_newest_first() {
        found.push(format!("for {}: {:?}", run.target, stands(ledger.index().for_target(&run.target))));
        if let Some(Incarnation { engine_id, container_id, .. }) =
            run.baseline.as_ref().map(|baseline| &baseline.incarnation)
        {
            let by_container = ledger.index().for_container(engine_id, container_id);
            found.push(format!("for {engine_id} {container_id}: {:?}", stands(by_container)));
        }
    }
    for start in (0..5).map(start_id) {
        found.push(format!("start {start}: {:?}", ledger.index().run_of_start(&start)));
    }
    for caller in CALLERS {
        for share in [Share::Refusals, Share::Attaches] {
            let full = ledger.memory().full(share, caller, clock, ledger.limits());
            found.push(format!("{share:?} of {caller}: {full:?}"));
        }
    }
    found
}

fn same_in_every_look_up(one: &Ledger, two: &Ledger) -> Result<(), TestCaseError> {
    prop_assert_eq!(one.records().collect::<Vec<_>>(), two.records().collect::<Vec<_>>());
    prop_assert_eq!(look_ups(one), look_ups(two));
    Ok(())
}

/// How many refusals of a caller count in its share.
fn refusals_of(ledger: &Ledger, caller: &str, clock: ClusterTime) -> usize {
    let within = |run: &&Run| clock.since_ms(run.opened.clock) < ledger.limits().request_memory_ms;
    let refused = ledger.runs_newest_first().filter(|run| matches!(run.status, Status::Refused { .. }));
    refused.filter(|run| run.request.caller == caller).filter(within).count()
}

/// What a request is answered with is what weighing it says.
fn decided_as_weighed(world: &mut World, command: OpenInterlock) -> Result<Outcome, TestCaseError> {
    let clock = world.ledger.clock().max(ClusterTime(world.clock_ms));
    let wall = WallTime(world.wall().0 + 1);
    let weighed = world.ledger.weigh(clock, wall, NodeId(1), &command);
    let known = command.request.id.as_ref().is_some_and(|id| world.ledger.remembered(id).is_some());
    let (run, term) = (command.run.clone(), command.term);
    let refusals = refusals_of(&world.ledger, &command.request.caller, clock);
    let outcome = world.apply(Command::OpenInterlock(Box::new(command)));
    match &outcome {
        _ if known => {}
        Outcome::StaleTerm { .. } => prop_assert!(term != world.term),
        Outcome::Decided(decision) => {
            let told = (weighed.kind, &weighed.run.id, &weighed.ignored);
            prop_assert_eq!(told, (decision.kind, &decision.run, &decision.ignored));
            prop_assert!(decision.kind == DecisionKind::Attached || decision.run == run);
            if decision.kind == DecisionKind::Refused {
                prop_assert_eq!(weighed.run.reasons(), world.run(&run).reasons());
                prop_assert!(refusals < world.ledger.limits().refusals_per_caller as usize);
            }
        }
        Outcome::Exhausted(full) => {
            prop_assert!(weighed.kind != DecisionKind::Opened, "a share kept out what would be opened");
            let expected = if weighed.kind == DecisionKind::Refused { weighed.run.reasons() } else { &[] };
            prop_assert_eq!(&full.reasons[..], expected);
            if full.share == Share::Refusals {
                prop_assert!(refusals >= world.ledger.limits().refusals_per_caller as usize);
            }
        }
        other => prop_assert!(false, "{:?}", other),
    }
    Ok(outcome)
}

/// Takes one step and holds what it changed to the invariants.
fn take(world: &mut World, witness: &mut Witness, step: &Step) -> Result<(), TestCaseError> {
    let Some(command) = world.command(step) else { return Ok(()) };
    let pruned = command == Command::Prune;
    match command {
        Command::OpenInterlock(ask) => drop(decided_as_weighed(world, *ask)?),
        other => drop(world.apply(other)),
    }
    let (clock, limits) = (world.ledger.clock(), world.ledger.limits().clone());
    prop_assert!(clock >= witness.clock, "the cluster clock stepped back");
    witness.clock = clock;
    let at = LogIndex(world.index);
    for change in &world.changes {
        let key = change.key.to_string();
        match &change.record {
            Some(record) => drop(witness.stored.insert(key, record.clone())),
            None => drop(witness.stored.remove(&key)),
        }
        match (&change.key, &change.record) {
            (Key::Run(_), Some(Record::Run(run))) => {
                prop_assert_eq!(run.changed(), at, "it changed, and whoever watches is not told: {:?}", run);
                claims_have_grounds(run, clock)?;
                if let Some(before) = witness.runs.insert(run.id.clone(), (**run).clone()) {
                    follows(&before, run)?;
                } else if run.interlock.is_some() {
                    witness.charged.push((run.id.clone(), clock));
                    within_the_caps(witness, run, &limits)?;
                }
            }
            (Key::Run(id), _) => {
                // Invariant 6: nothing that stands, and nothing that must be answered with, is ever gone.
                let gone = &witness.runs[id];
                let watched = matches!(gone.verification, Verification::Pending { .. });
                let stands = gone.is_open() || gone.quarantine.is_some_and(|q| !q.ended) || watched;
                let age_ms = clock.since_ms(gone.events.last().unwrap().at.clock);
                prop_assert!(pruned && !stands && age_ms >= limits.request_memory_ms, "gone: {gone:?}");
            }
            _ => {}
        }
    }
    prop_assert!(!(pruned && world.ledger.has_something_to_prune()), "something was left");
    one_at_a_time(&world.ledger)
}

/// Every order that was ever allowed has a fence and an id of its own: it is one restart, or one start.
fn every_order_is_its_own(witness: &Witness) -> Result<(), TestCaseError> {
    let (mut fences, mut orders) = (BTreeSet::new(), BTreeSet::new());
    for run in witness.runs.values().filter(|run| run.interlock.is_some()) {
        let starts = run.starts.iter().map(|start| (start.fence.index, &start.order));
        let restart = run.interlock.as_ref().map(|interlock| (interlock.fence.index, &run.id));
        for (fence, order) in restart.into_iter().chain(starts) {
            prop_assert!(fences.insert(fence) && orders.insert(order.clone()), "twice: {run:?}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn no_history_breaks_an_invariant(steps in proptest::collection::vec(step(), 1..120)) {
        let mut world = World::tight();
        let mut witness = Witness::default();
        for record in world.ledger.records() {
            witness.stored.insert(record.key().to_string(), record);
        }
        for step in &steps {
            take(&mut world, &mut witness, step)?;
            // What is known of everything that is open or was ever opened, and not gone by a rule, is there.
            for run in world.ledger.open_runs() {
                prop_assert_eq!(witness.runs.get(&run.id), Some(run));
            }
        }
        every_order_is_its_own(&witness)?;
        let whole = world.ledger.records().map(|record| (record.key().to_string(), record));
        prop_assert_eq!(whole.collect::<BTreeMap<_, _>>(), witness.stored, "changes do not add up");
    }

    #[test]
    fn the_same_history_makes_the_same_ledger_wherever_it_was_loaded_in_between(
        steps in proptest::collection::vec(step(), 1..100),
    ) {
        let (mut one, mut two) = (World::tight(), World::tight());
        for step in &steps {
            if let Step::Reload = step {
                let loaded = one.reloaded();
                same_in_every_look_up(&one.ledger, &loaded)?;
                one.ledger = loaded;
                continue;
            }
            let (command, again) = (one.command(step), two.command(step));
            prop_assert_eq!(&command, &again);
            if let Some(command) = command {
                prop_assert_eq!(one.apply(command.clone()), two.apply(command));
                prop_assert_eq!(&one.changes, &two.changes);
            }
        }
        same_in_every_look_up(&one.ledger, &two.ledger)?;
        same_in_every_look_up(&two.ledger, &two.reloaded())?;
    }
}
