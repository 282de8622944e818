//! The engine: its socket, who it says it is, its clock, and who else is at work there.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::timeout;

use super::super::dev::Setup;
use super::check::{Check, Status};
use super::restarters;
use crate::docker::{Endpoint, Engine, EngineInfo, EngineLimits, ListFilter};
use crate::env::{Clock, SystemClock};
use crate::model::EngineInstant;
use crate::node::server_of;

const SOCKET: &str = "docker-socket";
const ENGINE: &str = "docker-engine";
const ID: &str = "engine-id";
const SERVED: &str = "engine-served";
const SWARM: &str = "swarm";
const CLOCK: &str = "engine-clock";
const RESTARTERS: &str = "other-restarters";

/// How far the engine's clock may be from ours before that is worth a word.
const CLOCKS_APART_MS: u64 = 2_000;

/// Before version 24 dockerd made its id from this key, which every dockerd of a machine shares.
const SHARED_KEY: &str = "/etc/docker/key.json";
const FIRST_WITHOUT_KEY: u32 = 24;

const START_IT: &str = "start Docker (systemctl start docker), or name another socket with --docker";

/// Looks at the engine of `--docker`.
pub(super) async fn look(setup: &Setup) -> Vec<Check> {
    let endpoint = match endpoint(setup) {
        Ok(endpoint) => endpoint,
        Err(error) => {
            return vec![Check::fail(SOCKET, error.to_string(), "correct --docker, or DOCKER_HOST")];
        }
    };
    let limits = EngineLimits::default();
    let reached = match &endpoint {
        Endpoint::Unix(path) => socket(path.as_path(), limits.connect_ms).await,
        Endpoint::Tcp(_) | Endpoint::Tls(..) => {
            Check::ok(SOCKET, format!("none: the engine is at {endpoint}"))
        }
    };
    let mut checks = vec![reached];
    if checks.iter().any(|check| check.status == Status::Fail) {
        return checks;
    }
    let engine = Engine::new(endpoint, limits);
    let before_ms = SystemClock.wall_ms();
    let info = match engine.identify().await {
        Ok(info) => info,
        Err(error) => {
            checks.push(Check::fail(ENGINE, error.to_string(), "relatch restarts nothing until it answers"));
            return checks;
        }
    };
    let after_ms = SystemClock.wall_ms();
    let is_podman = info.is_podman;
    checks.push(kind(&info));
    if is_podman {
        return checks;
    }
    checks.push(id(&info, Path::new(SHARED_KEY).exists(), dockerds()));
    checks.push(served(server_of(&info.engine_id)));
    checks.push(swarm(info.is_swarm_node));
    checks.push(clock(info.system_time, before_ms, after_ms));
    let running = engine.list(&ListFilter { running_only: true, ..ListFilter::default() }).await;
    checks.push(match running {
        Ok(running) => restarters::look(&running),
        Err(error) => Check::warn(
            RESTARTERS,
            error.to_string(),
            "the running containers could not be listed: try again",
        ),
    });
    checks
}

/// As a node would have it.
fn endpoint(setup: &Setup) -> anyhow::Result<Endpoint> {
    Ok(Endpoint::read(setup.docker(), &setup.tcp()?)?)
}

/// Whether anything can be asked over the socket.
async fn socket(path: &Path, connect_ms: u64) -> Check {
    let shown = path.display();
    let found = match path.metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Check::fail(SOCKET, format!("{shown} does not exist"), START_IT);
        }
        Err(error) => {
            let advice = "run as root, or as a user who may enter the socket's folder";
            return Check::fail(SOCKET, format!("looking at {shown}: {error}"), advice);
        }
    };
    if !found.file_type().is_socket() {
        let advice = "name the engine's socket with --docker; a folder is often there because a container was \
                      given the socket before the engine ran";
        return Check::fail(SOCKET, format!("{shown} is not a socket"), advice);
    }
    match timeout(Duration::from_millis(connect_ms), UnixStream::connect(path)).await {
        Ok(Ok(_)) => Check::ok(SOCKET, format!("{shown} takes connections")),
        Ok(Err(error)) if error.kind() == ErrorKind::PermissionDenied => {
            let rights = rights(&found);
            Check::fail(SOCKET, format!("{shown}: permission denied ({rights})"), who_may(&found))
        }
        Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => {
            Check::fail(SOCKET, format!("{shown}: nobody listens there"), START_IT)
        }
        Ok(Err(error)) => Check::fail(SOCKET, format!("connecting to {shown}: {error}"), START_IT),
        Err(_) => Check::fail(
            SOCKET,
            format!("{shown}: not connected within {connect_ms} ms"),
            "the engine takes no connections: look at its log (journalctl -u docker)",
        ),
    }
}

