//! The JSON documents of the Engine API, as dockerd writes them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    clock::rfc3339,
    container::Container,
    script::{HealthStatus, Status},
    spec::{Health, Healthcheck, Identity},
};

const IMAGE_ID: &str = "sha256:5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed5eed";

/// The word for a state.
pub(crate) fn status_word(status: Status) -> &'static str {
    match status {
        Status::Created => "created",
        Status::Running => "running",
        Status::Paused => "paused",
        Status::Restarting => "restarting",
        Status::Removing => "removing",
        Status::Exited => "exited",
        Status::Dead => "dead",
    }
}

/// The word for a health.
pub(crate) fn health_word(status: HealthStatus) -> &'static str {
    match status {
        HealthStatus::Starting => "starting",
        HealthStatus::Healthy => "healthy",
        HealthStatus::Unhealthy => "unhealthy",
    }
}

/// `GET /containers/{id}/json`.
pub(crate) fn inspect(container: &Container, now: Timestamp) -> Value {
    let spec = &container.spec;
    let hostname = spec.hostname.clone().unwrap_or_else(|| container.id[..12].to_owned());
    let mut config = json!({
        "Hostname": hostname,
        "Domainname": "",
        "User": "",
        "AttachStdin": false,
        "AttachStdout": true,
        "AttachStderr": true,
        "Tty": false,
        "OpenStdin": false,
        "StdinOnce": false,
        "Env": [],
        "Cmd": ["serve"],
        "Image": spec.image,
        "Volumes": null,
        "WorkingDir": "/",
        "Entrypoint": null,
        "Labels": spec.labels,
    });
    if let Some(timeout) = spec.stop_timeout_s {
        config["StopTimeout"] = json!(timeout);
    }
    if let Some(check) = healthcheck(container) {
        config["Healthcheck"] = check;
    }
    json!({
        "Id": container.id,
        "Created": rfc3339(container.created),
        "Path": "serve",
        "Args": [],
        "State": state(container, now),
        "Image": IMAGE_ID,
        "ResolvConfPath": format!("/var/lib/docker/containers/{}/resolv.conf", container.id),
        "HostnamePath": format!("/var/lib/docker/containers/{}/hostname", container.id),
        "HostsPath": format!("/var/lib/docker/containers/{}/hosts", container.id),
        "LogPath": format!("/var/lib/docker/containers/{0}/{0}-json.log", container.id),
        "Name": format!("/{}", container.name),
        "RestartCount": container.restart_count,
        "Driver": "overlay2",
        "Platform": "linux",
        "MountLabel": "",
        "ProcessLabel": "",
        "AppArmorProfile": "docker-default",
        "ExecIDs": null,
        "HostConfig": {
            "Binds": null,
            "ContainerIDFile": "",
            "LogConfig": { "Type": "json-file", "Config": {} },
            "NetworkMode": spec.network_mode,
            "PortBindings": {},
            "RestartPolicy": { "Name": spec.restart_policy, "MaximumRetryCount": 0 },
            "AutoRemove": spec.auto_remove,
            "Privileged": false,
        },
        "Mounts": [],
        "Config": config,
        "NetworkSettings": { "SandboxID": "", "SandboxKey": "", "Ports": {}, "Networks": {} },
    })
}

fn state(container: &Container, now: Timestamp) -> Value {
    let status = container.status;
    let mut state = json!({
        "Status": status_word(status),
        // The daemon counts a paused or restarting container as running.
        "Running": container.is_alive(),
        "Paused": status == Status::Paused,
        "Restarting": status == Status::Restarting,
        "OOMKilled": false,
        "Dead": status == Status::Dead,
        "Pid": container.pid,
        "ExitCode": container.exit_code,
        "Error": container.error,
        "StartedAt": container.started_at,
        "FinishedAt": container.finished_at,
    });
    if let Some(health) = container.health {
        let failed = health == HealthStatus::Unhealthy;
        let log = match health {
            HealthStatus::Starting => json!([]),
            _ => json!([{
                "Start": rfc3339(now),
                "End": rfc3339(now),
                "ExitCode": i64::from(failed),
                "Output": if failed { "too many open connections" } else { "ok" },
            }]),
        };
        state["Health"] = json!({
            "Status": health_word(health),
            "FailingStreak": container.failing_streak,
            "Log": log,
        });
    }
    state
}

