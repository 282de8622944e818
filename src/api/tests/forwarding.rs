//! What a node that does not lead does with a call.

use tokio::sync::watch;
use tokio::time::timeout;
use tonic::Code;
use tonic_types::StatusExt;

use super::book::{SOON, Served, TERM};
use crate::api::WayToLeader;
use crate::consensus::Leader;
use crate::model::{ClusterId, NodeId, ProcessNonce};
use crate::rpc::v1::holds_client::HoldsClient;
use crate::rpc::v1::recovery_client::RecoveryClient;
use crate::rpc::{Caller, Peers, v1};

/// This node, which is node 1.
fn peers() -> Peers {
    let (cluster, process) = ("c".repeat(32), "9".repeat(32));
    Peers::new(Caller {
        cluster: ClusterId::new(cluster).unwrap(),
        node: NodeId(1),
        process: ProcessNonce::new(process).unwrap(),
    })
}

fn leader(node: u64, address: &str) -> Option<Leader> {
    Some(Leader { node: NodeId(node), term: TERM, address: address.to_owned() })
}

fn way(to: Option<Leader>) -> (watch::Sender<Option<Leader>>, Option<WayToLeader>) {
    let (tell, leader) = watch::channel(to);
    (tell, Some(WayToLeader::new(peers(), leader)))
}

fn get(id: &str) -> v1::GetRunRequest {
    v1::GetRunRequest { run_id: id.to_owned() }
}

#[tokio::test]
async fn what_only_the_leader_can_answer_is_answered_by_it_through_any_node() {
    let leads = Served::start().await;
    let run = leads.book.open(1);
    let (_tell, way) = way(leader(2, &leads.address.to_string()));
    let follows = Served::start_with(way).await;
    let mut client = RecoveryClient::new(follows.channel.clone());
    let found = client.get_run(get(run.id.as_str())).await.unwrap().into_inner().run.unwrap();
    assert_eq!(found.run_id, run.id.as_str());

    let asked = v1::RequestRecoveryRequest {
        target: "local/c1".into(),
        reason: "stuck".into(),
        request_id: "r-1".into(),
        ..v1::RequestRecoveryRequest::default()
    };
    let answer = client.request_recovery(asked.clone()).await.unwrap().into_inner();
    assert_eq!(answer.decision(), v1::Decision::Attached);
    // And the retry of it, sent to another node, is the same request.
    let again =
        RecoveryClient::new(leads.channel.clone()).request_recovery(asked).await.unwrap().into_inner();
    assert!(again.repeated_answer);
    assert_eq!(again.run.unwrap().run_id, answer.run.unwrap().run_id);

    let missing = client.get_run(get(&"f".repeat(32))).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    assert_eq!(
        missing.get_details_resource_info().unwrap().resource_name,
        "f".repeat(32),
        "details come along"
    );
    let holds = HoldsClient::new(follows.channel.clone()).list_holds(v1::ListHoldsRequest::default()).await;
    assert!(holds.unwrap().into_inner().holds.is_empty());
}

#[tokio::test]
async fn changes_are_told_by_the_node_itself() {
    let leads = Served::start().await;
    leads.book.open(1);
    let (_tell, way) = way(leader(2, &leads.address.to_string()));
    let follows = Served::start_with(way).await;
    let own = follows.book.open(2);
    let mut client = RecoveryClient::new(follows.channel.clone());
    let mut changes = client.watch_runs(v1::WatchRunsRequest::default()).await.unwrap().into_inner();
    let first = timeout(SOON, changes.message()).await.unwrap().unwrap().unwrap();
    assert_eq!(first.run.unwrap().run_id, own.id.as_str());
}

#[tokio::test]
async fn a_leader_that_cannot_be_reached_or_is_this_node_is_not_passed_on_to() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let (tell, way) = way(leader(2, &gone));
    let served = Served::start_with(way).await;
    let run = served.book.open(1);
    let mut client = RecoveryClient::new(served.channel.clone());
    let status = client.get_run(get(run.id.as_str())).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(status.message().contains("node 2, which leads, cannot be reached"), "{status}");
    assert!(status.get_details_retry_info().is_some());
    for own in [leader(1, &gone), None] {
        tell.send_replace(own);
        let found = client.get_run(get(run.id.as_str())).await.unwrap().into_inner().run.unwrap();
        assert_eq!(found.run_id, run.id.as_str());
    }
}

/// A leader that is gone after it was asked may have decided.
#[tokio::test]
async fn an_answer_that_is_lost_is_unknown_and_never_a_no() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut preface = [0; 24];
        socket.read_exact(&mut preface).await.unwrap();
        // An empty SETTINGS frame: the connection stands.
        socket.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await.unwrap();
        let mut asked = Vec::new();
        let mut chunk = [0; 4096];
        while !asked.windows(11).any(|text| text == b"a-saturated") {
            let read = socket.read(&mut chunk).await.unwrap();
            assert!(read > 0, "the request comes");
            asked.extend_from_slice(&chunk[..read]);
        }
    });
    let (_tell, way) = way(leader(2, &address));
    let served = Served::start_with(way).await;
    let asked = v1::RequestRecoveryRequest {
        target: "local/c1".into(),
        reason: "a-saturated queue".into(),
        request_id: "r-1".into(),
        ..v1::RequestRecoveryRequest::default()
    };
    let status = RecoveryClient::new(served.channel.clone()).request_recovery(asked).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    assert_eq!(status.get_details_error_info().unwrap().reason, "DECISION_UNKNOWN");
    assert!(status.message().contains("it may have been decided"), "{status}");
    server.await.unwrap();
}
