//! The start of a container that was left down, as a dispatcher sends it.

use std::sync::Arc;
use std::time::Duration;

use relatch::docker::{Endpoint, Engine, EngineLimits, Permit, Sealed, Written};
use relatch::model::{ContainerId, EngineProof, NotWritten, Reply, Wire};

use crate::support::dockerd::{Dockerd, RunOptions, unique_name};

struct Yes;

impl Permit for Yes {
    fn admit(&self, write: &mut dyn FnMut()) -> Result<(), NotWritten> {
        write();
        Ok(())
    }
}

#[test]
fn a_container_that_was_left_down_is_started_and_one_that_runs_is_left_alone() {
    let docker = Dockerd::shared();
    let name = unique_name("down");
    let id = ContainerId::new(docker.run_container(&name, RunOptions::default())).expect("a full id");
    docker.docker(&["kill", &name]);
    docker.wait_until(&name, "exited", |c| c["State"]["Status"] == "exited");
    let before = docker.started_at(&name);

    let engine = Engine::new(Endpoint::parse(&docker.endpoint()).expect("a socket"), EngineLimits::default());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let start = || {
        runtime.block_on(async {
            let connection = engine.connect().await.expect("a connection");
            connection.start(&id, Duration::from_secs(60), Arc::new(Yes)).await
        })
    };
    let status = |sealed: Sealed| match sealed {
        Sealed::Written(Written {
            wire: Wire::Unix,
            reply: Reply::Complete { status, proof: EngineProof::Proven, .. },
            ..
        }) => status,
        other => panic!("no whole reply of an engine: {other:?}\n{}", docker.log_tail()),
    };
    assert_eq!(status(start()), 204);
    let started = docker.started_at(&name);
    assert_ne!(started, before, "it was started");
    assert_eq!(status(start()), 304, "it runs already");
    assert_eq!(docker.started_at(&name), started, "and was left alone");
    docker.rm(&name);
}