fn healthcheck(container: &Container) -> Option<Value> {
    let check = match &container.spec.healthcheck {
        Some(check) => check.clone(),
        None if container.spec.health == Health::None => return None,
        None => Healthcheck::default(),
    };
    let nanos = |ms: u64| ms.saturating_mul(1_000_000);
    Some(json!({
        "Test": check.test,
        "Interval": nanos(check.interval_ms),
        "Timeout": nanos(check.timeout_ms),
        "StartPeriod": nanos(check.start_period_ms),
        "Retries": check.retries,
    }))
}

/// One element of `GET /containers/json`.
pub(crate) fn summary(container: &Container) -> Value {
    let spec = &container.spec;
    json!({
        "Id": container.id,
        "Names": [format!("/{}", container.name)],
        "Image": spec.image,
        "ImageID": IMAGE_ID,
        "Command": "serve",
        "Created": container.created.as_second(),
        "Ports": [],
        "Labels": spec.labels,
        "State": status_word(container.status),
        "Status": status_text(container),
        "HostConfig": { "NetworkMode": spec.network_mode },
        "NetworkSettings": { "Networks": {} },
        "Mounts": [],
    })
}

/// The text for people, without the daemon's "2 minutes ago", which no program should read.
fn status_text(container: &Container) -> String {
    let health = match container.health {
        Some(HealthStatus::Starting) => " (health: starting)",
        Some(HealthStatus::Healthy) => " (healthy)",
        Some(HealthStatus::Unhealthy) => " (unhealthy)",
        None => "",
    };
    match container.status {
        Status::Created => "Created".into(),
        Status::Running => format!("Up Less than a second{health}"),
        Status::Paused => "Up Less than a second (Paused)".into(),
        Status::Restarting => format!("Restarting ({}) Less than a second ago", container.exit_code),
        Status::Removing => "Removal In Progress".into(),
        Status::Exited => format!("Exited ({}) Less than a second ago", container.exit_code),
        Status::Dead => "Dead".into(),
    }
}

/// `GET /version`.
pub(crate) fn version(identity: &Identity) -> Value {
    json!({
        "Platform": { "Name": "Docker Engine - Community" },
        "Components": [{
            "Name": "Engine",
            "Version": identity.version,
            "Details": { "ApiVersion": identity.api_version, "MinAPIVersion": identity.min_api_version },
        }],
        "Version": identity.version,
        "ApiVersion": identity.api_version,
        "MinAPIVersion": identity.min_api_version,
        "GitCommit": "0000000",
        "GoVersion": "go1.25.0",
        "Os": "linux",
        "Arch": "amd64",
        "KernelVersion": "6.12.0",
        "BuildTime": "2026-01-01T00:00:00.000000000+00:00",
    })
}

/// `GET /info`.
pub(crate) fn info(identity: &Identity, id: &str, containers: &[Container], now: Timestamp) -> Value {
    let count =
        |wanted: &[Status]| containers.iter().filter(|container| wanted.contains(&container.status)).count();
    let running = count(&[Status::Running, Status::Restarting]);
    let paused = count(&[Status::Paused]);
    json!({
        "ID": id,
        "Containers": containers.len(),
        "ContainersRunning": running,
        "ContainersPaused": paused,
        "ContainersStopped": containers.len() - running - paused,
        "Images": 1,
        "Driver": "overlay2",
        "DriverStatus": [["Backing Filesystem", "extfs"]],
        "MemoryLimit": true,
        "SwapLimit": true,
        "Debug": false,
        "SystemTime": rfc3339(now),
        "LoggingDriver": "json-file",
        "CgroupDriver": "systemd",
        "CgroupVersion": "2",
        "KernelVersion": "6.12.0",
        "OperatingSystem": "Scripted Engine",
        "OSVersion": "1",
        "OSType": "linux",
        "Architecture": "x86_64",
        "NCPU": 2,
        "MemTotal": 4_294_967_296_i64,
        "DockerRootDir": "/var/lib/docker",
        "Name": identity.name,
        "Labels": [],
        "ServerVersion": identity.version,
        "Runtimes": { "runc": { "path": "runc" } },
        "DefaultRuntime": "runc",
        "Swarm": {
            "NodeID": "",
            "NodeAddr": "",
            "LocalNodeState": "inactive",
            "ControlAvailable": false,
            "Error": "",
            "RemoteManagers": null,
        },
        "LiveRestoreEnabled": false,
        "SecurityOptions": ["name=seccomp,profile=builtin"],
        "Warnings": [],
    })
}
