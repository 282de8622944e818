//! The services over a real connection.

use tokio::time::timeout;
use tonic::Code;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_types::StatusExt;

use super::book::{SOON, Served};
use crate::coordinator::RequestError;
use crate::rpc::v1;
use crate::rpc::v1::recovery_client::RecoveryClient;

fn request(target: &str, id: &str) -> v1::RequestRecoveryRequest {
    v1::RequestRecoveryRequest {
        target: target.into(),
        reason: "stuck".into(),
        request_id: id.into(),
        ..v1::RequestRecoveryRequest::default()
    }
}

#[tokio::test]
async fn a_request_is_answered_and_answered_again() {
    let served = Served::start().await;
    let mut client = RecoveryClient::new(served.channel.clone());
    let first = client.request_recovery(request("local/c1", "r-1")).await.unwrap().into_inner();
    assert_eq!(first.decision(), v1::Decision::Opened);
    assert!(!first.repeated_answer);
    let run = first.run.unwrap();
    assert_eq!((run.request_id.as_str(), run.target.as_str()), ("r-1", "local/c1"));

    let again = client.request_recovery(request("local/c1", "r-1")).await.unwrap().into_inner();
    assert!(again.repeated_answer);
    assert_eq!(again.run.unwrap().run_id, run.run_id);

    let attached = client.request_recovery(request("local/c1", "r-2")).await.unwrap().into_inner();
    assert_eq!(attached.decision(), v1::Decision::Attached);
    assert_eq!(attached.run.unwrap().run_id, run.run_id);

    let other = client.request_recovery(request("local/c2", "r-1")).await.unwrap_err();
    assert_eq!(other.code(), Code::InvalidArgument);
    assert_eq!(other.get_details_error_info().unwrap().reason, "REQUEST_ID_REUSED");
}

#[tokio::test]
async fn a_run_is_found_by_its_id_or_said_to_be_missing() {
    let served = Served::start().await;
    let mut client = RecoveryClient::new(served.channel.clone());
    let run = served.book.open(1);
    let found = client.get_run(v1::GetRunRequest { run_id: run.id.to_string() }).await.unwrap();
    assert_eq!(found.into_inner().run.unwrap().run_id, run.id.as_str());

    let missing = client.get_run(v1::GetRunRequest { run_id: "f".repeat(32) }).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    assert_eq!(missing.get_details_resource_info().unwrap().resource_type, "relatch.v1.Run");
    let watched = v1::WatchRunsRequest { run_id: "f".repeat(32), after_index: 0 };
    assert_eq!(client.watch_runs(watched).await.unwrap_err().code(), Code::NotFound);

    let malformed = client.get_run(v1::GetRunRequest { run_id: "x".into() }).await.unwrap_err();
    assert_eq!(malformed.code(), Code::InvalidArgument);
    assert_eq!(malformed.get_details_bad_request().unwrap().field_violations[0].field, "run_id");
}

/// The ids of a book begin alike.
#[tokio::test]
async fn the_beginning_of_several_ids_is_refused_and_more_of_one_is_asked_for() {
    let served = Served::start().await;
    let mut client = RecoveryClient::new(served.channel.clone());
    let (one, other) = (served.book.open(1).id.to_string(), served.book.open(2).id.to_string());
    assert_eq!(one[..31], other[..31]);
    for length in [8, 31] {
        let asked = v1::GetRunRequest { run_id: one[..length].into() };
        let status = client.get_run(asked).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        let violation = &status.get_details_bad_request().unwrap().field_violations[0];
        assert_eq!(violation.field, "run_id");
        assert!(
            violation.description.contains("several runs") && violation.description.contains("more of it")
        );
    }
    let found = client.get_run(v1::GetRunRequest { run_id: one.clone() }).await.unwrap();
    assert_eq!(found.into_inner().run.unwrap().run_id, one);
}

