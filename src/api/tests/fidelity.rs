//! What the ledger has of a run is what a client is told of it.

use prost_types::{Duration, Timestamp};

use super::book::{Book, STARTED_S, container_id, started};
use crate::api::backend::Backend;
use crate::api::convert;
use crate::model::{EngineProof, Exchange, Reply, StartedAt, Wire};
use crate::rpc::v1;

fn told(book: &Book, run: &crate::ledger::Run) -> v1::Run {
    convert::run(&book.run(&run.id), book.cluster_time())
}

fn kinds(run: &v1::Run) -> Vec<&str> {
    run.events.iter().map(|event| event.kind.as_str()).collect()
}

#[test]
fn an_interlock_is_told_with_all_that_it_carries() {
    let book = Book::new();
    let run = book.open(1);
    let told = told(&book, &run);
    assert_eq!(told.run_id, run.id.as_str());
    assert_eq!(told.target, "local/c1");
    assert_eq!(told.status(), v1::RunStatus::Interlocked);
    assert_eq!(told.disposition(), v1::Disposition::Uncertain);
    assert_eq!(told.guard(), v1::Guard::Agent);
    assert_eq!((told.term, told.node), (7, 1));
    assert_eq!(told.grace, Some(Duration { seconds: 10, nanos: 0 }));
    assert_eq!(told.grace_source, "policy");
    assert_eq!(told.client_deadline, Some(Duration { seconds: 30, nanos: 0 }));
    assert_eq!((told.reason.as_str(), told.spelling.as_str()), ("stuck", "s"));
    let baseline = told.baseline.as_ref().unwrap();
    assert_eq!(baseline.engine_id, "engine-1");
    assert_eq!(baseline.container_id, container_id(1).as_str());
    assert_eq!(baseline.started_at, Some(Timestamp { seconds: STARTED_S, nanos: 5 }));
    assert_eq!(told.observed, None);
    assert_eq!(told.verification(), v1::Verification::Unspecified);
    assert_eq!(told.reasons[0].code, "awaiting-dispatch");
    assert!(!told.reasons[0].ends_when.is_empty() && told.reasons[0].since.is_some());
    assert_eq!(kinds(&told), ["INTERLOCKED"]);
    let event = &told.events[0];
    assert_eq!((event.term, event.node, event.index), (7, 1, run.opened.index.0));
    assert_eq!(event.time, told.decided_at);
}

#[test]
fn a_lost_reply_is_told_as_uncertain_with_what_the_wire_showed() {
    let book = Book::new();
    let run = book.open(1);
    book.lose_reply(&run);
    let told = told(&book, &run);
    assert_eq!(told.status(), v1::RunStatus::Unresolved);
    assert_eq!(told.disposition(), v1::Disposition::Uncertain);
    assert_eq!(told.exchange, "180 bytes written over a unix socket; no reply: connection reset");
    assert!(told.reasons.iter().any(|reason| reason.code == "reply-lost"), "{:?}", told.reasons);
    assert_eq!(kinds(&told), ["INTERLOCKED", "EXCHANGED", "UNRESOLVED"]);
}

#[test]
fn a_start_that_was_seen_is_told_with_its_settlement() {
    let book = Book::new();
    let run = book.open(1);
    book.lose_reply(&run);
    book.observe(&run, 1, started(0));
    let same = told(&book, &run);
    assert_eq!(same.status(), v1::RunStatus::Unresolved);
    assert_eq!(same.observed, same.baseline);

    book.observe(&run, 1, started(4));
    let applied = told(&book, &run);
    assert_eq!(applied.status(), v1::RunStatus::Applied);
    assert_eq!(applied.disposition(), v1::Disposition::Applied);
    assert_eq!(
        applied.observed.as_ref().unwrap().started_at,
        Some(Timestamp { seconds: STARTED_S + 4, nanos: 5 })
    );
    assert_eq!(applied.settlement, "StartedAt only, no response");
    let codes: Vec<&str> = applied.reasons.iter().map(|reason| reason.code.as_str()).collect();
    assert_eq!(codes, ["quarantined"], "what keeps the target closed, and nothing else");
    // No whole reply: the target stays closed, and it is said for how long.
    assert!(applied.quarantined);
    assert!(
        applied.quarantine_ends_in.is_some_and(|left| left.seconds > 600),
        "{:?}",
        applied.quarantine_ends_in
    );
}

#[test]
fn a_start_that_is_no_instant_is_not_made_one() {
    let book = Book::new();
    let run = book.open(1);
    book.lose_reply(&run);
    book.observe(&run, 1, StartedAt::Unreadable("yesterday".into()));
    let told = told(&book, &run);
    let observed = told.observed.unwrap();
    assert_eq!((observed.container_id.as_str(), observed.started_at), (container_id(1).as_str(), None));
    assert!(told.reasons.iter().any(|reason| reason.code == "started-at-unreadable"), "{:?}", told.reasons);
}

#[test]
fn a_proof_is_told_in_words() {
    let book = Book::new();
    let run = book.open(1);
    let message = "No such container".to_owned();
    let reply = Reply::Complete { status: 404, proof: EngineProof::Proven, message };
    book.record(&run, Exchange::Written { wire: Wire::Unix, bytes: 180, reply });
    let told = told(&book, &run);
    assert_eq!(told.status(), v1::RunStatus::NotApplied);
    assert_eq!(told.disposition(), v1::Disposition::NotApplied);
    assert_eq!(told.settlement, "the engine refused it with 404: No such container");
    assert!(!told.quarantined);
}

#[test]
fn a_refusal_is_told_without_an_interlock() {
    let book = Book::new();
    let id = book.refuse("gone");
    let told = convert::run(&book.run(&id), book.cluster_time());
    assert_eq!(told.status(), v1::RunStatus::Refused);
    assert_eq!(told.disposition(), v1::Disposition::NotApplied);
    assert_eq!(told.guard(), v1::Guard::Unspecified);
    assert_eq!((told.baseline, told.grace, told.client_deadline), (None, None, None));
    assert_eq!(told.reasons[0].code, "target-not-found");
}

#[test]
fn the_json_of_a_run_has_the_names_that_scripts_use() {
    let book = Book::new();
    let run = book.open(1);
    book.lose_reply(&run);
    book.observe(&run, 1, started(4));
    let json = crate::rpc::to_json("relatch.v1.Run", &told(&book, &run)).unwrap();
    for name in [
        "runId",
        "requestId",
        "target",
        "status",
        "disposition",
        "quarantined",
        "reasons",
        "term",
        "node",
        "guard",
        "baseline",
        "observed",
        "verification",
        "events",
    ] {
        assert!(json.get(name).is_some(), "{name} is missing in {json:#}");
    }
    assert_eq!(json["disposition"], "DISPOSITION_APPLIED");
    assert_eq!(json["observed"]["startedAt"], "2024-05-01T10:20:34.000000005Z");
    assert_eq!(json["events"][0]["kind"], "INTERLOCKED");
    assert_eq!(json["term"], "7");
}
