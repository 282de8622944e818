//! `relatch doctor`: what it sees, and that it changes nothing.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use relatch::sim::{Action, ContainerSpec, Edit, Endpoint, Engine, ListenMode, Reply, Rule};
use serde_json::{Value, json};

use crate::mount::Mount;
use crate::process::{finish, run};
use crate::support::dockerd::{Dockerd, IMAGE, RunOptions, unique_name};
use crate::support::node::{Node, NodeOptions, relatch, wait_for};
use crate::{World, content};

const ALL: &[&str] = &[
    "docker-socket",
    "docker-engine",
    "engine-id",
    "engine-served",
    "swarm",
    "engine-clock",
    "other-restarters",
    "data-directory",
    "container-layer",
    "file-system",
    "free-space",
    "disk-sync",
    "listen",
];

/// What the doctor said.
struct Said {
    exit: i32,
    checks: Vec<Value>,
}

impl Said {
    fn check(&self, name: &str) -> &Value {
        let found = self.checks.iter().find(|check| check["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {:#?}", self.checks))
    }

    /// Asserts what a check came to, and that it says this in what was seen or what to do.
    fn expect(&self, name: &str, status: &str, texts: &[&str]) {
        let check = self.check(name);
        assert_eq!(check["status"], status, "{check:#}");
        assert_eq!(
            check["advice"] == "",
            status == "ok",
            "a next step for what is not as it should be: {check:#}"
        );
        let said = format!("{} {}", check["seen"], check["advice"]);
        for text in texts {
            assert!(said.contains(text), "{text} is not in {check:#}");
        }
        assert_eq!(self.exit, i32::from(self.checks.iter().any(|check| check["status"] == "fail")));
    }

    fn names(&self) -> Vec<&str> {
        self.checks.iter().map(|check| check["name"].as_str().unwrap()).collect()
    }
}

/// Asks the doctor about a machine like that of the options, with a free port.
fn doctor(options: &NodeOptions) -> Said {
    let data_dir = options.data_dir.to_str().unwrap();
    let mut args = vec!["-o", "json", "doctor", "--docker", &options.docker, "--data-dir", data_dir];
    args.extend(["--ephemeral-data", "--listen", &options.listen]);
    let (exit, said, error) = finish(relatch().args(&args).env("XDG_RUNTIME_DIR", options.run_dir()));
    let json: Value = serde_json::from_str(&said).unwrap_or_else(|no| panic!("{no}: {said}\n{error}"));
    let checks = json["checks"].as_array().unwrap_or_else(|| panic!("{json:#}")).clone();
    for check in &checks {
        let keys: Vec<&String> = check.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["advice", "name", "seen", "status"]);
    }
    Said { exit, checks }
}

async fn over(engine: Engine) -> Said {
    doctor(&World::serving(engine).await.options)
}

