//! What the random histories get to: an invariant that is never put to the test is not known to hold.

use std::collections::BTreeMap;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestRunner};

use super::histories::step;
use super::*;

/// What must be among it.
const WANTED: &[&str] = &[
    // Statuses and what stands behind them.
    "REFUSED",
    "INTERLOCKED",
    "UNRESOLVED",
    "APPLIED",
    "NOT_APPLIED",
    "SUPERSEDED",
    "OPERATOR_RESOLVED",
    "StartedAtAndReply",
    "StartedAtOnly",
    "JournalUnreachable",
    "ByFollowUpStart",
    "Recovered",
    "NotRecovered",
    "Unverified",
    "starts 2",
    // Reasons.
    "attempts-exhausted",
    "backing-off",
    "held",
    "in-flight-cluster",
    "in-flight-host",
    "unresolved-host",
    "quarantined",
    "target-not-unhealthy",
    "start-awaited",
    "target-down",
    "target-went-down",
    "target-not-healthy",
    "target-not-seen",
    // Events that are not named by a status.
    "event Attached",
    "event QuarantineBegan",
    "event QuarantineEnded",
    "event StartApproved",
    "event StartExchanged",
    "event StartAttested",
    "event Contradicted",
    // Answers.
    "Opened",
    "Attached",
    "Refused",
    "repeated",
    "full Refusals",
    "full Attaches",
    "start false ",
    "start true ",
    "start false start-outstanding",
    "start false held",
    "StartIdReused",
    "RequestIdReused",
    "HoldIdReused",
    "MayStillLand",
    "RunSettled",
    "NotItsWord",
    "Contradiction",
    "stale",
    "lifted 1",
    // What is forgotten.
    "run gone",
    "request gone",
    "attempts gone",
    "hold gone",
    "host gone",
];

/// In one word, what became of an entry.
fn outcome_word(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Decided(decision) if decision.repeated => "repeated".to_owned(),
        Outcome::Decided(decision) => format!("{:?}", decision.kind),
        Outcome::Exhausted(full) => format!("full {:?}", full.share),
        Outcome::StartDecided(decision) => {
            let codes: Vec<&str> = decision.reasons.iter().map(|reason| reason.code.as_str()).collect();
            format!("start {} {}", decision.repeated, codes.join(" "))
        }
        Outcome::Rejected(rejection) => {
            format!("{rejection:?}").split([' ', '{', '(']).next().unwrap().to_owned()
        }
        Outcome::Held { repeated, .. } => format!("held {repeated}"),
        Outcome::Renewed(hold) => format!("renewed {}", hold.is_some()),
        Outcome::Lifted(holds) => format!("lifted {}", holds.len().min(1)),
        Outcome::Recorded { changed } => format!("recorded {changed}"),
        Outcome::StaleTerm { .. } => "stale".to_owned(),
        Outcome::Done => "done".to_owned(),
    }
}

#[test]
fn random_histories_reach_every_status_every_event_and_every_answer() {
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRunner::deterministic().rng().clone());
    let mut reached: BTreeMap<String, u64> = BTreeMap::new();
    let mut count = |word: String| *reached.entry(word).or_default() += 1;
    for _ in 0..128 {
        let steps = proptest::collection::vec(step(), 119..120).new_tree(&mut runner).unwrap().current();
        let mut world = World::tight();
        for step in &steps {
            let Some(command) = world.command(step) else { continue };
            let outcome = world.apply(command);
            count(outcome_word(&outcome));
            for change in &world.changes {
                match &change.record {
                    None => count(format!("{} gone", change.key.to_string().split('/').next().unwrap())),
                    Some(Record::Run(run)) => {
                        count(run.status.word().to_owned());
                        count(format!("{:?}", run.verification).split([' ', '{']).next().unwrap().to_owned());
                        count(format!("starts {}", run.starts.len().min(3)));
                        let now = run.events.iter().filter(|event| event.at.index == LogIndex(world.index));
                        now.for_each(|event| count(format!("event {:?}", event.kind)));
                        run.reasons_at(world.ledger.clock())
                            .iter()
                            .for_each(|reason| count(reason.code.to_string()));
                        if let Status::Applied { evidence, .. } = run.status {
                            count(format!("{evidence:?}"));
                        }
                    }
                    Some(_) => {}
                }
            }
        }
    }
    let missing: Vec<&&str> = WANTED.iter().filter(|word| !reached.contains_key(**word)).collect();
    assert!(missing.is_empty(), "never reached: {missing:?}; reached: {reached:#?}");
}
