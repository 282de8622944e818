//! A relatch node as its own process, and the command line as its users type it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::disk::Disk;

/// When waiting for a condition is given up. Not an expectation of speed: a busy machine is slow.
const GIVE_UP_AFTER: Duration = Duration::from_secs(120);

/// Names a sync that is left out, as `sync-log`: how `scripts/holes.sh` asks whether any test notices.
pub const LOST_SYNC: &str = "RELATCH_TEST_LOST_SYNC";

/// How a node is started.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// `--docker`.
    pub docker: String,
    /// `--data-dir`; it outlives the node.
    pub data_dir: PathBuf,
    /// More arguments.
    pub args: Vec<String>,
    /// `--listen`.
    pub listen: String,
    /// Where its log goes.
    pub log: PathBuf,
    /// `FAILPOINTS`.
    pub failpoints: Option<String>,
    /// A command that becomes the node, which is what follows it: one that takes rights away first, say.
    pub within: Vec<String>,
    /// What else is in its environment.
    pub env: Vec<(&'static str, OsString)>,
}

impl NodeOptions {
    pub fn new(docker: impl Into<String>, data_dir: impl Into<PathBuf>) -> Self {
        let data_dir: PathBuf = data_dir.into();
        Self {
            docker: docker.into(),
            log: data_dir.with_extension("log"),
            data_dir,
            args: Vec::new(),
            listen: "127.0.0.1:0".to_owned(),
            failpoints: None,
            within: Vec::new(),
            env: Vec::new(),
        }
    }

    pub fn within(mut self, command: &[&str]) -> Self {
        self.within = command.iter().map(|&part| part.to_owned()).collect();
        self
    }

    /// The node keeps its data on a disk that can lose its power.
    pub fn on(mut self, disk: &Disk) -> Self {
        self.env = disk.environment().map(|(name, value)| (name, value.into())).to_vec();
        self
    }

    pub fn failpoints(mut self, failpoints: &str) -> Self {
        self.failpoints = Some(failpoints.to_owned());
        self
    }

    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    pub fn listen(mut self, listen: &str) -> Self {
        self.listen = listen.to_owned();
        self
    }

    /// The arguments of `relatch dev`. What a test keeps goes with it, also where the tests run in a container.
    fn dev(&self) -> Vec<String> {
        let data_dir = self.data_dir.to_str().expect("a data directory in UTF-8");
        let mut dev: Vec<String> = [
            "dev",
            "--ephemeral-data",
            "--listen",
            &self.listen,
            "--docker",
            &self.docker,
            "--data-dir",
            data_dir,
        ]
        .map(str::to_owned)
        .to_vec();
        dev.extend(self.args.iter().cloned());
        dev
    }

    /// Where the node finds out what else runs on its machine: nothing but the nodes of this test.
    pub fn run_dir(&self) -> &Path {
        self.data_dir.parent().expect("a folder above the data directory")
    }

    /// The failpoints of the test, and the sync that is left out by `scripts/holes.sh`.
    fn points(&self) -> Option<String> {
        let lost = std::env::var(LOST_SYNC).ok().map(|name| format!("{name}=return(lose)"));
        let all: Vec<String> = self.failpoints.clone().into_iter().chain(lost).collect();
        (!all.is_empty()).then(|| all.join(";"))
    }

    /// The same node without failpoints: how it is started again after a crash.
    pub fn plain(&self) -> Self {
        Self { failpoints: None, ..self.clone() }
    }
}

/// A running `relatch dev`. Killed when dropped.
pub struct Node {
    child: Child,
    addr: String,
    log: PathBuf,
}

/// What a command answered.
#[derive(Debug)]
pub struct Answer {
    pub exit: i32,
    /// What stood on stdout, if that was one JSON document.
    pub json: Value,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    pub fn run(&self) -> &Value {
        &self.json["run"]
    }

    pub fn run_id(&self) -> String {
        self.json["run"]["runId"].as_str().unwrap_or_else(|| panic!("no run: {self:?}")).to_owned()
    }
}

impl Node {
    /// Starts it, and waits until clients can connect.
    pub fn start(options: &NodeOptions) -> Self {
        Self::start_unless_killed(options).unwrap_or_else(|| panic!("it was killed\n{}", tail(&options.log)))
    }

    /// The same; none if a failpoint killed it before.
    pub fn start_unless_killed(options: &NodeOptions) -> Option<Self> {
        let ended = |status: ExitStatus| {
            assert_eq!(status.signal(), Some(9), "it ended with {status:?}\n{}", tail(&options.log));
        };
        Self::start_unless_ended(options).map_err(ended).ok()
    }

