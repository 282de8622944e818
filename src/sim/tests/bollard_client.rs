//! The client library that relatch uses takes the engine for a real one.

use std::collections::HashMap;

use bollard::{
    API_DEFAULT_VERSION, Docker,
    models::{ContainerStateStatusEnum, HealthStatusEnum},
    query_parameters::{
        EventsOptionsBuilder, InspectContainerOptions, ListContainersOptionsBuilder,
        RenameContainerOptionsBuilder, RestartContainerOptionsBuilder, StartContainerOptions,
        StopContainerOptions,
    },
};
use tokio_stream::StreamExt;

use super::rig::Rig;
use crate::sim::{ContainerSpec, Health};

#[tokio::test]
async fn bollard_lists_inspects_restarts_and_listens() {
    let spec = ContainerSpec::compose("shop", "web", 1).health(Health::Saturated);
    let rig = Rig::with(ContainerSpec { name: "web".into(), stop_timeout_s: Some(4), ..spec }).await;
    let unix =
        Docker::connect_with_unix(&rig.socket.to_string_lossy(), 10, API_DEFAULT_VERSION).expect("a client");
    let tcp =
        Docker::connect_with_http(&format!("http://{}", rig.tcp), 10, API_DEFAULT_VERSION).expect("a client");
    for docker in [unix, tcp] {
        assert_eq!(docker.ping().await.expect("a ping"), "OK");
        assert_eq!(docker.info().await.expect("info").id, Some(rig.engine.engine_id()));
        assert_eq!(docker.version().await.expect("a version").api_version.as_deref(), Some("1.53"));

        let filters = HashMap::from([("label", vec!["com.docker.compose.project=shop"])]);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let listed = docker.list_containers(Some(options)).await.expect("a list");
        assert_eq!(listed.len(), 1, "{listed:?}");
        assert_eq!(listed[0].names, Some(vec!["/web".to_owned()]));

        let found =
            docker.inspect_container("web", None::<InspectContainerOptions>).await.expect("an inspect");
        let config = found.config.expect("a configuration");
        assert_eq!(config.stop_timeout, Some(4));
        assert!(config.healthcheck.is_some());
        let state = found.state.expect("a state");
        assert_eq!(state.status, Some(ContainerStateStatusEnum::RUNNING));
        let before = state.started_at.expect("a time");

        let mut events = docker.events(Some(EventsOptionsBuilder::default().since("1700000000").build()));
        let first = events.next().await.expect("an event").expect("a readable event");
        assert_eq!((first.action.as_deref(), first.time.is_some()), (Some("create"), true));

        let grace = RestartContainerOptionsBuilder::default().t(3).build();
        docker.restart_container(&rig.id(), Some(grace)).await.expect("a restart");
        let found =
            docker.inspect_container(&rig.id(), None::<InspectContainerOptions>).await.expect("an inspect");
        let state = found.state.expect("a state");
        assert!(state.started_at.expect("a time") > before);
        assert_eq!(state.health.and_then(|health| health.status), Some(HealthStatusEnum::HEALTHY));

        docker.stop_container("web", None::<StopContainerOptions>).await.expect("a stop");
        docker.start_container("web", None::<StartContainerOptions>).await.expect("a start");
        let name = RenameContainerOptionsBuilder::default().name("other").build();
        docker.rename_container("web", name).await.expect("a rename");
        let name = RenameContainerOptionsBuilder::default().name("web").build();
        docker.rename_container("other", name).await.expect("a rename");
        let missing = docker.inspect_container("none", None::<InspectContainerOptions>).await;
        let error = missing.expect_err("no such container");
        assert!(
            matches!(&error, bollard::errors::Error::DockerResponseServerError { status_code: 404, message }
                if message == "No such container: none"),
            "{error:?}"
        );
    }
    assert_eq!(rig.posts().len(), 2);
}
