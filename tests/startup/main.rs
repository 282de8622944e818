//! What relatch says and does when it starts: what it refuses, what it claims, how it ends, and what its doctor
//! sees. All of it through the real binary.

#[path = "../support/mod.rs"]
mod support;

mod banner;
mod commands;
mod container;
mod data_dir;
mod doctor;
mod ending;
mod full;
mod mount;
mod process;
mod refusals;

use relatch::sim::{ContainerSpec, Engine, StopBehaviour};
use support::scripted::World;

impl World {
    /// One container, `web`, which takes its whole grace to stop.
    async fn new() -> Self {
        let web = ContainerSpec::named("web").stop(StopBehaviour::IgnoresSigterm);
        Self::serving(Engine::builder().container(web).build().unwrap()).await
    }

    fn posts(&self) -> usize {
        self.engine.log().posts(&self.engine.container_id("web").unwrap()).len()
    }
}

/// Every file below a folder with what is in it. A socket is none.
fn content(folder: &std::path::Path) -> std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut found = std::collections::BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(content(&path));
        } else if path.is_file() {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}
