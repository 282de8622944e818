//! `GetRun`, `ListRuns`, `WatchRuns`.

use std::collections::BTreeMap;

use relatch::rpc::v1::{
    Decision, GetRunRequest, ListRunsRequest, Run, RunStatus, WatchRunsRequest, WatchRunsResponse,
};
use relatch::sim::{ContainerSpec, Endpoint, Hold, Rule};
use tonic::{Code, Streaming};
use tonic_types::StatusExt;

use crate::world::{Clients, GIVE_UP_AFTER, World, ask_as, fields, missing};

fn ids(runs: &[Run]) -> Vec<&str> {
    runs.iter().map(|run| run.run_id.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_by_target_host_status_and_request_and_page_by_page() {
    let works = Rule::on(Endpoint::Restart).hold_effect(Hold::Until("work".into()));
    let (world, _node, mut clients) =
        World::up([ContainerSpec::compose("shop", "web", 1), ContainerSpec::named("api").rule(works)]).await;
    let refused = clients.decided(&ask_as("r-1", "local/db"), Decision::Refused).await;
    let applied = clients.decided(&ask_as("r-2", "local/shop/web"), Decision::Opened).await;
    clients.wait_for_status(&applied.run_id, RunStatus::Applied).await;
    let open = clients.decided(&ask_as("r-3", "local/api"), Decision::Opened).await;
    world.reached("work").await;
    clients.decided(&ask_as("r-4", "local/api"), Decision::Attached).await;
    let (refused, applied, open) = (&*refused.run_id, &*applied.run_id, &*open.run_id);
    let all = ListRunsRequest::default;
    let statuses = |statuses: &[RunStatus]| ListRunsRequest {
        statuses: statuses.iter().map(|status| (*status).into()).collect(),
        ..all()
    };
    let of_target = |target: &str| ListRunsRequest { target: target.into(), ..all() };
    let of_host = |host: &str| ListRunsRequest { host: host.into(), ..all() };
    let of_request = |id: &str| ListRunsRequest { request_id: id.into(), ..all() };
    let both = ListRunsRequest { target: "local/api".into(), ..statuses(&[RunStatus::Refused]) };
    for (request, wanted) in [
        (all(), vec![open, applied, refused]),
        (of_target("local/shop/web/1"), vec![applied]),
        (of_target("local/db"), vec![refused]),
        (of_host("local"), vec![open, applied, refused]),
        (of_host("elsewhere"), vec![]),
        (statuses(&[RunStatus::Refused]), vec![refused]),
        (statuses(&[RunStatus::Interlocked, RunStatus::Unresolved]), vec![open]),
        (statuses(&[RunStatus::Refused, RunStatus::Applied]), vec![applied, refused]),
        (statuses(&[RunStatus::Superseded]), vec![]),
        (of_request("r-1"), vec![refused]),
        (of_request("r-2"), vec![applied]),
        (of_request("r-3"), vec![open]),
        (of_request("r-4"), vec![open]),
        (of_request("r-5"), vec![]),
        (both, vec![]),
    ] {
        let answer = clients.list(request.clone()).await;
        assert_eq!((ids(&answer.runs), answer.next_page_token.as_str()), (wanted, ""), "{request:?}");
    }
    let mut pages = Vec::new();
    let mut page = ListRunsRequest { page_size: 2, ..all() };
    loop {
        let answer = clients.list(page.clone()).await;
        pages.push(ids(&answer.runs).into_iter().map(ToOwned::to_owned).collect::<Vec<_>>());
        if answer.next_page_token.is_empty() {
            break;
        }
        // What is decided meanwhile is newer than the page before, and moves nothing.
        clients.entry().await;
        page.page_token = answer.next_page_token;
    }
    assert_eq!(pages, [vec![open, applied], vec![refused]]);
    world.engine.release("work");
    clients.wait_for_status(open, RunStatus::Applied).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_named_by_the_beginning_of_its_id_and_one_that_is_not_there_is_said_to_be_missing() {
    let (_world, _node, mut clients) = World::up([]).await;
    let run = clients.decided(&ask_as("r-1", "local/db"), Decision::Refused).await;
    for length in [8, 9, 31, 32] {
        assert_eq!(clients.run(&run.run_id[..length]).await, run);
    }
    let absent = run.run_id.chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect::<String>();
    for id in [&absent[..8], &absent] {
        let status = clients.recovery.get_run(GetRunRequest { run_id: id.into() }).await.unwrap_err();
        assert_eq!(missing(&status), ("relatch.v1.Run".into(), id.into()));
        assert!(status.message().contains("relatch runs list"), "{status:?}");
        let watch = WatchRunsRequest { run_id: id.into(), after_index: 0 };
        assert_eq!(clients.recovery.watch_runs(watch).await.unwrap_err().code(), Code::NotFound);
    }
    for id in [
        "",
        &run.run_id[..7],
        &run.run_id.to_uppercase().replace(char::is_numeric, "A"),
        &format!("{}0", run.run_id),
    ] {
        let status = clients.recovery.get_run(GetRunRequest { run_id: id.into() }).await.unwrap_err();
        assert_eq!(fields(&status), ["run_id"]);
    }
}

/// Reads changes until one is as wanted.
async fn read_until(
    stream: &mut Streaming<WatchRunsResponse>,
    wanted: impl Fn(&Run) -> bool,
) -> Vec<WatchRunsResponse> {
    let mut read = Vec::new();
    loop {
        let message = tokio::time::timeout(GIVE_UP_AFTER, stream.message()).await;
        let Ok(message) = message else { panic!("gave up waiting for a change: {read:#?}") };
        let change = message.expect("a change").expect("the stream goes on");
        let run = change.run.clone().expect("a change has a run");
        read.push(change);
        if wanted(&run) {
            return read;
        }
    }
}

async fn watch(clients: &mut Clients, run_id: &str, after_index: u64) -> Streaming<WatchRunsResponse> {
    let request = WatchRunsRequest { run_id: run_id.into(), after_index };
    clients.recovery.watch_runs(request).await.expect("a stream").into_inner()
}

/// The index of each change only rises, and is that of the run's newest event.
fn each_change_once(changes: &[WatchRunsResponse]) {
    for pair in changes.windows(2) {
        assert!(pair[0].index < pair[1].index, "told twice, or out of order: {pair:#?}");
    }
    for change in changes {
        let newest = change.run.as_ref().unwrap().events.last().unwrap().index;
        assert_eq!(change.index, newest, "{change:#?}");
    }
}

/// Everything that happened to a run was told: the last that was told of it is as it is now.
async fn nothing_is_missing(clients: &mut Clients, changes: &[WatchRunsResponse]) {
    let mut last = BTreeMap::new();
    for run in changes.iter().filter_map(|change| change.run.as_ref()) {
        last.insert(run.run_id.clone(), run);
    }
    let runs = clients.runs().await;
    assert_eq!(runs.len(), last.len(), "every run was told of");
    for run in runs {
        assert_eq!(last[&run.run_id].events, run.events);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_after_the_last_index_over_an_end_and_a_start_of_the_node() {
    let loses = Rule::on(Endpoint::Restart).hold_effect(Hold::Until("work".into()));
    let (world, node, mut clients) =
        World::up([ContainerSpec::named("web"), ContainerSpec::named("api").rule(loses)]).await;
    clients.entry().await;
    let mut every = watch(&mut clients, "", 0).await;
    let web = clients.opened("local/web").await.run_id;
    let settled = |id: &str| {
        let id = id.to_owned();
        move |run: &Run| {
            run.run_id == id
                && run.status() == RunStatus::Applied
                && run.verification().as_str_name() != "VERIFICATION_PENDING"
        }
    };
    let mut told = read_until(&mut every, settled(&web)).await;
    let api = clients.opened("local/api").await.run_id;
    world.reached("work").await;
    let is_api = |run: &Run| run.run_id == api;
    told.extend(read_until(&mut every, is_api).await);
    let mut one = watch(&mut clients, &api[..8], 0).await;
    let mut told_of_one = read_until(&mut one, is_api).await;
    each_change_once(&told);

    node.terminate();
    for stream in [&mut every, &mut one] {
        let end = loop {
            match tokio::time::timeout(GIVE_UP_AFTER, stream.message()).await.expect("the stream ends") {
                Ok(change) => told.extend(change.filter(|change| change.index > told.last().unwrap().index)),
                Err(status) => break status,
            }
        };
        assert_eq!(end.code(), Code::Unavailable, "{end:?}");
        assert!(end.get_details_retry_info().is_some(), "{end:?}");
    }
    // A restart that is under way has its answer first.
    world.engine.release("work");
    node.ended();

    let (_node, mut clients) = world.start(&world.options).await;
    let mut every = watch(&mut clients, "", told.last().unwrap().index).await;
    told.extend(read_until(&mut every, settled(&api)).await);
    clients.entry().await;
    told.extend(read_until(&mut every, |run| run.status() == RunStatus::Refused).await);
    each_change_once(&told);
    nothing_is_missing(&mut clients, &told).await;

    let mut one = watch(&mut clients, &api, told_of_one.last().unwrap().index).await;
    told_of_one.extend(read_until(&mut one, settled(&api)).await);
    each_change_once(&told_of_one);
    assert!(told_of_one.iter().all(|change| change.run.as_ref().is_some_and(is_api)));
    let now = clients.run(&api).await;
    assert_eq!(told_of_one.last().unwrap().run.as_ref().unwrap().events, now.events);
}
