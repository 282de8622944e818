//! The command line, one file per command.
//!
//! Client commands know relatch only through its public gRPC interface, as any other client does. What a
//! command prints goes to stdout; messages go to stderr, and each error ends in what to do next.

mod address;
mod approve_start;
mod bench;
mod client;
mod completions;
mod demo;
mod dev;
mod docker;
mod doctor;
mod duration;
mod exit;
mod explain;
#[cfg(test)]
mod fake;
mod follow;
#[cfg(feature = "failpoints")]
#[doc(hidden)]
pub mod fuzzing;
mod hold;
mod holds;
mod id_ref;
mod limits;
mod operator;
mod output;
mod recover;
mod resolve;
mod runs;
mod scope;
mod sim_engine;
mod stage;
mod status;
mod table;
mod telemetry;
mod text;
mod times;
mod told;
mod unhold;
mod view;
mod wait;

use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use tokio::runtime::Runtime;

use address::{Address, Addresses};
use exit::Exit;
use output::{Format, Output};

/// relatch restarts Docker containers for people who cannot afford a wrong restart.
#[derive(Debug, Parser)]
#[command(name = "relatch", version, about, arg_required_else_help = true)]
struct Cli {
    /// How to print: a table for people, or JSON for programs
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table)]
    output: Format,
    // It belongs behind the commands that ask a node, where it is explained.
    #[arg(long, hide = true, value_delimiter = ',')]
    addr: Vec<Address>,
    #[command(subcommand)]
    command: Command,
}

/// How long what is under way may take once a command has ended.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

// Each command says of itself what it does: a comment here would take the place of its whole help.
#[derive(Debug, Subcommand)]
enum Command {
    Dev(dev::Dev),
    Doctor(doctor::Doctor),
    Recover(Asks<recover::Recover>),
    Runs(AsksBy<runs::Runs>),
    Explain(Asks<explain::Explain>),
    Resolve(Asks<resolve::Resolve>),
    ApproveStart(Asks<approve_start::ApproveStart>),
    Hold(Asks<hold::Hold>),
    Unhold(Asks<unhold::Unhold>),
    Holds(Asks<holds::Holds>),
    Limits(Asks<limits::Limits>),
    Demo(demo::Demo),
    Bench(bench::Bench),
    Completions(completions::Completions),
    #[command(hide = true)]
    SimEngine(sim_engine::SimEngine),
}

impl Command {
    /// True if it asks a node, so that `--addr` means something to it.
    fn asks(&self) -> bool {
        !matches!(
            self,
            Self::Dev(_)
                | Self::Doctor(_)
                | Self::Demo(_)
                | Self::Bench(_)
                | Self::Completions(_)
                | Self::SimEngine(_)
        )
    }
}

// A command that asks a node.
#[derive(Debug, clap::Args)]
struct Asks<C: clap::Args> {
    #[command(flatten)]
    command: C,
    #[command(flatten)]
    addresses: Addresses,
}

// A command whose own commands ask a node.
#[derive(Debug, clap::Args)]
struct AsksBy<C: Subcommand> {
    #[command(subcommand)]
    command: C,
    #[command(flatten)]
    addresses: Addresses,
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let Cli { output, addr, command } = Cli::parse();
    let output = Output::new(output);
    require_asking(&command, &addr).unwrap_or_else(|error| error.exit());
    let nodes = |addresses: Addresses| nodes(addresses, &addr).unwrap_or_else(|error| error.exit());
    let result = Runtime::new().map_err(anyhow::Error::from).and_then(|runtime| {
        let ended = runtime.block_on(async {
            match command {
                Command::Dev(command) => command.run(&output).await,
                Command::Doctor(command) => command.run(&output).await,
                Command::Recover(asks) => asks.command.run(nodes(asks.addresses), &output).await,
                Command::Runs(asks) => asks.command.run(nodes(asks.addresses), &output).await,
                Command::Explain(asks) => asks.command.run(nodes(asks.addresses), &output).await,
                Command::Resolve(asks) => asks.command.run(nodes(asks.addresses), &output).await,
                Command::ApproveStart(asks) => asks.command.run(nodes(asks.addresses), &output).await,
                Command::Hold(asks) => asks.command.run(nodes(asks.addresses), &output).await,
                Command::Unhold(asks) => asks.command.run(nodes(asks.addresses), &output).await,
                Command::Holds(asks) => asks.command.run(nodes(asks.addresses), &output).await,
                Command::Limits(asks) => asks.command.run(nodes(asks.addresses), &output).await,
                Command::Demo(command) => command.run(&output).await,
                Command::Bench(command) => command.run(&output).await,
                Command::Completions(command) => command.run(Cli::command(), &output),
                Command::SimEngine(command) => command.run().await,
            }
        });
        // Writes that are under way end first: the database must be closed before the process takes its library
        // down. What hangs on a disk for longer must not keep a process that has ended.
        runtime.shutdown_timeout(ENDS_WITHIN);
        ended
    });
    let exit = result.unwrap_or_else(|error| {
        let exit = Exit::of_error(&error);
        if exit != Exit::Done {
            output.note(format!("error: {}", text::with_causes(error.chain())));
        }
        exit
    });
    exit.into()
}

