//! `relatch doctor`: what of this machine would get in the way of `relatch dev`.

mod check;
mod disk;
mod engine;
mod listen;
mod restarters;

use serde_json::json;

use super::dev::Setup;
use super::exit::Exit;
use super::output::Output;
use check::Status;

/// Look for what on this machine would get in the way of `relatch dev`.
///
/// Each check is ok, a warning or a failure, with what was seen and what to do about it. Nothing is changed:
/// one small file is written beside the data, to see how fast the disk is, and removed. The exit code is 1 if
/// something fails.
#[derive(Debug, clap::Args)]
pub(super) struct Doctor {
    #[command(flatten)]
    setup: Setup,
}

impl Doctor {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<Exit> {
        let mut checks = engine::look(&self.setup).await;
        let (data_dir, ephemeral_data) = (self.setup.data_dir(), self.setup.ephemeral_data);
        checks.extend(tokio::task::spawn_blocking(move || disk::look(data_dir, ephemeral_data)).await?);
        checks.push(listen::look(&self.setup));
        if output.is_json() {
            output.text(&format!("{:#}\n", json!({ "checks": checks })))?;
        } else {
            output.text(&check::table(&checks))?;
        }
        let fails = checks.iter().any(|check| check.status == Status::Fail);
        Ok(if fails { Exit::Error } else { Exit::Done })
    }
}
