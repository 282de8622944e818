//! `relatch demo --docker`: the story over a real engine, by the real binary.

use std::process::Output;

use crate::support::dockerd::{Dockerd, RunOptions, unique_name};
use crate::support::node::relatch;

fn demo(docker: &Dockerd, container: &str) -> Output {
    relatch()
        .args(["demo", "--docker", &docker.endpoint(), "--container", container])
        .output()
        .expect("running relatch")
}

#[test]
fn the_demo_over_a_real_engine_restarts_the_container_once_and_says_so() {
    let docker = Dockerd::shared();
    let name = unique_name("demo");
    let id = docker.run_container(&name, RunOptions { stop_timeout_s: Some(4), ..RunOptions::default() });
    let before = docker.started_at(&name);
    let output = demo(docker, &name);
    let (told, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{told}\n{said}");
    let after = docker.started_at(&name);
    assert_ne!(after, before, "the container was started again:\n{told}");
    for expected in [
        "REAL",
        "APPLIED",
        "kill -9",
        &docker.endpoint(),
        &name,
        &id,
        &format!("StartedAt was {before}, is {after}"),
        &format!("passes on, whole: POST /containers/{id}/restart?t=4 HTTP/1.1"),
        "answers HTTP/1.1 204 No Content, which nobody hears",
        "its record of restart requests has 1: POST ",
    ] {
        assert!(told.contains(expected), "{expected:?} is not in:\n{told}");
    }
    assert!(!told.contains("BROKEN") && !told.contains("SIMULATED"), "{told}");
    assert_eq!(docker.inspect(&name)["State"]["Running"], true);
    docker.rm(&name);
}

#[test]
fn a_demo_of_a_container_that_is_not_there_or_not_running_does_not_begin() {
    let docker = Dockerd::shared();
    let stopped = unique_name("demo");
    let id = docker.run_container(&stopped, RunOptions::default());
    let before = docker.started_at(&stopped);
    let begin_of_id = &id[..5];
    let refused = |container: &str, expected: &str| {
        let output = demo(docker, container);
        let (told, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{told}\n{said}");
        assert!(said.contains(expected) && told.is_empty(), "{expected:?} was expected:\n{told}\n{said}");
    };
    refused("no-such-container", "there is no container \"no-such-container\"");
    refused(begin_of_id, "there is no container");
    docker.docker(&["stop", &stopped]);
    refused(&stopped, "is exited");
    assert_eq!(docker.started_at(&stopped), before, "nothing was started");
    docker.rm(&stopped);
}

#[test]
fn each_of_the_two_options_needs_the_other() {
    for args in [["demo", "--docker"].as_slice(), &["demo", "--container", "web"]] {
        let output = relatch().args(args).output().expect("running relatch");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
    }
}
