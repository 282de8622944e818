//! A client that goes on asking while the test does other things.

use std::process::{Child, Stdio};

use super::node::{Answer, Node, relatch, wait_for};

/// A client command that runs. It goes when this is dropped.
pub struct Pending(Option<Child>);

impl Pending {
    /// Begins a client command.
    pub fn begin(node: &Node, args: &[&str]) -> Self {
        let child = relatch()
            .args(["-o", "json", "--addr", node.addr()])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("running relatch");
        Self(Some(child))
    }

    /// Begins `relatch recover TARGET --reason test …`.
    pub fn recover(node: &Node, target: &str, args: &[&str]) -> Self {
        Self::begin(node, &[&["recover", target, "--reason", "test"], args].concat())
    }

    /// Waits for its end.
    pub fn answer(mut self) -> Answer {
        let mut child = self.0.take().expect("it is answered once");
        // One document is less than what a pipe holds.
        wait_for("the command to end", || {
            child.try_wait().expect("waiting for relatch").ok_or_else(|| "it still runs".to_owned())
        });
        let output = child.wait_with_output().expect("reading its answer");
        Answer::of(&output)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _gone = child.kill();
            let _reaped = child.wait();
        }
    }
}