#[tokio::test]
async fn runs_are_listed_newest_first_page_by_page() {
    let served = Served::start().await;
    let mut client = RecoveryClient::new(served.channel.clone());
    let mut ids: Vec<String> = (0..5).map(|n| served.book.refuse(&format!("gone{n}")).to_string()).collect();
    ids.reverse();

    let mut seen = Vec::new();
    let mut pages = 0;
    let mut page_token = String::new();
    loop {
        let message = v1::ListRunsRequest { page_size: 2, page_token, ..v1::ListRunsRequest::default() };
        let page = client.list_runs(message).await.unwrap().into_inner();
        pages += 1;
        seen.extend(page.runs.into_iter().map(|run| run.run_id));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!((seen, pages), (ids, 3));
}

#[tokio::test]
async fn runs_are_listed_by_target_and_status() {
    let served = Served::start().await;
    let mut client = RecoveryClient::new(served.channel.clone());
    served.book.refuse("gone");
    let run = served.book.open(1);
    let mut list = async |target: &str, statuses: Vec<v1::RunStatus>| {
        let message = v1::ListRunsRequest {
            target: target.into(),
            statuses: statuses.into_iter().map(Into::into).collect(),
            ..v1::ListRunsRequest::default()
        };
        let page = client.list_runs(message).await.unwrap().into_inner();
        page.runs.into_iter().map(|run| run.target).collect::<Vec<_>>()
    };
    assert_eq!(list("", vec![]).await, ["local/c1", "local/gone"]);
    assert_eq!(list("local/c1", vec![]).await, ["local/c1"]);
    assert_eq!(list("", vec![v1::RunStatus::Refused]).await, ["local/gone"]);
    assert_eq!(list("local/c1", vec![v1::RunStatus::Refused]).await, [""; 0]);
    served.book.lose_reply(&run);
    assert_eq!(list("", vec![v1::RunStatus::Unresolved, v1::RunStatus::Applied]).await, ["local/c1"]);
}

#[tokio::test]
async fn without_a_leader_every_call_says_when_to_try_again() {
    let served = Served::start().await;
    let mut client = RecoveryClient::new(served.channel.clone());
    served.book.trouble(RequestError::Unavailable { detail: "no leader".into() });
    let id = || "a".repeat(32);
    for status in [
        client.request_recovery(request("local/c1", "r-1")).await.unwrap_err(),
        client.get_run(v1::GetRunRequest { run_id: id() }).await.unwrap_err(),
        client.list_runs(v1::ListRunsRequest::default()).await.unwrap_err(),
        client.watch_runs(v1::WatchRunsRequest::default()).await.unwrap_err(),
    ] {
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert!(status.get_details_retry_info().is_some(), "{status:?}");
    }
}

#[tokio::test]
async fn a_request_that_is_far_too_long_is_refused_before_it_is_read() {
    let served = Served::start().await;
    let mut client = RecoveryClient::new(served.channel.clone());
    let mut long = request("local/c1", "r-1");
    long.reason = "x".repeat(1 << 20);
    let status = client.request_recovery(long).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
}

#[tokio::test]
async fn health_follows_admission_and_ends_with_the_server() {
    let mut served = Served::start().await;
    let mut client = HealthClient::new(served.channel.clone());
    let asked = |service: &str| HealthCheckRequest { service: service.into() };
    for service in ["", "relatch.v1.Recovery"] {
        let status = client.check(asked(service)).await.unwrap().into_inner().status();
        assert_eq!(status, ServingStatus::Serving, "{service:?}");
    }
    let mut watched = client.watch(asked("")).await.unwrap().into_inner();
    let mut next = async || {
        let message = timeout(SOON, watched.message()).await.expect("health is told in time").unwrap();
        message.as_ref().map(HealthCheckResponse::status)
    };
    assert_eq!(next().await, Some(ServingStatus::Serving));
    served.book.admits.send_replace(false);
    assert_eq!(next().await, Some(ServingStatus::NotServing));
    served.book.admits.send_replace(true);
    assert_eq!(next().await, Some(ServingStatus::Serving));
    served.stop();
    assert_eq!(next().await, Some(ServingStatus::NotServing));
    assert_eq!(next().await, None);
    drop(client);
    served.ended().await;
}

#[tokio::test]
async fn reflection_tells_of_the_services() {
    let served = Served::start().await;
    let mut client = ServerReflectionClient::new(served.channel.clone());
    let ask = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut answers = client.server_reflection_info(tokio_stream::once(ask)).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response;
    let Some(MessageResponse::ListServicesResponse(list)) = answer else { panic!("{answer:?}") };
    let names: Vec<String> = list.service.into_iter().map(|service| service.name).collect();
    for name in ["relatch.v1.Recovery", "grpc.health.v1.Health"] {
        assert!(names.iter().any(|known| known == name), "{name} is not among {names:?}");
    }
}
