//! Where the log of a long-running command goes: to stderr, one line per transition.

use std::io::{self, IsTerminal};

use anyhow::Context;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

const VARIABLE: &str = "RELATCH_LOG";

/// At debug level bollard prints whole replies, and with them what containers have in their environment.
const NO_REPLIES: &str = "bollard=info";

/// Sets up the log of this process. `RELATCH_LOG` filters it, as in `relatch=debug,openraft=warn`. With
/// `info,relatch::step=debug` it also says of each step of a restart how long it took.
pub(super) fn init(default: &str) -> anyhow::Result<()> {
    let filter = match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => EnvFilter::try_new(&text).with_context(|| {
            format!("{VARIABLE}={text:?} is no filter: write it as info, or relatch=debug")
        })?,
        _ => EnvFilter::new(default),
    };
    let filter = filter.add_directive(NO_REPLIES.parse().context("a directive of our own")?);
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(io::stderr().is_terminal())
        .try_init()
        .map_err(|error| anyhow::anyhow!("setting up the log: {error}"))
}
