//! A Docker Engine for the engine tests: always our own dockerd, with its own containerd, data,
//! socket, identity and pidfile in a temporary folder. A dockerd that the machine runs is neither
//! used nor stopped.
//!
//! ```ignore
//! let docker = Dockerd::shared();                 // one for all tests of this process
//! let name = unique_name("web");
//! let id = docker.run_container(&name, RunOptions { ignores_sigterm: true, ..RunOptions::default() });
//! relatch_dev(docker.endpoint());                 // unix:///tmp/…/docker.sock
//! docker.wait_until(&name, "running", |c| c["State"]["Running"] == true);
//!
//! let docker = Dockerd::own();                    // to stop, start and kill; gone when dropped
//! docker.stop();
//! docker.start();
//! ```
//!
//! Every call blocks; in async tests use a runtime with several threads. Whatever goes wrong in here
//! panics and says what it saw: without an engine these tests fail, they are never skipped.
//!
//! A small shell script (`dockerd.sh`, as root) does the starting and stopping. It watches a pipe to
//! this process, so that everything is cleaned up after the last test and after a crash alike.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::certificates::{Authority, Issued};

/// The one image there is: Debian's static busybox, imported, since no registry can be assumed.
pub const IMAGE: &str = "relatch-test:1";

/// When waiting for a condition is given up. Not an expectation of speed: a busy machine is slow.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(120);

/// SIGTERM (15) in the signal masks of `/proc/PID/status`.
const SIGTERM_BIT: u64 = 1 << 14;

