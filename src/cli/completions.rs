//! `relatch completions`.

use clap::Command;
use clap_complete::{Shell, generate};

use super::exit::Exit;
use super::output::Output;

/// Print what makes a shell complete relatch's commands and options.
///
/// For bash: relatch completions bash > ~/.local/share/bash-completion/completions/relatch
#[derive(Debug, clap::Args)]
pub(super) struct Completions {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self, mut command: Command, output: &Output) -> anyhow::Result<Exit> {
        let name = command.get_name().to_owned();
        // Made whole first: the library panics on a pipe that was closed.
        let mut script = Vec::new();
        generate(self.shell, &mut command, name, &mut script);
        output.text(&String::from_utf8(script)?)?;
        Ok(Exit::Done)
    }
}
