//! Health and reflection tell of every service.

use std::collections::BTreeSet;

use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::world::{World, wait};

const SERVICES: [&str; 3] = ["relatch.v1.Recovery", "relatch.v1.Holds", "relatch.v1.Limits"];

async fn reflect(channel: &Channel, ask: MessageRequest) -> MessageResponse {
    let ask = ServerReflectionRequest { host: String::new(), message_request: Some(ask) };
    let mut client = ServerReflectionClient::new(channel.clone());
    let mut answers = client.server_reflection_info(tokio_stream::once(ask)).await.unwrap().into_inner();
    answers.message().await.unwrap().unwrap().message_response.expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn health_and_reflection_tell_of_every_service() {
    let (_world, _node, clients) = World::up([]).await;
    let mut health = HealthClient::new(clients.channel.clone());
    for service in SERVICES.into_iter().chain([""]) {
        wait(&format!("{service:?} to serve"), async || {
            let asked = HealthCheckRequest { service: service.to_owned() };
            match health.check(asked).await.map(|answer| answer.into_inner().status()) {
                Ok(ServingStatus::Serving) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }
    let MessageResponse::ListServicesResponse(listed) =
        reflect(&clients.channel, MessageRequest::ListServices(String::new())).await
    else {
        panic!("no list")
    };
    let listed: BTreeSet<String> = listed.service.into_iter().map(|service| service.name).collect();
    let ours: Vec<&String> = listed.iter().filter(|name| name.starts_with("relatch.")).collect();
    assert_eq!(ours.iter().map(|name| name.as_str()).collect::<BTreeSet<_>>(), BTreeSet::from(SERVICES));
    assert!(listed.contains("grpc.health.v1.Health"), "{listed:?}");
    for service in SERVICES {
        let found = reflect(&clients.channel, MessageRequest::FileContainingSymbol(service.to_owned())).await;
        assert!(matches!(found, MessageResponse::FileDescriptorResponse(_)), "{service}: {found:?}");
    }
}