/// Refuses nodes that were named before a command that asks none.
fn require_asking(command: &Command, before: &[Address]) -> Result<(), clap::Error> {
    if before.is_empty() || command.asks() {
        return Ok(());
    }
    let means_nothing = "--addr is for commands that ask a node, such as recover and runs: leave it out";
    Err(Cli::command().error(ErrorKind::ArgumentConflict, means_nothing))
}

/// The nodes that a command asks; `before` are those that were named before it.
fn nodes(addresses: Addresses, before: &[Address]) -> Result<Vec<Address>, clap::Error> {
    addresses.or(before).map_err(|error| Cli::command().error(ErrorKind::ValueValidation, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_a_command_has_its_exit_codes() {
        for (command, code) in [
            ("recover", "4 still uncertain"),
            ("explain", "3 it would be refused"),
            ("resolve", "0 resolved"),
            ("approve-start", "0 approved, 3 refused"),
            ("hold", "128+N if signal N"),
            ("unhold", "0 lifted"),
        ] {
            let help = Cli::try_parse_from(["relatch", command, "--help"]).unwrap_err().to_string();
            assert!(help.split_whitespace().collect::<Vec<_>>().join(" ").contains(code), "{help}");
        }
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{} has no help", command.get_name());
        }
    }

    fn asked(arguments: &[&str]) -> Result<Vec<String>, clap::Error> {
        let cli = Cli::try_parse_from(["relatch"].iter().chain(arguments))?;
        require_asking(&cli.command, &cli.addr)?;
        let addresses = match cli.command {
            Command::Recover(asks) => asks.addresses,
            Command::Runs(asks) => asks.addresses,
            other => panic!("{other:?} asks no node"),
        };
        let nodes = nodes(addresses, &cli.addr)?;
        Ok(nodes.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn several_nodes_may_be_named_before_or_after_a_command_that_asks_one() {
        let both = ["http://a:1", "http://b:2"];
        for arguments in [
            &["runs", "list", "--addr", "a:1,http://b:2"][..],
            &["runs", "list", "--addr", "a:1", "--addr", "b:2"],
            &["runs", "--addr", "a:1,b:2", "list"],
            &["--addr", "a:1,b:2", "runs", "list"],
            &["--addr", "a:1,b:2", "recover", "local/web", "--reason", "x"],
            &["--addr", "c:3", "recover", "local/web", "--reason", "x", "--addr", "a:1,b:2"],
        ] {
            assert_eq!(asked(arguments).unwrap(), both, "{arguments:?}");
        }
    }

    #[test]
    fn a_node_means_nothing_to_a_command_that_asks_none() {
        for arguments in [
            &["dev", "--addr", "a:1"][..],
            &["doctor", "--addr", "a:1"],
            &["completions", "bash", "--addr", "a:1"],
            &["demo", "--addr", "a:1"],
            &["--addr", "a:1", "dev"],
            &["--addr", "a:1", "doctor"],
        ] {
            let error = asked(arguments).expect_err(&format!("{arguments:?} was taken"));
            assert_eq!(error.exit_code(), 2, "{error}");
        }
    }
}
