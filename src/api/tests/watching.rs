//! A watch loses no change and tells none twice, however fast or slow its reader is.

use std::collections::BTreeMap;

use tokio::time::timeout;
use tonic::{Code, Streaming};

use super::book::{Book, SOON, Served, started};
use crate::rpc::v1::recovery_client::RecoveryClient;
use crate::rpc::v1::{RunStatus, WatchRunsRequest, WatchRunsResponse};

async fn watch(served: &Served, run_id: &str, after_index: u64) -> Streaming<WatchRunsResponse> {
    let mut client = RecoveryClient::new(served.channel.clone());
    let request = WatchRunsRequest { run_id: run_id.into(), after_index };
    client.watch_runs(request).await.unwrap().into_inner()
}

async fn next(stream: &mut Streaming<WatchRunsResponse>) -> WatchRunsResponse {
    timeout(SOON, stream.message())
        .await
        .expect("a change is told in time")
        .unwrap()
        .expect("the stream goes on")
}

/// Reads until a change at `index`; the index of every change before it rises.
async fn read_to(stream: &mut Streaming<WatchRunsResponse>, index: u64) -> Vec<WatchRunsResponse> {
    let mut told: Vec<WatchRunsResponse> = Vec::new();
    while told.last().is_none_or(|last| last.index < index) {
        let change = next(stream).await;
        assert!(told.last().is_none_or(|last| last.index < change.index), "{} is told late", change.index);
        told.push(change);
    }
    told
}

#[tokio::test]
async fn a_watch_from_the_start_tells_the_runs_as_they_are_and_then_each_change() {
    let served = Served::start().await;
    let first = served.book.open(1);
    let second = served.book.open(2);
    served.book.lose_reply(&first);

    let mut stream = watch(&served, "", 0).await;
    let told = [next(&mut stream).await, next(&mut stream).await];
    let runs: Vec<(String, RunStatus)> = told
        .iter()
        .filter_map(|change| change.run.as_ref().map(|run| (run.run_id.clone(), run.status())))
        .collect();
    // By their newest change: the second run was opened before the first lost its reply.
    let expected =
        [(second.id.to_string(), RunStatus::Interlocked), (first.id.to_string(), RunStatus::Unresolved)];
    assert_eq!(runs, expected);

    served.book.observe(&first, 1, started(4));
    let change = next(&mut stream).await;
    assert_eq!(change.run.unwrap().status(), RunStatus::Applied);
    assert!(change.index > told[1].index);
}

#[tokio::test]
async fn a_watch_of_one_run_tells_of_no_other() {
    let served = Served::start().await;
    let run = served.book.open(1);
    let mut stream = watch(&served, run.id.as_str(), 0).await;
    assert_eq!(next(&mut stream).await.run.unwrap().status(), RunStatus::Interlocked);
    let other = served.book.open(2);
    served.book.lose_reply(&other);
    served.book.lose_reply(&run);
    let change = next(&mut stream).await.run.unwrap();
    assert_eq!((change.run_id.as_str(), change.status()), (run.id.as_str(), RunStatus::Unresolved));
}

#[tokio::test]
async fn a_watch_that_goes_on_after_an_index_tells_only_what_came_later() {
    let served = Served::start().await;
    let run = served.book.open(1);
    let mut stream = watch(&served, "", 0).await;
    let seen = next(&mut stream).await.index;
    drop(stream);
    served.book.lose_reply(&run);
    let mut stream = watch(&served, "", seen).await;
    let change = next(&mut stream).await;
    assert!(change.index > seen);
    assert_eq!(change.run.unwrap().status(), RunStatus::Unresolved);
}

/// Changes come while they are told: whatever is told at once, the events of each run are whole at the end.
#[tokio::test]
async fn no_change_is_lost_or_told_twice_while_more_come() {
    const RUNS: u8 = 40;
    let served = Served::start().await;
    let mut stream = watch(&served, "", 0).await;
    let writer = tokio::task::spawn_blocking({
        let book = served.book.clone();
        move || write_many(&book, RUNS)
    });
    let last = timeout(SOON, writer).await.expect("the writer ends").unwrap();
    let told = read_to(&mut stream, last).await;
    let mut latest = BTreeMap::new();
    for run in told.into_iter().filter_map(|change| change.run) {
        latest.insert(run.run_id.clone(), run);
    }
    for run in latest.values() {
        let stored = served.book.run(&run.run_id.parse().unwrap());
        assert_eq!(run.events.len(), stored.events.len(), "{}", run.run_id);
    }
    assert_eq!(latest.len(), usize::from(RUNS));
}

/// A reader that does not read costs no memory, and sees each run once, as it is when it reads at last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_is_told_the_newest_state() {
    let served = Served::start().await;
    let run = served.book.open(1);
    let mut stream = watch(&served, run.id.as_str(), 0).await;
    next(&mut stream).await;
    served.book.lose_reply(&run);
    let looks = 1_000;
    for look in 0..looks {
        // Two starts that settle nothing, in turn: each look is a change.
        served.book.observe(&run, 1, started(-1 - (look % 2)));
    }
    let last = served.book.run(&run.id).changed().0;
    let told = read_to(&mut stream, last).await;
    assert!((told.len() as i64) < looks / 2, "{} of {looks} changes were kept for a slow reader", told.len());
}

#[tokio::test]
async fn a_watch_ends_when_the_server_shuts_down() {
    let mut served = Served::start().await;
    served.book.open(1);
    let mut stream = watch(&served, "", 0).await;
    next(&mut stream).await;
    served.stop();
    let ended = timeout(SOON, stream.message()).await.expect("the stream ends").unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable, "{ended:?}");
    drop(stream);
    served.ended().await;
}

/// Refuses requests, one after the other; gives the index of the last change.
fn write_many(book: &Book, runs: u8) -> u64 {
    let mut last = 0;
    for number in 0..runs {
        let id = book.refuse(&format!("gone{number}"));
        last = book.run(&id).changed().0;
    }
    last
}
