//! Waiting for a run to end.

use std::time::Duration;

use clap::ValueEnum;
use tokio::time::timeout;

use super::client::Nodes;
use super::duration;
use super::follow::Follow;
use super::id_ref::short;
use super::output::Output;
use super::view;
use crate::rpc::v1::{Run, RunStatus, Verification};

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum WaitFor {
    /// The effect is known.
    Applied,
    /// The effect is known, and if it was applied, whether the container became well.
    Recovered,
}

/// Whether a command waits, and how long.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Wait {
    /// Wait until the effect is known (applied), or whether the container became well (recovered)
    #[arg(
        long,
        value_enum,
        value_name = "UNTIL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "recovered"
    )]
    pub(super) wait: Option<WaitFor>,
    /// How long to wait
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration::parse)]
    pub(super) wait_timeout: Duration,
}

impl WaitFor {
    /// True if nothing more comes that is waited for.
    fn is_over(self, run: &Run) -> bool {
        match run.status() {
            RunStatus::Unspecified | RunStatus::Interlocked | RunStatus::Unresolved => false,
            RunStatus::Refused
            | RunStatus::NotApplied
            | RunStatus::Superseded
            | RunStatus::OperatorResolved => true,
            RunStatus::Applied => {
                self == Self::Applied
                    || !matches!(run.verification(), Verification::Unspecified | Verification::Pending)
            }
        }
    }
}

/// Follows a run until what is waited for is known, or the time is over; gives the run as it is then.
pub(super) async fn wait(
    nodes: &mut Nodes,
    output: &Output,
    run: Run,
    wait_for: WaitFor,
    within: Duration,
) -> anyhow::Result<Run> {
    let mut latest = run;
    let mut told = 0;
    let mut tell = |run: &Run| {
        if !output.is_json() {
            for event in run.events.iter().skip(told) {
                output.note(view::event_line(event, run).trim_end());
            }
            told = run.events.len();
        }
    };
    tell(&latest);
    if wait_for.is_over(&latest) {
        return Ok(latest);
    }
    let run_id = latest.run_id.clone();
    output.note(format!("waiting for run {}; Ctrl-C ends the wait, and not the run", short(&run_id)));
    let mut follow = Follow::new(nodes, output, &run_id);
    let waited = timeout(within, async {
        while !wait_for.is_over(&latest) {
            if let Some(run) = follow.next().await?.run {
                tell(&run);
                latest = run;
            }
        }
        anyhow::Ok(())
    });
    match waited.await {
        Ok(ended) => ended?,
        Err(_) => output.note(format!(
            "the wait of {} is over and the run goes on; follow it with `relatch runs show {run_id}`",
            duration::show(within)
        )),
    }
    Ok(latest)
}

#[cfg(test)]
mod tests {
    use super::super::fake::parse;
    use super::*;

    #[test]
    fn a_bare_wait_is_for_recovery() {
        let wait = |arguments: &[&str]| parse::<Wait>(arguments).unwrap();
        assert_eq!((wait(&[]).wait, wait(&[]).wait_timeout), (None, Duration::from_secs(60)));
        assert_eq!(wait(&["--wait"]).wait, Some(WaitFor::Recovered));
        assert_eq!(wait(&["--wait=recovered"]).wait, Some(WaitFor::Recovered));
        assert_eq!(wait(&["--wait=applied"]).wait, Some(WaitFor::Applied));
        assert_eq!(wait(&["--wait-timeout", "2m"]).wait_timeout, Duration::from_secs(120));
        for wrong in [&["--wait=soon"][..], &["--wait-timeout", "2"]] {
            assert_eq!(parse::<Wait>(wrong).unwrap_err().exit_code(), 2, "{wrong:?}");
        }
    }

    #[test]
    fn a_wait_is_over_when_nothing_more_comes_that_is_waited_for() {
        use RunStatus as S;
        use Verification as V;
        for (status, verification, applied, recovered) in [
            (S::Interlocked, V::Unspecified, false, false),
            (S::Unresolved, V::Unspecified, false, false),
            (S::Applied, V::Unspecified, true, false),
            (S::Applied, V::Pending, true, false),
            (S::Applied, V::Recovered, true, true),
            (S::Applied, V::NotRecovered, true, true),
            (S::Applied, V::Unverified, true, true),
            (S::NotApplied, V::Unspecified, true, true),
            (S::Superseded, V::Unspecified, true, true),
            (S::Refused, V::Unspecified, true, true),
            (S::OperatorResolved, V::Unspecified, true, true),
        ] {
            let run = Run { status: status.into(), verification: verification.into(), ..Run::default() };
            assert_eq!(WaitFor::Applied.is_over(&run), applied, "{status:?} {verification:?}");
            assert_eq!(WaitFor::Recovered.is_over(&run), recovered, "{status:?} {verification:?}");
        }
    }
}
