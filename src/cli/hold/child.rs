//! A command that runs under a hold, and the exit code that a shell would give it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use futures::{Stream, StreamExt};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use super::super::output::Output;
use super::super::text::plain;
use super::signals::name;

/// What shells say of a command that is there and cannot be run, and of one that is not there.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Runs a command to its end, with the standard streams of this process. Passes on the signals that would not
/// reach it by the terminal; this process ends by none of them.
pub(super) async fn run(
    command: &[OsString],
    signals: impl Stream<Item = Signal>,
    output: &Output,
) -> anyhow::Result<u8> {
    let (program, arguments) = command.split_first().expect("clap gives a command only with its name");
    let mut child = match Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => {
            output.note(format!("running {}: {error}", plain(&program.to_string_lossy())));
            return Ok(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { CANNOT_RUN });
        }
    };
    let mut signals = std::pin::pin!(signals);
    loop {
        tokio::select! {
            ended = child.wait() => return Ok(code(ended?)),
            Some(signal) = signals.next() => pass_on(signal, &child, output),
        }
    }
}

/// As a shell tells how a command ended.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// SIGINT and SIGQUIT come from a terminal, to the whole group of processes: the command has them already.
fn pass_on(signal: Signal, child: &Child, output: &Output) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if matches!(signal, Signal::INT | Signal::QUIT) {
        return;
    }
    // Not reaped yet, so the id is still the command's.
    if let Some(pid) = pid
        && let Err(error) = kill_process(pid, signal)
    {
        output.note(format!("passing {} on to the command: {error}", name(signal)));
    }
}