async fn with_info(set: Value) -> Said {
    let edit = Edit { set: serde_json::from_value(set).unwrap(), ..Edit::default() };
    let rule = Rule { reply: Reply::Edited(edit), forever: true, ..Rule::on(Endpoint::Info) };
    over(Engine::builder().rule(rule).build().unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_is_ready_has_nothing_that_fails_and_is_left_as_it_was() {
    let world = World::new().await;
    let said = doctor(&world.options);
    assert_eq!(said.names(), ALL);
    assert_eq!(said.exit, 0, "{:#?}", said.checks);
    for name in ALL.iter().take_while(|name| **name != "data-directory") {
        said.expect(name, "ok", &[]);
    }
    said.expect("docker-engine", "ok", &["Docker Engine 29.3.1", "1.53"]);
    said.expect("data-directory", "ok", &["will be made in"]);
    said.expect("listen", "ok", &[]);
    assert!(said.check("disk-sync")["seen"].as_str().unwrap().contains("ms to make an append durable"));
    let left: Vec<PathBuf> = content(world.dir.path()).into_keys().collect();
    assert_eq!(left, [] as [PathBuf; 0], "nothing is left behind but the engine's socket");
    let posts: usize = world.posts();
    assert_eq!(posts, 0);
    Node::start(&world.options).stop();
    assert_eq!(doctor(&world.options).exit, 0, "nor is a directory that was used in the way");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_get_a_table_with_what_to_do_under_what_was_seen() {
    let world = World::new().await;
    let (exit, said, _) = run(&["doctor", "--docker", "/nonexistent/docker.sock", "--listen", "127.0.0.1:0"]);
    assert_eq!(exit, 1, "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("FAIL  docker-socket") && lines[0].contains("does not exist"), "{said}");
    assert!(lines[1].contains("→ start Docker"), "{said}");
    assert!(said.contains("1 to mend first"), "{said}");
    drop(world);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_in_which_a_socket_is_of_no_use_is_told_apart() {
    let world = World::new().await;
    let at =
        |path: &Path| doctor(&NodeOptions { docker: path.to_str().unwrap().into(), ..world.options.clone() });
    let (nothing, file, stale) =
        (world.dir.path().join("nothing"), world.dir.path().join("file"), world.dir.path().join("stale"));
    std::fs::write(&file, "").unwrap();
    drop(UnixListener::bind(&stale).unwrap());
    at(&nothing).expect("docker-socket", "fail", &["does not exist", "systemctl start docker"]);
    at(&file).expect("docker-socket", "fail", &["is not a socket"]);
    at(world.dir.path()).expect("docker-socket", "fail", &["is not a socket", "a folder is often there"]);
    at(&stale).expect("docker-socket", "fail", &["nobody listens there"]);
    let ssh = NodeOptions { docker: "ssh://engine".into(), ..world.options.clone() };
    doctor(&ssh).expect("docker-socket", "fail", &["ssh"]);
    // The other checks are made all the same.
    assert!(at(&nothing).names().contains(&"disk-sync"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_hangs_or_is_none_is_said_to_be_so() {
    let world = World::new().await;
    world.engine.listen(ListenMode::Deaf).await;
    doctor(&world.options).expect("docker-engine", "fail", &["no whole answer within 2000 ms"]);

    let silent = Edit { without_headers: vec!["Api-Version".into()], ..Edit::default() };
    let rule = Rule { reply: Reply::Edited(silent), forever: true, ..Rule::on(Endpoint::Ping) };
    let said = over(Engine::builder().rule(rule).build().unwrap()).await;
    said.expect("docker-engine", "fail", &["is it a Docker engine"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_on_a_port_is_looked_at_in_the_same_way() {
    let world = World::new().await;
    let port = world.engine.serve_tcp("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let at = |docker: String| doctor(&NodeOptions { docker, ..world.options.clone() });
    let said = at(format!("tcp://{port}"));
    assert_eq!((said.names().as_slice(), said.exit), (ALL, 0), "{:#?}", said.checks);
    said.expect("docker-engine", "ok", &["Docker Engine 29.3.1"]);
    at("tcp://203.0.113.1:2375".into()).expect(
        "docker-socket",
        "fail",
        &["203.0.113.1", "--docker-insecure"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn engines_that_cannot_be_used_are_refused_by_name() {
    let engine = |identity: Value| {
        let spec = serde_json::from_value(json!({ "engine": identity })).unwrap();
        Engine::builder().spec(spec).build().unwrap()
    };
    let podman = over(engine(json!({ "server": "Libpod/5.4.0 (linux)", "new_id_each_time": true }))).await;
    podman.expect("docker-engine", "fail", &["Podman", "use a Docker Engine"]);
    let old = over(engine(json!({ "api_version": "1.39", "min_api_version": "1.12" }))).await;
    old.expect("docker-engine", "fail", &["1.39", "1.40"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_swarm_node_is_warned_of() {
    let said = with_info(json!({ "/Swarm/LocalNodeState": "active" })).await;
    said.expect("swarm", "warn", &["swarm node", "refused"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_whose_clock_is_another_is_warned_of() {
    for (offset_ms, seen) in [(-90_000, "s behind this one"), (90_000, "s ahead of this one")] {
        let world = World::new().await;
        world.engine.act(None, Action::SetClockOffset { offset_ms }).unwrap();
        doctor(&world.options).expect("engine-clock", "warn", &[seen]);
    }
    with_info(json!({ "/SystemTime": "yesterday" })).await.expect("engine-clock", "warn", &["no time"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_restarter_is_named_with_what_it_would_restart() {
    let of = |name: &str, image: &str| ContainerSpec { image: image.into(), ..ContainerSpec::named(name) };
    let engine = Engine::builder()
        .container(of("healer", "willfarrell/autoheal:1.2.0"))
        .container(of("web", "nginx").label("autoheal", "true"))
        .container(of("db", "postgres"))
        .container(ContainerSpec {
            status: relatch::sim::Status::Exited,
            ..of("old", "containrrr/watchtower")
        });
    let said = over(engine.build().unwrap()).await;
    said.expect(
        "other-restarters",
        "warn",
        &["healer (image willfarrell/autoheal:1.2.0)", "web (image nginx)"],
    );
    let check = said.check("other-restarters").to_string();
    assert!(!check.contains("postgres") && !check.contains("old"), "{check}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_or_open_to_others_fails() {
    let world = World::new().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    doctor(&world.options.clone().listen(&listen)).expect("listen", "fail", &[&listen, "runs already"]);
    doctor(&world.options.clone().listen("0.0.0.0:0")).expect("listen", "fail", &["loopback"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_a_node_would_refuse_fails_for_the_same_reason() {
    let world = World::new().await;
    let at = |dir: &Path| doctor(&NodeOptions { data_dir: dir.to_owned(), ..world.options.clone() });
    let file = world.dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    at(&file).expect("data-directory", "fail", &["is not a directory"]);
    let foreign = world.dir.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("thesis.txt"), "").unwrap();
    at(&foreign).expect("data-directory", "fail", &["thesis.txt"]);
    assert_eq!(content(&foreign).len(), 1);

    let node = Node::start(&world.options);
    doctor(&world.options).expect("data-directory", "fail", &["in use by another process"]);
    // A node is ready before its engine has said which one it is.
    let other = wait_for("a doctor that sees who serves the engine", || {
        let said = at(&world.dir.path().join("other"));
        if said.exit == 0 { Err(format!("{:#?}", said.checks)) } else { Ok(said) }
    });
    let data_dir = world.options.data_dir.to_str().unwrap();
    other.expect("engine-served", "fail", &["a relatch serves it already", data_dir, "--addr"]);
    node.stop();
    doctor(&world.options).expect("engine-served", "ok", &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_no_disk_or_full_or_read_only_is_seen() {
    let world = World::new().await;
    let at =
        |mount: &Mount| doctor(&NodeOptions { data_dir: mount.path().join("data"), ..world.options.clone() });
    let mount = Mount::of_kib(40 << 10);
    let said = at(&mount);
    said.expect("file-system", "warn", &["tmpfs", "in memory"]);
    said.expect("free-space", "warn", &["MiB free", "make room"]);
    let ballast = mount.fill("ballast");
    let said = at(&mount);
    said.expect("free-space", "fail", &["0 MiB free"]);
    said.expect("disk-sync", "fail", &["there is no room left"]);
    std::fs::remove_file(ballast).unwrap();
    mount.make_read_only();
    at(&mount).expect("disk-sync", "fail", &["the file system is read-only"]);
}

/// The same over a real engine, with a real container of such an image.
#[test]
fn a_real_engine_passes_and_a_real_restarter_is_named() {
    let docker = Dockerd::own();
    let dir = tempfile::tempdir().unwrap();
    let options = NodeOptions::new(docker.endpoint(), dir.path().join("data"));
    let said = doctor(&options);
    assert_eq!(said.names(), ALL);
    assert_eq!(said.exit, 0, "{:#?}", said.checks);
    said.expect("docker-engine", "ok", &["Docker Engine"]);
    said.expect("engine-clock", "ok", &[]);
    said.expect("other-restarters", "ok", &[]);
    assert!(said.check("engine-id").to_string().contains(&docker.engine_id()), "{:#?}", said.checks);

    docker.docker(&["tag", IMAGE, "containrrr/watchtower:1"]);
    let name = unique_name("tower");
    let id = docker.run_container(&unique_name("web"), RunOptions::default());
    docker.docker(&[
        "run",
        "--detach",
        "--network",
        "none",
        "--name",
        &name,
        "containrrr/watchtower:1",
        "/bin/sleep",
        "3600",
    ]);
    let started_at = docker.started_at(&id);
    doctor(&options).expect("other-restarters", "warn", &[&name, "containrrr/watchtower:1"]);
    assert_eq!(docker.started_at(&id), started_at, "it only looks");
}