/// A name that no other container of this process has.
pub fn unique_name(stem: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("{stem}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// How a test container behaves. The default is polite: it ends at once on SIGTERM, with exit code 0.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Ignores SIGTERM, so that a stop takes its whole grace and ends in SIGKILL.
    pub ignores_sigterm: bool,
    pub labels: Vec<(String, String)>,
    /// `StopTimeout` of the container, in seconds.
    pub stop_timeout_s: Option<u32>,
    pub healthcheck: Option<Healthcheck>,
    /// `no`, `always`, `on-failure:3`, … (Docker's default is `no`).
    pub restart_policy: Option<String>,
    /// Runs this instead of the polite or the deaf shell.
    pub command: Option<Vec<String>>,
    /// More arguments of `docker run`, as they are.
    pub extra: Vec<String>,
}

/// A container's health check: `command` is run by `sh -c` inside it.
#[derive(Clone, Debug)]
pub struct Healthcheck {
    pub command: String,
    pub interval: Duration,
    pub timeout: Duration,
    pub retries: u32,
    pub start_period: Duration,
}

/// One dockerd of our own. See the module's documentation.
pub struct Dockerd {
    folder: PathBuf,
    supervisor: Mutex<Supervisor>,
}

struct Supervisor {
    process: Child,
    // `None` once closed, which tells it to clean up.
    commands: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
    dockerd_pid: Option<u32>,
}

impl Dockerd {
    /// The engine that all tests of this process share. Never stop it: others are using it.
    pub fn shared() -> &'static Dockerd {
        static SHARED: OnceLock<Dockerd> = OnceLock::new();
        SHARED.get_or_init(Dockerd::own)
    }

    /// A running engine for one test alone, gone when it is dropped.
    pub fn own() -> Dockerd {
        Dockerd::begin(|_| Vec::new())
    }

    /// The same, and it also listens on a port of this machine, by TLS with this certificate, to clients of that CA
    /// alone.
    pub fn own_with_tls(server: &Issued, clients: &Authority) -> Dockerd {
        Dockerd::begin(|folder| {
            let tls = folder.join("tls");
            server.write(&tls, clients);
            let file = |flag: &str, name: &str| format!("--{flag}={}", tls.join(name).display());
            let mut arguments = ["--tlsverify", "--host=tcp://127.0.0.1:0"].map(str::to_owned).to_vec();
            arguments.extend([
                file("tlscacert", "ca.pem"),
                file("tlscert", "cert.pem"),
                file("tlskey", "key.pem"),
            ]);
            arguments
        })
    }

    /// Starts one with more arguments, which may name files that are put into its folder now.
    fn begin(arguments: impl FnOnce(&Path) -> Vec<String>) -> Dockerd {
        for (program, package) in
            [("dockerd", "docker.io"), ("containerd", "docker.io"), ("docker", "docker.io")]
        {
            assert!(
                find_program(program).is_some(),
                "the engine tests start their own dockerd, and `{program}` is missing: run scripts/setup.sh test \
                 (or: apt-get install {package})"
            );
        }
        let folder = make_folder();
        write_configuration(&folder);
        // Its log tells of each request.
        let mut all = vec!["--debug".to_owned()];
        all.extend(arguments(&folder));
        let supervisor = Mutex::new(Supervisor::spawn(&folder, &all));
        let dockerd = Dockerd { folder, supervisor };
        dockerd.start();
        dockerd.import_image();
        dockerd
    }

    /// What to give as `--docker`: `unix:///…/docker.sock`.
    pub fn endpoint(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// What to give as `--docker` with certificates: `tcp://127.0.0.1:PORT`. The port is another after each start.
    pub fn tcp_endpoint(&self) -> String {
        let begun = Instant::now();
        loop {
            // The port is the engine's own choice, of which it tells last.
            let said = self.log().rsplit_once("API listen on 127.0.0.1:").map(|(_, rest)| rest.to_owned());
            let digits = |text: String| text.chars().take_while(char::is_ascii_digit).collect::<String>();
            if let Some(port) = said.map(digits).filter(|port| !port.is_empty()) {
                return format!("tcp://127.0.0.1:{port}");
            }
            assert!(begun.elapsed() < GIVE_UP_AFTER, "dockerd never told its port\n{}", self.log_tail());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The restart requests for a container that the engine got so far, by its own log.
    pub fn posts(&self, id: &str) -> usize {
        self.requests(&format!("/containers/{id}/restart"))
    }

    /// The start requests for a container that the engine got so far, but for those of the `docker` command, which
    /// names a version in front.
    pub fn starts(&self, id: &str) -> usize {
        self.requests(&format!(" /containers/{id}/start"))
    }

    fn requests(&self, path: &str) -> usize {
        // An error is told by another line of the same request.
        self.log().lines().filter(|line| line.contains("Calling POST") && line.contains(path)).count()
    }

    fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.folder.join("dockerd.log")).unwrap_or_default())
            .into_owned()
    }

    /// The path of the engine's socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("docker.sock")
    }

    /// A folder that goes away with this engine, for a proxy's socket and the like.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The engine's `/info` ID. It is this instance's own and stays the same over stop and start.
    pub fn engine_id(&self) -> String {
        self.docker(&["info", "--format", "{{.ID}}"])
    }

    /// Starts dockerd and waits until it answers `/_ping`.
    pub fn start(&self) {
        let mut supervisor = self.supervisor.lock().expect("an earlier call panicked");
        assert!(supervisor.dockerd_pid.is_none(), "dockerd already runs");
        let reply = supervisor.ask("start");
        let pid: u32 = reply
            .strip_prefix("started ")
            .and_then(|pid| pid.parse().ok())
            .unwrap_or_else(|| panic!("starting dockerd: {reply:?}\n{}", self.log_tail()));
        supervisor.dockerd_pid = Some(pid);
        let begun = Instant::now();
        loop {
            let seen = match ping(&self.socket()) {
                Ok(true) => return,
                Ok(false) => "an answer that is not OK".to_owned(),
                Err(error) => error.to_string(),
            };
            let alive = is_running(pid);
            if !alive || begun.elapsed() > GIVE_UP_AFTER {
                let state = if alive { "still runs" } else { "has ended" };
                panic!("dockerd never answered /_ping and {state}; last seen: {seen}\n{}", self.log_tail());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops dockerd as a person would (SIGTERM): it stops its containers too, each with its own stop
    /// budget. Returns when it is gone.
    pub fn stop(&self) {
        let mut supervisor = self.supervisor.lock().expect("an earlier call panicked");
        assert!(supervisor.dockerd_pid.take().is_some(), "dockerd does not run");
        let reply = supervisor.ask("stop");
        assert_eq!(reply, "stopped", "stopping dockerd\n{}", self.log_tail());
    }

    /// Kills dockerd (SIGKILL). Its containers go on, and the next `start` ends them.
    pub fn kill(&self) {
        let mut supervisor = self.supervisor.lock().expect("an earlier call panicked");
        assert!(supervisor.dockerd_pid.take().is_some(), "dockerd does not run");
        assert_eq!(supervisor.ask("kill"), "killed");
    }

    /// Runs a container and returns its full id. Where the command is ours, waits until it listens to
    /// signals: before that, a polite one would be as deaf as the other.
    pub fn run_container(&self, name: &str, options: RunOptions) -> String {
        let mut args: Vec<String> =
            ["run", "--detach", "--network", "none", "--name", name].map(str::to_owned).to_vec();
        for (key, value) in &options.labels {
            args.extend(["--label".to_owned(), format!("{key}={value}")]);
        }
        if let Some(seconds) = options.stop_timeout_s {
            args.extend(["--stop-timeout".to_owned(), seconds.to_string()]);
        }
        if let Some(policy) = &options.restart_policy {
            args.extend(["--restart".to_owned(), policy.clone()]);
        }
        if let Some(check) = &options.healthcheck {
            let duration = |limit: Duration| format!("{}ms", limit.as_millis());
            args.extend([
                format!("--health-cmd={}", check.command),
                format!("--health-interval={}", duration(check.interval)),
                format!("--health-timeout={}", duration(check.timeout)),
                format!("--health-retries={}", check.retries),
                format!("--health-start-period={}", duration(check.start_period)),
            ]);
        }
        args.extend(options.extra.iter().cloned());
        args.push(IMAGE.to_owned());
        match &options.command {
            Some(command) => args.extend(command.iter().cloned()),
            None => {
                let trap = if options.ignores_sigterm { "trap '' TERM" } else { "trap 'exit 0' TERM" };
                // `wait` lets the trap run at once; a foreground `sleep` would hold it up.
                let script = format!("{trap}; while :; do sleep 3600 & wait $!; done");
                args.extend(["/bin/sh".to_owned(), "-c".to_owned(), script]);
            }
        }
        let id = self.docker(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(
            id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit()),
            "running {name}: a full container id was expected, not {id:?}"
        );
        if options.command.is_none() {
            self.wait_until_ready(&id);
        }
        id
    }

    /// Waits until the polite or deaf shell of this incarnation listens to signals, or ignores them.
    pub fn wait_until_ready(&self, container: &str) {
        self.wait_until(container, "its shell has set its trap", |inspected| {
            // The kernel knows: the container's log may be older than its `StartedAt`, which the engine writes late.
            let pid = inspected["State"]["Pid"].as_u64().unwrap_or_default();
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.lines().any(|line| {
                let mask = line.strip_prefix("SigCgt:").or(line.strip_prefix("SigIgn:")).unwrap_or("0");
                u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & SIGTERM_BIT != 0)
            })
        });
    }

    /// `docker inspect` of one container: the engine's own JSON.
    pub fn inspect(&self, container: &str) -> Value {
        self.try_inspect(container).unwrap_or_else(|| {
            panic!("inspecting {container}: there is no such container\n{}", self.log_tail())
        })
    }

    /// The same, and `None` if there is no such container.
    pub fn try_inspect(&self, container: &str) -> Option<Value> {
        let args = ["container", "inspect", container];
        let output = self.try_docker(&args);
        if !output.status.success()
            && String::from_utf8_lossy(&output.stderr).to_lowercase().contains("no such container")
        {
            return None;
        }
        let text = self.expect_success(&args, output);
        let Ok(Value::Array(mut one)) = serde_json::from_str(&text) else {
            panic!("inspecting {container}: an array was expected, not {text}");
        };
        Some(one.remove(0))
    }

    /// `State.StartedAt`, as the engine writes it.
    pub fn started_at(&self, container: &str) -> String {
        self.inspect(container)["State"]["StartedAt"]
            .as_str()
            .unwrap_or_else(|| panic!("{container} has no State.StartedAt"))
            .to_owned()
    }

    /// Waits until `condition` holds for what inspect shows, and returns that.
    pub fn wait_until(&self, container: &str, what: &str, condition: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let inspected = self.inspect(container);
            if condition(&inspected) {
                return inspected;
            }
            assert!(
                begun.elapsed() < GIVE_UP_AFTER,
                "{container}: waited for '{what}' in vain; last seen: {:#}\n{}",
                inspected["State"],
                self.log_tail()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Removes a container, running or not.
    pub fn rm(&self, container: &str) {
        self.docker(&["rm", "--force", container]);
    }

    pub fn rename(&self, container: &str, new_name: &str) {
        self.docker(&["rename", container, new_name]);
    }

    pub fn pause(&self, container: &str) {
        self.docker(&["pause", container]);
    }

    pub fn unpause(&self, container: &str) {
        self.docker(&["unpause", container]);
    }

    /// Runs the `docker` command against this engine and returns its output, trimmed. Panics if it fails.
    pub fn docker(&self, args: &[&str]) -> String {
        let output = self.try_docker(args);
        self.expect_success(args, output)
    }

    /// Runs the `docker` command against this engine, whatever comes of it.
    pub fn try_docker(&self, args: &[&str]) -> Output {
        self.docker_command(args).output().unwrap_or_else(|error| panic!("running docker {args:?}: {error}"))
    }

    /// The end of dockerd's log, for messages.
    pub fn log_tail(&self) -> String {
        let mut shown = String::new();
        for name in ["supervisor.log", "containerd.log", "dockerd.log"] {
            let text = std::fs::read(self.folder.join(name)).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            // Its gRPC client tells every step of every connection.
            let lines: Vec<&str> = text.lines().filter(|line| !line.contains("[core]")).collect();
            let tail = lines[lines.len().saturating_sub(25)..].join("\n");
            shown.push_str(&format!("--- the end of {name}:\n{tail}\n"));
        }
        shown
    }

    fn docker_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("docker");
        command.arg("--host").arg(self.endpoint()).args(args).stdin(Stdio::null());
        // The person's own contexts, proxies and TLS settings are for their engine, not for this one.
        for variable in [
            "DOCKER_HOST",
            "DOCKER_CONTEXT",
            "DOCKER_TLS",
            "DOCKER_TLS_VERIFY",
            "DOCKER_CERT_PATH",
            "DOCKER_API_VERSION",
        ] {
            command.env_remove(variable);
        }
        command.env("DOCKER_CONFIG", self.folder.join("client"));
        command
    }

    fn expect_success(&self, args: &[&str], output: Output) -> String {
        assert!(
            output.status.success(),
            "docker {args:?} failed ({}): {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr),
            self.log_tail()
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn import_image(&self) {
        let busybox = find_program("busybox")
            .expect("the test image is made from a static busybox: run scripts/setup.sh test (or: apt-get install busybox-static)");
        let root = self.folder.join("image");
        let bin = root.join("bin");
        std::fs::create_dir_all(&bin).expect("making the image's folder");
        std::fs::create_dir_all(root.join("tmp")).expect("making the image's /tmp");
        let program = std::fs::read(&busybox).expect("reading busybox");
        assert!(
            !names_a_loader(&program),
            "{} is not static and cannot run in an empty image: apt-get install busybox-static",
            busybox.display()
        );
        std::fs::copy(&busybox, bin.join("busybox")).expect("copying busybox");
        for applet in
            ["sh", "sleep", "cat", "echo", "true", "false", "touch", "rm", "test", "kill", "date", "head"]
        {
            symlink("busybox", bin.join(applet)).expect("linking an applet");
        }
        let mut tar = Command::new("tar")
            .args(["--create", "--owner=0", "--group=0", "--numeric-owner", "--directory"])
            .arg(&root)
            .arg(".")
            .stdout(Stdio::piped())
            .spawn()
            .expect("starting tar");
        let archive = tar.stdout.take().expect("tar's output is piped");
        let args = ["import", "-", IMAGE];
        let imported = self.docker_command(&args).stdin(archive).output().expect("starting docker import");
        assert!(tar.wait().expect("waiting for tar").success(), "tar failed");
        self.expect_success(&args, imported);
        std::fs::remove_dir_all(&root).expect("removing the image's folder");
    }
}

impl Drop for Dockerd {
    fn drop(&mut self) {
        // A poisoned lock has still a process to end.
        let supervisor = match self.supervisor.get_mut() {
            Ok(supervisor) => supervisor,
            Err(poisoned) => poisoned.into_inner(),
        };
        supervisor.commands = None;
        let begun = Instant::now();
        // A drop must not panic, so what went wrong is only said.
        while !matches!(supervisor.process.try_wait(), Ok(Some(_))) {
            if begun.elapsed() > GIVE_UP_AFTER {
                eprintln!("dockerd in {} is still being stopped", self.folder.display());
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // If it never got to run (sudo said no), the folder is still ours to remove.
        if self.folder.exists() && std::fs::remove_dir_all(&self.folder).is_err() {
            eprintln!("{} could not be removed", self.folder.display());
        }
    }
}

impl Supervisor {
    fn spawn(folder: &Path, arguments: &[String]) -> Supervisor {
        let me = std::fs::metadata("/proc/self").expect("reading /proc/self");
        let (user, group) =
            (std::os::unix::fs::MetadataExt::uid(&me), std::os::unix::fs::MetadataExt::gid(&me));
        let mut command = if user == 0 {
            Command::new("sh")
        } else {
            // dockerd needs root. The socket is given to our group, so the tests themselves do not.
            let mut sudo = Command::new("sudo");
            sudo.args(["--non-interactive", "sh"]);
            sudo
        };
        let log = std::fs::File::create(folder.join("supervisor.log")).expect("creating supervisor.log");
        let mut process = command
            .arg("-c")
            .arg(include_str!("dockerd.sh"))
            .arg("dockerd.sh")
            .arg(folder)
            .arg(group.to_string())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            // Ctrl-C is for the tests; the supervisor notices their end and cleans up in order.
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| {
                let _ = std::fs::remove_dir_all(folder);
                panic!("starting dockerd needs root: run the tests as root, or install sudo ({error})")
            });
        let commands = process.stdin.take();
        let replies = BufReader::new(process.stdout.take().expect("stdout is piped"));
        Supervisor { process, commands, replies, dockerd_pid: None }
    }

    fn ask(&mut self, command: &str) -> String {
        let pipe = self.commands.as_mut().expect("the supervisor was told to end");
        let sent = writeln!(pipe, "{command}").and_then(|()| pipe.flush());
        let mut reply = String::new();
        let got = self.replies.read_line(&mut reply);
        if sent.is_err() || reply.is_empty() {
            panic!(
                "'{command}' got no answer ({sent:?}, {got:?}). Starting dockerd needs root: run the tests as root, \
                 or where sudo asks for no password"
            );
        }
        reply.trim_end().to_owned()
    }
}

/// A new folder, close to the root: a unix socket's path has at most 107 bytes.
fn make_folder() -> PathBuf {
    let mut base = std::env::temp_dir();
    if base.as_os_str().len() > 40 {
        base = PathBuf::from("/tmp");
    }
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = base.join(format!("relatch-{}-{number}", std::process::id()));
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return folder,
            // Left by an earlier process of the same id; not ours to remove.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => panic!("making {}: {error}", folder.display()),
        }
    }
}

fn write_configuration(folder: &Path) {
    let path = folder.display();
    // Without a configuration of our own, the machine's would apply and might name its hosts, data and identity.
    let containerd = format!(
        "version = 2\nroot = \"{path}/containerd\"\nstate = \"{path}/containerd-state\"\n\
         disabled_plugins = [\"io.containerd.grpc.v1.cri\", \"io.containerd.internal.v1.opt\"]\n\
         [grpc]\naddress = \"{path}/containerd.sock\"\n"
    );
    std::fs::write(folder.join("containerd.toml"), containerd).expect("writing containerd.toml");
    // The engine id. Before version 24 it comes from a key that all dockerds of a machine would share;
    // from then on it is read from this file, if there is one.
    let daemon = if dockerd_major_version() < 24 {
        format!("{{\"deprecated-key-path\": \"{path}/key.json\"}}\n")
    } else {
        "{}\n".to_owned()
    };
    std::fs::write(folder.join("daemon.json"), daemon).expect("writing daemon.json");
    let id = std::fs::read_to_string("/proc/sys/kernel/random/uuid").expect("reading a random UUID");
    std::fs::create_dir_all(folder.join("data")).expect("making the data root");
    std::fs::write(folder.join("data/engine-id"), id.trim()).expect("writing the engine id");
}

/// From "Docker version 20.10.24+dfsg1, build …".
fn dockerd_major_version() -> u32 {
    let dockerd = find_program("dockerd").expect("checked before");
    let output = Command::new(dockerd).arg("--version").output().expect("running dockerd --version");
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace()
        .find_map(|word| word.split('.').next()?.parse().ok())
        .unwrap_or_else(|| panic!("dockerd --version said {text:?}"))
}

/// Looks on PATH, and in the sbin folders that are not on every user's.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
}

/// Whether an ELF program asks for a dynamic loader; its name stands near the file's beginning.
fn names_a_loader(program: &[u8]) -> bool {
    let head = &program[..program.len().min(4096)];
    [&b"/ld-linux"[..], b"/ld-musl", b"/ld64"]
        .iter()
        .any(|loader| head.windows(loader.len()).any(|w| w == *loader))
}

/// Whether a process exists and has not ended; dockerd is the supervisor's child and may be a zombie.
fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

fn ping(socket: &Path) -> std::io::Result<bool> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.lines().next().is_some_and(|status| status.contains(" 200 ")))
}
