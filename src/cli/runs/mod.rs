//! `relatch runs`: looks at runs.

mod list;
mod show;
mod watch;

use clap::Subcommand;

use super::address::{Address, Addresses};
use super::client::Nodes;
use super::exit::Exit;
use super::output::Output;

/// Look at runs: every decision, and what became of it
#[derive(Debug, clap::Args)]
pub(super) struct Runs {
    #[command(flatten)]
    pub(super) addresses: Addresses,
    #[command(subcommand)]
    command: Command,
}

// Each command says of itself what it does: a comment here would take the place of its whole help.
#[derive(Debug, Subcommand)]
enum Command {
    List(list::List),
    Show(show::Show),
    Watch(watch::Watch),
}

impl Runs {
    pub(super) async fn run(self, addr: Vec<Address>, output: &Output) -> anyhow::Result<Exit> {
        let mut nodes = Nodes::new(addr)?;
        match self.command {
            Command::List(command) => command.run(&mut nodes, output).await,
            Command::Show(command) => command.run(&mut nodes, output).await,
            Command::Watch(command) => command.run(&mut nodes, output).await,
        }
    }
}
