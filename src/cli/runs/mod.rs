//! `relatch runs`: looks at runs.

mod list;
mod show;
mod watch;

use clap::Subcommand;

use super::address::Address;
use super::client::Nodes;
use super::exit::Exit;
use super::output::Output;

/// Looks at runs.
#[derive(Debug, Subcommand)]
pub(super) enum Runs {
    /// List runs, newest first
    List(list::List),
    /// Show one run with its history
    Show(show::Show),
    /// Follow runs as they change, until Ctrl-C
    Watch(watch::Watch),
}

impl Runs {
    pub(super) async fn run(self, addr: Vec<Address>, output: &Output) -> anyhow::Result<Exit> {
        let mut nodes = Nodes::new(addr)?;
        match self {
            Self::List(command) => command.run(&mut nodes, output).await,
            Self::Show(command) => command.run(&mut nodes, output).await,
            Self::Watch(command) => command.run(&mut nodes, output).await,
        }
    }
}
