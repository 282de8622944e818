//! A scripted engine, and the options of a node that looks after it.

use relatch::sim::{Action, Engine, Rule};
use tempfile::TempDir;

use super::node::{Hold, NodeOptions};

/// Each group of tests adds what it needs.
pub struct World {
    pub engine: Engine,
    pub options: NodeOptions,
    pub dir: TempDir,
}

impl World {
    /// Has the engine listen on a socket of its own.
    pub async fn serving(engine: Engine) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let socket = dir.path().join("docker.sock");
        engine.serve_unix(&socket).await.expect("a listener");
        let options = NodeOptions::new(socket.to_str().expect("a path"), dir.path().join("data"));
        Self { engine, options, dir }
    }

    pub fn hold(&self, name: &str) -> Hold {
        Hold::new(self.dir.path(), name)
    }

    pub fn script(&self, name: &str, rule: Rule) {
        self.engine.script(name, [rule]).expect("the container exists");
    }

    pub fn act(&self, name: &str, action: Action) {
        self.engine.act(Some(name), action).expect("the container exists");
    }
}
