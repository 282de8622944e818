//! The tests' own dockerd does what the other engine tests take for granted.

use std::time::{Duration, Instant};

use crate::support::dockerd::{Dockerd, Healthcheck, RunOptions, unique_name};

#[test]
fn a_polite_container_restarts_before_its_grace_is_over() {
    let docker = Dockerd::shared();
    let name = unique_name("polite");
    let id = docker.run_container(&name, RunOptions::default());
    let before = docker.inspect(&name);
    docker.docker(&["restart", "--time", "60", &name]);
    let after = docker.inspect(&name);
    assert_eq!(after["Id"], id.as_str());
    assert_ne!(after["State"]["StartedAt"], before["State"]["StartedAt"]);
    // Of a stop within the grace, the engine tells only in its events: no SIGKILL.
    let kills = kills_of(docker, &id);
    assert_eq!(kills, ["15"], "a polite container ends on the first signal");
    docker.rm(&name);
    assert!(docker.try_inspect(&name).is_none());
}

#[test]
fn a_container_that_ignores_sigterm_uses_up_its_grace() {
    let docker = Dockerd::shared();
    let name = unique_name("deaf");
    let id = docker.run_container(&name, RunOptions { ignores_sigterm: true, ..RunOptions::default() });
    let begun = Instant::now();
    docker.docker(&["restart", "--time", "2", &name]);
    assert!(begun.elapsed() >= Duration::from_secs(2), "it was over after {:?}", begun.elapsed());
    assert_eq!(kills_of(docker, &id), ["15", "9"]);
    docker.rm(&name);
}

#[test]
fn options_reach_the_engine() {
    let docker = Dockerd::shared();
    let name = unique_name("options");
    docker.run_container(
        &name,
        RunOptions {
            labels: vec![("relatch.grace".to_owned(), "7s".to_owned())],
            stop_timeout_s: Some(7),
            restart_policy: Some("always".to_owned()),
            healthcheck: Some(Healthcheck {
                command: "test ! -e /tmp/ill".to_owned(),
                interval: Duration::from_millis(200),
                timeout: Duration::from_secs(10),
                retries: 1,
                start_period: Duration::ZERO,
            }),
            ..RunOptions::default()
        },
    );
    let inspected = docker.wait_until(&name, "healthy", |c| c["State"]["Health"]["Status"] == "healthy");
    assert_eq!(inspected["Config"]["Labels"]["relatch.grace"], "7s");
    assert_eq!(inspected["Config"]["StopTimeout"], 7);
    assert_eq!(inspected["HostConfig"]["RestartPolicy"]["Name"], "always");
    docker.docker(&["exec", &name, "touch", "/tmp/ill"]);
    docker.wait_until(&name, "unhealthy", |c| c["State"]["Health"]["Status"] == "unhealthy");

    docker.pause(&name);
    assert_eq!(docker.inspect(&name)["State"]["Paused"], true);
    docker.unpause(&name);
    let renamed = unique_name("renamed");
    docker.rename(&name, &renamed);
    assert!(docker.try_inspect(&name).is_none());
    docker.rm(&renamed);
}

#[test]
fn an_engine_of_ones_own_stops_starts_and_keeps_its_identity() {
    let docker = Dockerd::own();
    let engine_id = docker.engine_id();
    assert_ne!(engine_id, Dockerd::shared().engine_id(), "two engines, two identities");
    let name = unique_name("web");
    let id = docker.run_container(&name, RunOptions::default());
    docker.stop();
    assert!(std::os::unix::net::UnixStream::connect(docker.socket()).is_err(), "nobody answers after a stop");
    docker.start();
    assert_eq!(docker.engine_id(), engine_id);
    let inspected = docker.inspect(&id);
    assert_eq!(inspected["State"]["Running"], false, "stopping the engine stops its containers");
    docker.docker(&["start", &name]);
    docker.wait_until_ready(&name);

    docker.kill();
    docker.start();
    assert_eq!(docker.inspect(&id)["Id"], id.as_str(), "a killed engine comes back with its containers");

    let folder = docker.folder().to_owned();
    drop(docker);
    assert!(!folder.exists(), "nothing is left in {}", folder.display());
    let mounts = std::fs::read_to_string("/proc/mounts").expect("reading /proc/mounts");
    let folder = format!("{}/", folder.display());
    assert!(!mounts.contains(&folder), "no mount is left:\n{mounts}");
}

/// The signals that the engine sent a container so far, from its own events.
fn kills_of(docker: &Dockerd, id: &str) -> Vec<String> {
    let filter = format!("container={id}");
    let template = "{{.Actor.Attributes.signal}}";
    let now = docker.docker(&["info", "--format", "{{.SystemTime}}"]);
    let text = docker.docker(&[
        "events",
        "--since",
        "1",
        "--until",
        &now,
        "--filter",
        &filter,
        "--filter",
        "event=kill",
        "--format",
        template,
    ]);
    text.lines().map(str::to_owned).collect()
}