    /// The same; what it said, if it refused to start.
    pub fn start_unless_refused(options: &NodeOptions) -> Result<Self, String> {
        Self::start_unless_ended(options).map_err(|status| {
            assert!(status.code().is_some_and(|code| code != 0), "{status:?}\n{}", tail(&options.log));
            std::fs::read_to_string(&options.log).expect("reading the node's log")
        })
    }

    fn start_unless_ended(options: &NodeOptions) -> Result<Self, ExitStatus> {
        let log = options.log.clone();
        let stderr = File::options().create(true).append(true).open(&log).expect("opening the node's log");
        let mut command = relatch_within(&options.within);
        command
            .args(["-o", "json"])
            .args(options.dev())
            .env("XDG_RUNTIME_DIR", options.run_dir())
            .env("RELATCH_LOG", "debug,openraft=warn,h2=warn,hyper=warn,tower=warn")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr);
        command.envs(options.env.iter().cloned());
        if let Some(failpoints) = options.points() {
            command.env("FAILPOINTS", failpoints);
        }
        let mut child = command.spawn().expect("starting relatch");
        let stdout = child.stdout.take().expect("its stdout is piped");
        let mut line = String::new();
        let mut reader = BufReader::new(stdout);
        reader.read_line(&mut line).expect("reading its first line");
        if line.is_empty() {
            return Err(child.wait().expect("waiting for relatch"));
        }
        let ready: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("no address ({error}): {line:?}\n{}", tail(&log)));
        let addr = ready["addr"].as_str().expect("an address").to_owned();
        // Whatever it prints later must find somebody who reads.
        std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
        Ok(Self { child, addr, log })
    }

    /// Starts it, and expects it to end by itself with an error. Gives what it said.
    pub fn refuses_to_start(options: &NodeOptions) -> String {
        let mut command = relatch();
        let command = command.args(options.dev()).env("XDG_RUNTIME_DIR", options.run_dir());
        let output = command.stdin(Stdio::null()).output().expect("running relatch");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "it started: {said}");
        said
    }

    pub fn addr(&self) -> &str {
        &self.addr
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, now.
    pub fn kill(mut self) {
        self.child.kill().expect("killing relatch");
        let status = self.child.wait().expect("waiting for relatch");
        assert_eq!(status.signal(), Some(9), "it ended by itself before: {status:?}\n{}", tail(&self.log));
    }

    /// The memory that it has, in KiB; none if it is gone.
    pub fn memory_kib(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    }

    /// SIGKILL, unless a failpoint was faster.
    pub fn kill_if_it_runs(mut self) {
        let _gone = self.child.kill();
        let status = self.child.wait().expect("waiting for relatch");
        assert_eq!(status.signal(), Some(9), "it ended by itself before: {status:?}\n{}", tail(&self.log));
    }

    /// Waits until a failpoint has killed it.
    pub fn killed_by_failpoint(mut self) {
        let status = wait_for("the failpoint to kill the node", || {
            self.child.try_wait().expect("waiting for relatch").ok_or_else(|| "it still runs".to_owned())
        });
        assert_eq!(status.signal(), Some(9), "it ended otherwise: {status:?}\n{}", tail(&self.log));
    }

    /// SIGTERM, and waits for an orderly end.
    pub fn stop(self) {
        self.terminate();
        self.ended();
    }

    /// SIGTERM alone.
    pub fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// SIGINT alone, as Ctrl-C sends it.
    pub fn interrupt(&self) {
        self.signal(rustix::process::Signal::INT);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("stopping relatch");
    }

    /// Waits until it has ended by itself with an error. Gives the end of what it said.
    pub fn fails(mut self) -> String {
        let status = wait_for("the node to end", || {
            self.child.try_wait().expect("waiting for relatch").ok_or_else(|| tail(&self.log))
        });
        assert_eq!(status.code(), Some(1), "it ended otherwise: {status:?}\n{}", tail(&self.log));
        tail(&self.log)
    }

    /// True while it has not ended.
    pub fn runs_still(&mut self) -> bool {
        self.child.try_wait().expect("waiting for relatch").is_none()
    }

    /// SIGTERM until it has ended, which then waits for no answer: signals that come close together are one.
    pub fn stop_at_once(mut self) {
        let status = wait_for("the node to end", || {
            self.terminate();
            self.child.try_wait().expect("waiting for relatch").ok_or_else(|| "it still runs".to_owned())
        });
        assert!(status.success(), "it ended with {status:?}\n{}", tail(&self.log));
    }

    /// Waits for an orderly end.
    pub fn ended(mut self) {
        let status = self.child.wait().expect("waiting for relatch");
        assert!(status.success(), "it ended with {status:?}\n{}", tail(&self.log));
    }

    /// `relatch recover TARGET --reason test …`, which gets its answer, whatever that is.
    pub fn recover(&self, target: &str, args: &[&str]) -> Answer {
        let mut all = vec!["recover", target, "--reason", "test"];
        all.extend(args);
        self.cli(&all)
    }

    /// The same, by a client whose answer nobody waits for: the node is about to be killed.
    pub fn ask(&self, target: &str, args: &[&str]) -> Asking {
        let child = relatch()
            .args(["-o", "json", "--addr", &self.addr, "recover", target, "--reason", "test"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("running relatch");
        Asking(child)
    }

    /// Any client command.
    pub fn cli(&self, args: &[&str]) -> Answer {
        answered(relatch().args(["-o", "json", "--addr", &self.addr]).args(args))
    }

    pub fn run(&self, id: &str) -> Value {
        let answer = self.cli(&["runs", "show", id]);
        assert_eq!(answer.exit, 0, "{answer:?}\n{}", tail(&self.log));
        if answer.json["run"].is_null() { answer.json } else { answer.json["run"].clone() }
    }

    pub fn runs(&self) -> Vec<Value> {
        let answer = self.cli(&["runs", "list"]);
        assert_eq!(answer.exit, 0, "{answer:?}\n{}", tail(&self.log));
        answer.json["runs"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until the run is as wanted.
    pub fn wait_for_run(&self, id: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        wait_for(what, || {
            let run = self.run(id);
            if wanted(&run) { Ok(run) } else { Err(format!("{run:#}\n{}", tail(&self.log))) }
        })
    }

    pub fn wait_for_status(&self, id: &str, status: &str) -> Value {
        let wanted = format!("RUN_STATUS_{status}");
        self.wait_for_run(id, &wanted, |run| run["status"] == wanted.as_str())
    }
}

/// A client that still asks. It goes when this is dropped.
pub struct Asking(Child);

impl Drop for Asking {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _gone = self.child.kill();
            let _reaped = self.child.wait();
        }
        if std::thread::panicking() {
            eprintln!("the node's log ends with:\n{}", tail(&self.log));
        }
    }
}

/// What a command answers.
pub fn answered(command: &mut Command) -> Answer {
    Answer::of(&command.stdin(Stdio::null()).output().expect("running relatch"))
}

impl Answer {
    /// What a command that has ended answered.
    pub fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let json = serde_json::from_str(&stdout).unwrap_or(Value::Null);
        Self { exit: output.status.code().unwrap_or(-1), json, stdout, stderr }
    }
}

/// The binary under test.
pub fn relatch() -> Command {
    relatch_within(&[])
}

/// The same, as what a command becomes.
fn relatch_within(command: &[String]) -> Command {
    let binary = env!("CARGO_BIN_EXE_relatch").to_owned();
    let mut parts = command.iter().chain([&binary]);
    let mut command = Command::new(parts.next().expect("the binary at least"));
    command.args(parts);
    // What the person who runs the tests has set for their own cluster is not meant for these.
    for variable in ["RELATCH_ADDR", "FAILPOINTS", "DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"] {
        command.env_remove(variable);
    }
    command
}

/// Waits for a condition, and says what it saw last if it has to give up.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let begun = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(saw) if begun.elapsed() > GIVE_UP_AFTER => panic!("gave up waiting for {what}: {saw}"),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// A point in the node at which it waits until it is let go on (`return(hold PATH)`).
pub struct Hold {
    path: PathBuf,
}

impl Hold {
    pub fn new(dir: &Path, name: &str) -> Self {
        Self { path: dir.join(name) }
    }

    /// The failpoint's action.
    pub fn action(&self) -> String {
        format!("return(hold {})", self.path.display())
    }

    /// From now on the node stops there: for a point that was released before the node began.
    pub fn arm(&self) {
        let _first = std::fs::remove_file(self.path.with_extension("reached"));
        std::fs::remove_file(&self.path).expect("arming a point that was released");
    }

    /// Waits until the node stands at the point.
    pub fn reached(&self) {
        let reached = self.path.with_extension("reached");
        wait_for("the node to reach the point", || {
            if reached.exists() { Ok(()) } else { Err("not there yet".to_owned()) }
        });
    }

    pub fn release(&self) {
        File::create(&self.path).expect("releasing the node");
    }
}

fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}
