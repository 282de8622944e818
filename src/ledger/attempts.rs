//! Attempts: how often a container may be restarted (invariant 9).
//!
//! Every interlock is charged when it commits, to the container's name on its engine and to its id; the
//! fuller of the two decides. So neither recreating nor renaming a container clears its account.

use serde::{Deserialize, Serialize};

use super::command::Baseline;
use super::limits::Limits;
use super::reason::{Reason, ReasonCode};
use crate::model::{ClusterTime, ContainerId, EngineId, RunId, Target, WallTime};

/// What attempts are charged to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AttemptKey {
    /// A container's canonical name on one engine.
    Name {
        /// The engine.
        engine_id: EngineId,
        /// The target's spelling after the host.
        name: String,
    },
    /// A container.
    Container(ContainerId),
}

/// The attempts of one key, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempts {
    /// What they are charged to.
    pub key: AttemptKey,
    /// The charges that still matter.
    pub charges: Vec<Charge>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    /// The run that made it.
    pub run: RunId,
    /// When its interlock committed.
    pub at: ClusterTime,
    /// False once it was given back and only its pause remains.
    pub counts: bool,
}

/// What becomes of a charge when its run is proven to have had no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refund {
    /// The attempt is given back, the pause stays: the engine could not be reached.
    KeepPause,
    /// Both are given back.
    Whole,
}

/// Both accounts that a container's attempts are charged to.
pub(super) fn attempt_keys(target: &Target, baseline: &Baseline) -> [AttemptKey; 2] {
    let incarnation = &baseline.incarnation;
    [
        AttemptKey::Name { engine_id: incarnation.engine_id.clone(), name: target.path().to_owned() },
        AttemptKey::Container(incarnation.container_id.clone()),
    ]
}

impl Attempts {
    pub(super) fn new(key: AttemptKey) -> Self {
        Self { key, charges: Vec::new() }
    }

    /// Charges one attempt, and forgets those that left the window.
    pub(super) fn charge(&mut self, run: &RunId, now: ClusterTime, limits: &Limits) {
        self.charges.retain(|charge| now.since_ms(charge.at) < limits.attempts_window_ms);
        self.charges.push(Charge { run: run.clone(), at: now, counts: true });
    }

    pub(super) fn give_back(&mut self, run: &RunId, refund: Refund) {
        match refund {
            Refund::Whole => self.charges.retain(|charge| charge.run != *run),
            Refund::KeepPause => {
                for charge in self.charges.iter_mut().filter(|charge| charge.run == *run) {
                    charge.counts = false;
                }
            }
        }
    }

    /// How many attempts of the window count.
    pub(super) fn counted(&self, now: ClusterTime, limits: &Limits) -> usize {
        let within = |charge: &&Charge| now.since_ms(charge.at) < limits.attempts_window_ms;
        self.charges.iter().filter(within).filter(|charge| charge.counts).count()
    }

    /// True while any charge can still stand in the way of anything.
    pub(super) fn matters(&self, now: ClusterTime, limits: &Limits) -> bool {
        self.charges.iter().any(|charge| now.since_ms(charge.at) < limits.attempts_window_ms)
    }

    /// Why no further attempt may be made now, if none may. `since` dates the reasons.
    pub(super) fn refusals(&self, now: ClusterTime, since: WallTime, limits: &Limits) -> Vec<Reason> {
        let window: Vec<&Charge> = self
            .charges
            .iter()
            .filter(|charge| now.since_ms(charge.at) < limits.attempts_window_ms)
            .collect();
        let counted: Vec<&&Charge> = window.iter().filter(|charge| charge.counts).collect();
        let mut reasons = Vec::new();
        let most = limits.attempts as usize;
        if counted.len() >= most {
            let frees = counted[counted.len() - most].at.after_ms(limits.attempts_window_ms);
            let detail = format!("{} of {most} attempts of the window are used up", counted.len());
            reasons.push(Reason::until(ReasonCode::AttemptsExhausted, detail, since, frees));
        }
        if let Some(last) = window.last() {
            let pause_ms = pause_ms(window.len() - 1, limits);
            let ends = last.at.after_ms(pause_ms);
            if now < ends {
                let detail = format!(
                    "{} s remain of a pause of {} s",
                    ends.since_ms(now).div_ceil(1000),
                    pause_ms / 1000
                );
                reasons.push(Reason::until(ReasonCode::BackingOff, detail, since, ends));
            }
        }
        reasons
    }
}

/// The pause after an attempt that had `earlier` others before it in the window.
fn pause_ms(earlier: usize, limits: &Limits) -> u64 {
    let doublings = u32::try_from(earlier).unwrap_or(u32::MAX).min(32);
    limits.backoff_first_ms.saturating_mul(1 << doublings).min(limits.backoff_longest_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Attempts {
        Attempts::new(AttemptKey::Container(ContainerId::new("a".repeat(64)).unwrap()))
    }

    fn run(n: u8) -> RunId {
        RunId::new(format!("{n:032x}")).unwrap()
    }

    fn codes(account: &Attempts, now_ms: u64) -> Vec<ReasonCode> {
        let limits = Limits::default();
        account.refusals(ClusterTime(now_ms), WallTime(0), &limits).iter().map(|r| r.code).collect()
    }

    #[test]
    fn the_pause_doubles_and_the_window_closes_after_the_third_attempt() {
        let limits = Limits::default();
        let mut account = account();
        account.charge(&run(1), ClusterTime(0), &limits);
        assert_eq!(codes(&account, 299_999), [ReasonCode::BackingOff]);
        assert_eq!(codes(&account, 300_000), []);
        account.charge(&run(2), ClusterTime(300_000), &limits);
        assert_eq!(codes(&account, 899_999), [ReasonCode::BackingOff]);
        assert_eq!(codes(&account, 900_000), []);
        account.charge(&run(3), ClusterTime(900_000), &limits);
        assert_eq!(codes(&account, 2_100_000), [ReasonCode::AttemptsExhausted]);
        assert_eq!(codes(&account, 3_600_000), [], "the oldest attempt left the window");
    }

    #[test]
    fn an_attempt_given_back_for_an_unreachable_engine_still_pauses() {
        let limits = Limits::default();
        let mut account = account();
        account.charge(&run(1), ClusterTime(0), &limits);
        account.give_back(&run(1), Refund::KeepPause);
        assert_eq!(codes(&account, 1), [ReasonCode::BackingOff]);
        account.give_back(&run(1), Refund::Whole);
        assert_eq!(codes(&account, 1), []);
    }
}
