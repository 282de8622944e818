//! Commands as processes: what reaches them by the terminal, and what they leave behind.

mod holds;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tempfile::TempDir;

use holds::Node;

/// When waiting is given up. Not an expectation of speed: a busy machine is slow.
const GIVE_UP_AFTER: Duration = Duration::from_secs(120);

/// A command that runs under a hold: relatch and it are a group of processes, as a terminal makes one.
struct Held {
    folder: TempDir,
    relatch: Child,
}

impl Held {
    /// Runs `script` in a shell; its `$0` is a folder of the test. `launcher` is what starts relatch.
    fn begin(node: &Node, launcher: &str, script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Whoever runs the tests in the background may ignore SIGINT, which a shell then cannot trap.
        let relatch = Command::new("env")
            .args([
                "--default-signal",
                "sh",
                "-c",
                &format!("{launcher} exec \"$@\""),
                "sh",
                env!("CARGO_BIN_EXE_relatch"),
            ])
            .args([
                "-o",
                "json",
                "--addr",
                &node.addr,
                "hold",
                "--everything",
                "--reason",
                "test",
                "--by",
                "kim",
            ])
            .args(["--", "sh", "-c", script])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("starting relatch");
        Self { folder, relatch }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.relatch)
    }

    /// Waits until the command has made its file.
    fn await_file(&mut self, name: &str) {
        let begun = Instant::now();
        let file = self.file(name);
        while !file.exists() {
            let ended = self.relatch.try_wait().unwrap();
            assert!(
                ended.is_none() && begun.elapsed() < GIVE_UP_AFTER,
                "no {name} is made; relatch: {ended:?}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn end(self) -> Output {
        self.relatch.wait_with_output().unwrap()
    }
}

fn touch(path: &Path) {
    fs::write(path, "").unwrap();
}

/// Says that it runs, and goes on until it is told to end, one way or another.
const RUNS: &str = "trap 'exit 9' INT; trap 'exit 7' TERM; trap 'exit 6' HUP; : > $0/begun; \
                    while [ ! -e $0/go ]; do sleep 0.02; done; exit 5";

#[test]
fn the_commands_code_and_its_output_are_its_own() {
    let node = Node::serve();
    let mut held = Held::begin(&node, "", &format!("echo out; echo err >&2; {RUNS}"));
    held.await_file("begun");
    assert_eq!(node.log(), ["place"], "the hold stands while the command runs");
    touch(&held.file("go"));
    let output = held.end();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert_eq!(output.stdout, b"out\n", "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("err\n") && stderr.contains("lifted hold"), "{stderr}");
    assert_eq!(node.log(), ["place", "lift"]);
}

#[test]
fn an_interrupt_from_the_terminal_ends_the_command_and_then_the_hold() {
    let node = Node::serve();
    let mut held = Held::begin(&node, "", RUNS);
    held.await_file("begun");
    kill_process_group(held.pid(), Signal::INT).unwrap();
    let output = held.end();
    assert_eq!(output.status.code(), Some(9), "{output:?}");
    assert_eq!(node.log(), ["place", "lift"]);
}

#[test]
fn a_termination_of_relatch_alone_is_passed_on_to_the_command() {
    for (signal, code) in [(Signal::TERM, 7), (Signal::HUP, 6)] {
        let node = Node::serve();
        let mut held = Held::begin(&node, "", RUNS);
        held.await_file("begun");
        kill_process(held.pid(), signal).unwrap();
        let output = held.end();
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_eq!(node.log(), ["place", "lift"]);
    }
}

#[test]
fn what_nohup_ignores_stays_ignored_for_the_command() {
    let node = Node::serve();
    let mut held = Held::begin(&node, "trap '' HUP;", RUNS);
    held.await_file("begun");
    kill_process_group(held.pid(), Signal::HUP).unwrap();
    touch(&held.file("go"));
    let output = held.end();
    assert_eq!(output.status.code(), Some(5), "the command ended by itself: {output:?}");
    assert_eq!(node.log(), ["place", "lift"]);
}
