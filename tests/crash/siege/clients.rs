//! The clients of a node that may die at any moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use relatch::rpc::v1;
use relatch::rpc::v1::limits_client::LimitsClient;
use relatch::rpc::v1::recovery_client::RecoveryClient;
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::book::{Book, request};
use crate::support::node::Node;

/// How many ask at a time.
const CLIENTS: usize = 8;

/// Asks until so many answers have come, and then kills the node, if nothing else did before. Gives what memory it
/// used at the end, if it could be asked.
pub async fn load(
    node: Node,
    book: &Arc<Book>,
    answers: usize,
    limits: Option<&v1::LimitSet>,
) -> Option<u64> {
    let mut recovery = connect(&node).await?;
    if let Some(limits) = limits {
        raise_limits(&node, limits).await;
    }
    resolve_what_is_unresolved(&mut recovery).await?;
    // What had no answer when the node died has it now, or is asked for the first time.
    for (id, entry) in book.all().into_iter().filter(|(_, entry)| entry.has_id && entry.answer.is_none()) {
        ask(&mut recovery, book, &id, request(Some(&id), entry.container)).await.ok()?;
    }
    let count = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let (book, count, mut recovery) = (Arc::clone(book), Arc::clone(&count), recovery.clone());
            tokio::spawn(async move {
                loop {
                    let (id, request) = book.new_request();
                    if ask(&mut recovery, &book, &id, request).await.is_err() {
                        return;
                    }
                    count.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let (mut node, mut memory_kib) = (Some(node), None);
    for client in &clients {
        while !client.is_finished() {
            if count.load(Ordering::SeqCst) >= answers
                && let Some(node) = node.take()
            {
                memory_kib = node.memory_kib();
                node.kill_if_it_runs();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    for client in clients {
        client.await.expect("a client saw an answer that had changed");
    }
    if let Some(node) = node {
        node.killed_by_failpoint();
    }
    memory_kib
}

/// Asks until there is an answer, or nobody to give it.
pub async fn ask(
    recovery: &mut RecoveryClient<Channel>,
    book: &Book,
    name: &str,
    request: v1::RequestRecoveryRequest,
) -> Result<(), Status> {
    loop {
        match recovery.request_recovery(request.clone()).await {
            Ok(answer) => {
                book.told(name, &answer.into_inner());
                return Ok(());
            }
            Err(status) if is_temporary(&status) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(status) => return Err(status),
        }
    }
}

/// As an operator does, so that the target is free again. None if the node died.
async fn resolve_what_is_unresolved(recovery: &mut RecoveryClient<Channel>) -> Option<()> {
    for run in list(recovery).await? {
        if run.status() == v1::RunStatus::Unresolved {
            let request = v1::ResolveRunRequest {
                run_id: run.run_id,
                operator: "siege".to_owned(),
                reason: "looked at by hand".to_owned(),
                accept_late_post: true,
                ..Default::default()
            };
            if let Err(status) = recovery.resolve_run(request).await {
                // It may have been settled meanwhile.
                (status.code() == Code::FailedPrecondition).then_some(())?;
            }
        }
    }
    Some(())
}

/// The node is there, and cannot say yet. A connection that is gone has no such details.
fn is_temporary(status: &Status) -> bool {
    status.code() == Code::Unavailable && !status.details().is_empty()
}

/// A client, once the node admits requests. None if it died before.
pub async fn connect(node: &Node) -> Option<RecoveryClient<Channel>> {
    let address = tonic::transport::Endpoint::from_shared(node.addr().to_owned()).expect("an address");
    let mut recovery = RecoveryClient::new(address.connect().await.ok()?);
    loop {
        let explain = v1::ExplainRequest { target: "local/c000".to_owned(), grace: None };
        match recovery.explain(explain).await {
            Ok(_) => return Some(recovery),
            Err(status) if is_temporary(&status) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(_) => return None,
        }
    }
}

/// So that what is asked is nearly always decided anew.
async fn raise_limits(node: &Node, other: &v1::LimitSet) {
    let address = tonic::transport::Endpoint::from_shared(node.addr().to_owned()).expect("an address");
    let Ok(channel) = address.connect().await else { return };
    let limits = v1::LimitSet {
        attempts: Some(1_000_000),
        backoff_first_ms: Some(0),
        backoff_longest_ms: Some(0),
        in_flight_cluster: Some(1_000),
        in_flight_host: Some(1_000),
        unresolved_host: Some(1_000),
        quarantine_ms: Some(1),
        refusals_per_caller: Some(1_000_000),
        observe_longest_ms: Some(2_000),
        ..*other
    };
    // A node that died is asked again by nobody: the limits then are those of every day, and most is refused.
    let set = LimitsClient::new(channel).set_limits(v1::SetLimitsRequest { limits: Some(limits) }).await;
    println!("limits: {:?}", set.map(|_| "raised").map_err(|status| status.to_string()));
}

/// Every run, once no interlock is left of which nobody has said anything.
pub async fn settled(recovery: &mut RecoveryClient<Channel>) -> Vec<v1::Run> {
    let begun = Instant::now();
    loop {
        let runs = list(recovery).await.expect("it serves");
        let open = runs.iter().filter(|run| run.status() == v1::RunStatus::Interlocked).count();
        if open == 0 {
            return runs;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{open} runs are interlocked still");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// None if the node died.
async fn list(recovery: &mut RecoveryClient<Channel>) -> Option<Vec<v1::Run>> {
    let mut found = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = v1::ListRunsRequest { page_size: 500, page_token, ..Default::default() };
        let page = recovery.list_runs(request).await.ok()?.into_inner();
        found.extend(page.runs);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Some(found);
        }
    }
}
