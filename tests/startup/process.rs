//! A relatch that is started as a person starts it, with what it prints kept.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::node::{relatch, wait_for};

/// `relatch ARGS`, which ends by itself.
pub fn run(args: &[&str]) -> (i32, String, String) {
    finish(relatch().args(args))
}

/// The same for any command.
pub fn finish(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().expect("running relatch");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

/// One that runs on. Killed when dropped.
pub struct Running {
    child: Child,
    out: PathBuf,
    _dir: TempDir,
}

impl Running {
    pub fn start(command: &mut Command) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let child = command
            .stdin(Stdio::null())
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(dir.path().join("err")).unwrap())
            .spawn()
            .expect("starting relatch");
        Self { child, out, _dir: dir }
    }

    /// What it printed so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap()
    }

    /// What it told people beside that, so far.
    pub fn noted(&self) -> String {
        std::fs::read_to_string(self.out.with_file_name("err")).unwrap()
    }

    /// Waits until it has printed all of this, and gives all that it printed.
    pub fn says(&self, texts: &[&str]) -> String {
        wait_for(&format!("{texts:?}"), || {
            let said = self.said();
            if texts.iter().all(|text| said.contains(text)) {
                Ok(said)
            } else {
                Err(format!("{said}\n{}", self.noted()))
            }
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
