//! Applied is not recovered: what becomes of the container within the verify window.
//!
//! One that has a health check is to become healthy. One without is to run to the window's end: nothing then says
//! whether it is well, but that it went down again would have been seen. Under the first two levels of rules nobody
//! looked at those.
//!
//! Who could not look knows nothing: one that is not seen at the window's end is unverified, unless its engine answers
//! that it is gone. The first three levels of rules held it against the container.

use super::apply::Ledger;
use super::command::Verify;
use super::entry::Entry;
use super::outcome::{Outcome, Rejection};
use super::reason::{Reason, ReasonCode};
use super::run::{EventKind, Run};
use super::status::{Status, Verification};
use super::words;
use crate::model::{ClusterTime, ContainerState, Health, HealthCheck, Sighting};

/// The shortest verify window, and that of a container without a health check.
const SHORTEST_MS: u64 = 30_000;

/// The longest verify window.
const LONGEST_MS: u64 = 30 * 60_000;

/// How a verification ends.
struct Verdict {
    verification: Verification,
    /// In one line.
    detail: String,
    /// Why the container is not well, under rules that say so.
    unwell: Option<ReasonCode>,
}

impl Run {
    /// How long its container is watched once the run is applied; `None` if it was refused before a look.
    #[must_use]
    pub fn verify_window_ms(&self) -> Option<u64> {
        Some(window_ms(self.baseline.as_ref()?.health_check))
    }

    /// Where verification begins, `now` being when the run was applied.
    pub(super) fn verification_from(&self, now: ClusterTime, rules: u32) -> Verification {
        let health_check = self.baseline.as_ref().and_then(|baseline| baseline.health_check);
        if health_check.is_none() && rules < 3 {
            return Verification::Unverified;
        }
        Verification::Pending { until: now.after_ms(window_ms(health_check)) }
    }
}

impl Ledger {
    /// What a look at an applied run's container would end its verification with at `clock`; `None` if it would
    /// change nothing.
    #[must_use]
    pub fn verification_after(&self, clock: ClusterTime, look: &Verify) -> Option<Verification> {
        Some(verdict(self.rules_level(), self.run(&look.run)?, clock, look)?.verification)
    }

    /// Judges whether an applied run's container became well.
    pub(super) fn verify(&mut self, entry: &Entry, command: &Verify) -> Outcome {
        let Some((mut run, _)) = self.with_interlock(&command.run) else {
            return Outcome::Rejected(Rejection::NoInterlock { run: command.run.clone() });
        };
        let Some(verdict) = verdict(entry.rules, &run, entry.clock, command) else {
            return Outcome::Recorded { changed: false };
        };
        run.verification = verdict.verification;
        run.unwell = verdict.unwell.map(|code| Reason::new(code, verdict.detail.clone(), entry.wall));
        run.record(entry, EventKind::Verified, verdict.detail);
        self.put_run(run);
        Outcome::Recorded { changed: true }
    }
}

fn verdict(rules: u32, run: &Run, clock: ClusterTime, look: &Verify) -> Option<Verdict> {
    let (Verification::Pending { until }, Status::Applied { observed, .. }) = (run.verification, &run.status)
    else {
        return None;
    };
    // The life before says nothing about this one.
    let seen = look.sighting.as_ref().filter(|seen| {
        seen.engine_id == observed.engine_id
            && seen.container_id == observed.container_id
            && seen.started_at.instant().is_some_and(|at| at >= observed.started_at)
    });
    let is_healthy = seen.is_some_and(|seen| seen.health == Health::Healthy);
    if rules < 3 {
        return if is_healthy {
            Some(Verdict::plain(Verification::Recovered, "healthy"))
        } else if clock >= until {
            Some(Verdict::plain(Verification::NotRecovered, "not healthy within the verify window"))
        } else {
            None
        };
    }
    match seen {
        // Whatever its health check said last.
        Some(seen) if is_down(seen.state) => Some(Verdict::down(seen)),
        Some(_) if is_healthy => Some(Verdict::plain(Verification::Recovered, "healthy")),
        _ if clock < until => None,
        None => {
            let is_gone = look.gone.as_ref() == Some(&observed.engine_id);
            let is_known = rules < 4 || is_gone;
            let verification = if is_known { Verification::NotRecovered } else { Verification::Unverified };
            Some(Verdict::unseen(verification, look.unseen.as_deref()))
        }
        Some(seen) => Some(at_the_end(rules, run, seen)),
    }
}

/// What is said of a container that is there at the end of the window, and neither down nor healthy.
fn at_the_end(rules: u32, run: &Run, seen: &Sighting) -> Verdict {
    if matches!(seen.state, ContainerState::Restarting | ContainerState::Removing | ContainerState::Created) {
        return Verdict::down(seen);
    }
    let has_check = run.baseline.as_ref().is_some_and(|baseline| baseline.health_check.is_some());
    if has_check {
        let health = words::health(rules, seen.health);
        return Verdict {
            verification: Verification::NotRecovered,
            detail: format!("{health} at the end of the verify window"),
            unwell: Some(ReasonCode::TargetNotHealthy),
        };
    }
    let state = words::state(rules, seen.state);
    let detail = format!("{} is {state} at the end of the verify window, and has no health check", seen.name);
    Verdict { verification: Verification::Unverified, detail, unwell: None }
}

fn is_down(state: ContainerState) -> bool {
    matches!(state, ContainerState::Exited | ContainerState::Dead)
}

impl Verdict {
    fn plain(verification: Verification, detail: &str) -> Self {
        Self { verification, detail: detail.to_owned(), unwell: None }
    }

    fn down(seen: &Sighting) -> Self {
        let since = seen.finished_at.map_or_else(String::new, |at| format!(" since {at}"));
        Self {
            verification: Verification::NotRecovered,
            detail: format!(
                "it ran after the restart, and went down again: {} is {}{since}",
                seen.name,
                seen.state.as_str()
            ),
            unwell: Some(ReasonCode::TargetWentDown),
        }
    }

    fn unseen(verification: Verification, why: Option<&str>) -> Self {
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        Self {
            verification,
            detail: format!("it could not be seen at the end of the verify window{why}"),
            unwell: Some(ReasonCode::TargetNotSeen),
        }
    }
}

fn window_ms(check: Option<HealthCheck>) -> u64 {
    let Some(check) = check else { return SHORTEST_MS };
    let probes = check.interval_ms.saturating_add(check.timeout_ms).saturating_mul(3);
    check.start_period_ms.saturating_add(probes).clamp(SHORTEST_MS, LONGEST_MS)
}