/// As in `root:docker, mode 660`.
fn rights(socket: &Metadata) -> String {
    let (owner, group) = (user_name(socket.uid()), group_name(socket.gid()));
    format!("{owner}:{group}, mode {:o}", socket.mode() & 0o777)
}

/// Connecting needs the right to write.
fn who_may(socket: &Metadata) -> String {
    let (owner, group) = (user_name(socket.uid()), group_name(socket.gid()));
    // Nobody joins the group of root for this.
    if socket.mode() & 0o020 != 0 && socket.gid() != 0 {
        format!(
            "join its group {group} and log in anew (sudo usermod -aG {group} \"$USER\"), or run as {owner}; whoever \
             may use this socket is as mighty as root"
        )
    } else {
        format!("run as {owner}: nobody else may")
    }
}

fn user_name(id: u32) -> String {
    name_in("/etc/passwd", id)
}

fn group_name(id: u32) -> String {
    name_in("/etc/group", id)
}

fn name_in(file: &str, id: u32) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    name_of(&text, id).map_or_else(|| id.to_string(), str::to_owned)
}

/// Lines of passwd(5) and group(5) begin alike: name, password, number.
fn name_of(text: &str, id: u32) -> Option<&str> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, number) = (fields.next()?, fields.next()?, fields.next()?);
        (number.parse() == Ok(id)).then_some(name)
    })
}

fn kind(info: &EngineInfo) -> Check {
    let EngineInfo { server_version, api_version, .. } = info;
    if info.is_podman {
        return Check::fail(
            ENGINE,
            format!("Podman {server_version}, API {api_version}"),
            "use a Docker Engine: Podman has no engine id that stays, so that no restart could be told from \
             another's",
        );
    }
    Check::ok(ENGINE, format!("Docker Engine {server_version}, asked in API {api_version}"))
}

fn id(info: &EngineInfo, has_key: bool, dockerds: usize) -> Check {
    let major = info.server_version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    let is_from_key = has_key && major.is_some_and(|major| major < FIRST_WITHOUT_KEY);
    if is_from_key && dockerds > 1 {
        return Check::warn(
            ID,
            format!(
                "{}; {dockerds} dockerd run on this machine, and may all have it from {SHARED_KEY}",
                info.engine_id
            ),
            "give each dockerd a key of its own (deprecated-key-path in its daemon.json) before relatch serves two \
             of them: engines are told apart by this id",
        );
    }
    Check::ok(ID, info.engine_id.to_string())
}

/// Whether another relatch is there for it already.
fn served(by: Option<String>) -> Check {
    match by {
        None => Check::ok(SERVED, "no relatch is seen to serve it now"),
        Some(by) => Check::fail(
            SERVED,
            format!("a relatch serves it already ({by})"),
            "if that is a relatch of yours, nothing is wrong: give your commands to that one (--addr); else end it \
             first",
        ),
    }
}

/// How many dockerd this process can see.
fn dockerds() -> usize {
    let Ok(processes) = std::fs::read_dir("/proc") else { return 0 };
    let is_dockerd = |process: &std::fs::DirEntry| {
        std::fs::read_to_string(process.path().join("comm")).is_ok_and(|name| name.trim_end() == "dockerd")
    };
    processes.flatten().filter(is_dockerd).count()
}

