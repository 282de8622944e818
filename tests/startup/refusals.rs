//! Other things that `relatch dev` refuses when it starts.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::World;
use crate::mount::as_root;
use crate::process::{Running, finish, run};
use crate::support::node::{Node, relatch};

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_refused_with_another_way() {
    let world = World::new().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let said = Node::refuses_to_start(&world.options.clone().listen(&listen));
    assert!(said.contains(&listen) && said.contains("choose another with --listen"), "{said}");
    // And the data directory is as good as before.
    Node::start(&world.options).stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_others_could_reach_is_refused() {
    let world = World::new().await;
    let said = Node::refuses_to_start(&world.options.clone().listen("0.0.0.0:0"));
    assert!(said.contains("listen on a loopback address"), "{said}");
    assert!(!world.options.data_dir.exists(), "nothing was begun");
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_that_break_a_rule_are_refused_by_name_and_never_clamped() {
    let world = World::new().await;
    for (flag, value, named) in [
        ("--margin", "14s", "margin_ms = 14000"),
        ("--margin", "14999ms", "at least 15000"),
        ("--grace-max", "24h1s", "grace_max_s = 86401"),
        ("--grace-max", "1500ms", "not whole seconds"),
        ("--grace-max", "-5s", "no length of time"),
    ] {
        let said = Node::refuses_to_start(&world.options.clone().arg(flag).arg(value));
        assert!(said.contains(named), "{flag} {value}: {said}");
        assert!(!world.options.data_dir.exists(), "{flag} {value}: nothing was begun");
    }
}

#[test]
fn an_endpoint_of_another_kind_is_refused_by_name() {
    let (exit, _, said) =
        run(&["dev", "--docker", "ssh://root@engine", "--data-dir", "/nonexistent/relatch"]);
    assert!(exit != 0 && said.contains("ssh"), "{said}");
    assert!(!Path::new("/nonexistent").exists());
}

/// A group that every Debian has, and that nobody here is in.
const DAEMON: u32 = 1;

/// A copy of the binary, and a place for data, that any user may reach.
struct Stranger {
    dir: tempfile::TempDir,
}

impl Stranger {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let data = dir.path().join("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o777)).unwrap();
        // Where the tests are built others may not look.
        std::fs::copy(env!("CARGO_BIN_EXE_relatch"), dir.path().join("relatch")).unwrap();
        Self { dir }
    }

    /// `relatch ARGS` as a user who is nobody, with this data directory.
    fn relatch(&self, args: &[&str]) -> Command {
        let mut command = as_root("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
        command.arg(self.dir.path().join("relatch")).args(args);
        command.arg("--data-dir").arg(self.dir.path().join("data"));
        for variable in relatch().get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name) {
            command.env_remove(variable);
        }
        command
    }
}

/// Not a refusal: rights may be given while it runs. But nothing is claimed, and the way out is said.
#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_this_user_may_not_use_is_said_to_be_one() {
    let world = World::new().await;
    let socket = Path::new(&world.options.docker);
    std::fs::set_permissions(world.dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600)).unwrap();
    let stranger = Stranger::new();
    let mut dev = stranger.relatch(&["dev", "--listen", "127.0.0.1:0", "--ephemeral-data"]);
    let node = Running::start(dev.args(["--docker", &world.options.docker]));
    let said = node.says(&["asked again"]);
    assert!(said.contains("ermission denied") && said.contains("member of the socket's group"), "{said}");
    assert!(!said.contains("answered"), "{said}");

    let doctor = |mode| {
        std::fs::set_permissions(socket, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut doctor = stranger.relatch(&["doctor", "--listen", "127.0.0.1:0"]);
        finish(doctor.args(["--docker", &world.options.docker]))
    };
    std::os::unix::fs::chown(socket, None, Some(DAEMON)).unwrap();
    let (exit, said, _) = doctor(0o660);
    assert!(exit == 1 && said.contains("usermod -aG daemon"), "{said}");
    let (exit, said, _) = doctor(0o600);
    assert!(exit == 1 && said.contains("run as root: nobody else may"), "{said}");

    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o666)).unwrap();
    node.says(&["Docker Engine 29.3.1 answered"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_this_user_may_not_write_is_refused() {
    let world = World::new().await;
    let stranger = Stranger::new();
    let data = stranger.dir.path().join("data");
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    for command in ["dev", "doctor"] {
        let mut command = stranger.relatch(&[command, "--listen", "127.0.0.1:0", "--ephemeral-data"]);
        let (exit, out, err) = finish(command.args(["--docker", &world.options.docker]));
        let said = format!("{out}{err}");
        assert!(exit == 1 && said.contains("run as the directory's owner"), "{said}");
    }
}
