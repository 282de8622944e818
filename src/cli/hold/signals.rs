//! The signals that reach relatch while a command runs under a hold.

use std::pin::Pin;
use std::task::{Context, Poll};

use anyhow::Context as _;
use futures::Stream;
use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

/// What a terminal or an operator ends a program with.
const ENDING: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// A signal's name, as `kill -l` has it.
pub(super) fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::INT => "SIGINT",
        Signal::TERM => "SIGTERM",
        Signal::HUP => "SIGHUP",
        Signal::QUIT => "SIGQUIT",
        _ => "a signal",
    }
}

/// Each signal as it comes.
pub(super) struct Signals {
    listeners: Vec<(Signal, unix::Signal)>,
}

impl Signals {
    /// Takes the signals that end a program: from now on none ends this one by itself.
    ///
    /// One that was ignored when this process was started stays ignored, here and in the command: so does SIGHUP
    /// under `nohup`.
    pub(super) fn listen() -> anyhow::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = ignored_mask(&status);
        let listen = |signal: Signal| {
            let kind = SignalKind::from_raw(signal.as_raw());
            let listener = unix::signal(kind).with_context(|| format!("listening for {}", name(signal)))?;
            Ok((signal, listener))
        };
        let listeners = ENDING
            .into_iter()
            .filter(|signal| ignored & (1 << (signal.as_raw() - 1)) == 0)
            .map(listen)
            .collect::<anyhow::Result<_>>()?;
        Ok(Self { listeners })
    }
}

impl Stream for Signals {
    type Item = Signal;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Signal>> {
        for (signal, listener) in &mut self.listeners {
            if let Poll::Ready(Some(())) = listener.poll_recv(context) {
                return Poll::Ready(Some(*signal));
            }
        }
        Poll::Pending
    }
}

/// The signals that a process ignores, by its `/proc/PID/status`: bit N-1 is signal N. None, if it does not say.
fn ignored_mask(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_ignored_is_known() {
        assert_eq!(ignored_mask("Name:\trelatch\nSigIgn:\t0000000000001001\nSigCgt:\t2\n"), 0x1001);
        assert_eq!(ignored_mask(""), 0);
    }
}