fn swarm(is_swarm_node: bool) -> Check {
    if is_swarm_node {
        return Check::warn(
            SWARM,
            "the engine is a swarm node",
            "the swarm's own tasks are refused, since the swarm replaces them itself; other containers are not",
        );
    }
    Check::ok(SWARM, "the engine is not part of a swarm")
}

/// The engine answered somewhen between the two times of ours.
fn clock(engine: Option<EngineInstant>, before_ms: u64, after_ms: u64) -> Check {
    let Some(engine) = engine else {
        let advice = "the two clocks could not be compared: see that time is kept by a service on both";
        return Check::warn(CLOCK, "the engine gave no time that can be read", advice);
    };
    let seconds = u64::try_from(engine.unix_s()).unwrap_or(0);
    let engine_ms = seconds.saturating_mul(1000).saturating_add(u64::from(engine.nanos() / 1_000_000));
    let (apart_ms, how) = if engine_ms < before_ms {
        (before_ms - engine_ms, "behind")
    } else {
        (engine_ms.saturating_sub(after_ms), "ahead of")
    };
    if apart_ms <= CLOCKS_APART_MS {
        return Check::ok(CLOCK, "the engine's clock and this one agree");
    }
    let seen =
        format!("the engine's clock is {}.{} s {how} this one", apart_ms / 1000, apart_ms % 1000 / 100);
    Check::warn(
        CLOCK,
        seen,
        "have both set by a time service (chrony, systemd-timesyncd): a clock that is set back makes a restart look \
         as if it had not happened, and it stays uncertain",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docker::ApiVersion;
    use crate::model::EngineId;

    fn info(server_version: &str) -> EngineInfo {
        EngineInfo {
            engine_id: EngineId::new("E").unwrap(),
            name: "host".into(),
            server_version: server_version.into(),
            api_version: ApiVersion::NEWEST,
            is_podman: false,
            is_swarm_node: false,
            system_time: None,
        }
    }

    #[test]
    fn a_shared_key_is_warned_of_where_two_engines_would_have_their_id_from_it() {
        assert_eq!(id(&info("20.10.24+dfsg1"), true, 2).status, Status::Warn);
        assert_eq!(id(&info("20.10.24+dfsg1"), true, 1).status, Status::Ok);
        assert_eq!(id(&info("20.10.24+dfsg1"), false, 2).status, Status::Ok);
        assert_eq!(id(&info("29.3.1"), true, 2).status, Status::Ok);
    }

    #[test]
    fn podman_is_refused_by_name() {
        let check = kind(&EngineInfo { is_podman: true, ..info("5.4.0") });
        assert_eq!(check.status, Status::Fail);
        assert!(check.seen.contains("Podman 5.4.0"), "{check:?}");
    }

    #[test]
    fn a_swarm_node_is_warned_of() {
        assert_eq!((swarm(true).status, swarm(false).status), (Status::Warn, Status::Ok));
    }

    #[test]
    fn only_what_the_round_trip_does_not_explain_is_a_difference_of_clocks() {
        let at = |unix_s: i64, nanos: u32| Some(EngineInstant::new(unix_s, nanos).unwrap());
        let status = |engine| clock(engine, 1_000_000, 1_004_000).status;
        for agrees in [at(998, 0), at(1_000, 0), at(1_003, 0), at(1_006, 0)] {
            assert_eq!(status(agrees), Status::Ok, "{agrees:?}");
        }
        for differs in [at(997, 900_000_000), at(1_006, 100_000_000), at(-5, 0), None] {
            assert_eq!(status(differs), Status::Warn, "{differs:?}");
        }
        assert!(clock(at(990, 0), 1_000_000, 1_004_000).seen.contains("10.0 s behind"));
    }

    #[test]
    fn names_are_read_as_passwd_and_group_have_them() {
        let group = "root:x:0:\ndocker:x:998:me,you\nbroken\nlast:x:1000:\n";
        assert_eq!(name_of(group, 998), Some("docker"));
        assert_eq!(name_of(group, 1), None);
    }
}
