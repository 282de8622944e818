//! The command line, one file per command.
//!
//! Client commands know relatch only through its public gRPC interface, as any other client does. What a
//! command prints goes to stdout; messages go to stderr, and each error ends in what to do next.

mod address;
mod approve_start;
mod client;
mod demo;
mod dev;
mod docker;
mod duration;
mod exit;
mod explain;
#[cfg(test)]
mod fake;
mod follow;
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
mod status;
mod table;
mod telemetry;
mod text;
mod unhold;
mod view;
mod wait;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use tokio::runtime::Runtime;

use address::Address;
use exit::Exit;
use output::{Format, Output};

/// relatch restarts Docker containers for people who cannot afford a wrong restart.
#[derive(Debug, Parser)]
#[command(name = "relatch", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// What every command understands.
#[derive(Debug, clap::Args)]
struct Global {
    /// Nodes to ask, in this order; several are separated by commas
    #[arg(
        long,
        global = true,
        env = "RELATCH_ADDR",
        value_name = "ADDR",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:7370"
    )]
    addr: Vec<Address>,
    /// How to print: a table for people, or JSON for programs
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// How long what is under way may take once a command has ended.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

// Each command says of itself what it does: a comment here would take the place of its whole help.
#[derive(Debug, Subcommand)]
enum Command {
    Dev(dev::Dev),
    Recover(recover::Recover),
    #[command(subcommand)]
    Runs(runs::Runs),
    Explain(explain::Explain),
    Resolve(resolve::Resolve),
    ApproveStart(approve_start::ApproveStart),
    Hold(hold::Hold),
    Unhold(unhold::Unhold),
    Holds(holds::Holds),
    Limits(limits::Limits),
    Demo(demo::Demo),
    #[command(hide = true)]
    SimEngine(sim_engine::SimEngine),
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(cli.global.output);
    let result = Runtime::new().map_err(anyhow::Error::from).and_then(|runtime| {
        let ended = runtime.block_on(async {
            match cli.command {
                Command::Dev(command) => command.run(&output).await,
                Command::Recover(command) => command.run(cli.global.addr, &output).await,
                Command::Runs(command) => command.run(cli.global.addr, &output).await,
                Command::Explain(command) => command.run(cli.global.addr, &output).await,
                Command::Resolve(command) => command.run(cli.global.addr, &output).await,
                Command::ApproveStart(command) => command.run(cli.global.addr, &output).await,
                Command::Hold(command) => command.run(cli.global.addr, &output).await,
                Command::Unhold(command) => command.run(cli.global.addr, &output).await,
                Command::Holds(command) => command.run(cli.global.addr, &output).await,
                Command::Limits(command) => command.run(cli.global.addr, &output).await,
                Command::Demo(command) => command.run(&output).await,
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

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

    #[test]
    fn several_nodes_may_be_named() {
        let cli = Cli::try_parse_from(["relatch", "runs", "list", "--addr", "a:1,http://b:2"]).unwrap();
        let addr: Vec<String> = cli.global.addr.iter().map(ToString::to_string).collect();
        assert_eq!(addr, ["http://a:1", "http://b:2"]);
    }
}
