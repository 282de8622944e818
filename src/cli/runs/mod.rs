//! `relatch runs`: looks at runs.

mod list;
mod show;
mod watch;

use clap::Subcommand;

use super::address::Address;
use super::client::Nodes;
use super::exit::Exit;
use super::output::Output;

/// Look at runs: every decision, and what became of it
// Each command says of itself what it does: a comment here would take the place of its whole help.
#[derive(Debug, Subcommand)]
pub(super) enum Runs {
    List(list::List),
    Show(show::Show),
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
