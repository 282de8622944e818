//! Waiting for a run to end.

use std::time::Duration;

use clap::ValueEnum;
use tokio::time::{Instant, timeout_at};

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
    /// How long to wait at most [default: until the run's own deadline and verify window have passed. That is 8s to
    /// send it, its grace, 20s, the window (30s without a health check, else its start period and three probes, 30s
    /// to 30m), and 10s; the limits may say otherwise]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    pub(super) wait_timeout: Option<Duration>,
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

/// How much longer a run may take, beyond its own times, until its last word is committed and told.
const SLACK: Duration = Duration::from_secs(10);

/// How long what is waited for may still take: what is left of the run's deadline, and of its verify window.
fn left(run: &Run, wait_for: WaitFor) -> Duration {
    let of = |length: &Option<prost_types::Duration>| {
        length.and_then(|length| Duration::try_from(length).ok()).unwrap_or_default()
    };
    let window = match (wait_for, run.status()) {
        (WaitFor::Applied, _) => Duration::ZERO,
        (WaitFor::Recovered, RunStatus::Applied) => of(&run.verification_ends_in),
        (WaitFor::Recovered, _) => of(&run.verify_window),
    };
    of(&run.deadline_in).saturating_add(window).saturating_add(SLACK)
}

/// Follows a run until what is waited for is known, or the time is over; gives the run as it is then. Without a time,
/// that is the run's own.
pub(super) async fn wait(
    nodes: &mut Nodes,
    output: &Output,
    run: Run,
    wait_for: WaitFor,
    within: Option<Duration>,
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
    let mut until = Instant::now() + within.unwrap_or_else(|| left(&latest, wait_for));
    while !wait_for.is_over(&latest) {
        let Ok(change) = timeout_at(until, follow.next()).await else {
            let over = match within {
                Some(within) => format!("the wait of {} is over", duration::show(within)),
                None => "its deadline and its verify window have passed".to_owned(),
            };
            output.note(format!("{over}, and the run goes on; follow it with `relatch runs show {run_id}`"));
            break;
        };
        if let Some(run) = change?.run {
            tell(&run);
            // What else happens to a run does not lengthen the wait: others may attach to it for ever.
            if within.is_none() && run.status() != latest.status() {
                until = Instant::now() + left(&run, wait_for);
            }
            latest = run;
        }
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
        assert_eq!((wait(&[]).wait, wait(&[]).wait_timeout), (None, None));
        assert_eq!(wait(&["--wait"]).wait, Some(WaitFor::Recovered));
        assert_eq!(wait(&["--wait=recovered"]).wait, Some(WaitFor::Recovered));
        assert_eq!(wait(&["--wait=applied"]).wait, Some(WaitFor::Applied));
        assert_eq!(wait(&["--wait-timeout", "2m"]).wait_timeout, Some(Duration::from_secs(120)));
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

    #[test]
    fn a_wait_without_a_time_lasts_for_what_is_left_of_the_runs_own() {
        let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
        let run = |status: RunStatus, deadline_in, verification_ends_in| Run {
            status: status.into(),
            deadline_in,
            verify_window: seconds(60),
            verification_ends_in,
            ..Run::default()
        };
        for (run, applied_s, recovered_s) in [
            (run(RunStatus::Interlocked, seconds(38), None), 48, 108),
            (run(RunStatus::Unresolved, seconds(0), None), 10, 70),
            (run(RunStatus::Applied, None, seconds(25)), 10, 35),
        ] {
            let left = |wait_for| left(&run, wait_for).as_secs();
            assert_eq!(
                (left(WaitFor::Applied), left(WaitFor::Recovered)),
                (applied_s, recovered_s),
                "{run:?}"
            );
        }
    }
}
