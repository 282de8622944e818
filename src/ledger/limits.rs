//! The limits that admission keeps. They are replicated, and changed by a command.

use serde::{Deserialize, Serialize};

/// dockerd may need 14 s and the start after the grace; a shorter margin would give up on work that goes on.
const MARGIN_LEAST_MS: u64 = 15_000;

/// The longest margin, and the longest grace: a day.
const LONGEST_MS: u64 = 86_400_000;

/// The replicated limits. All times are in the unit that the name ends in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// The longest grace that a restart may have.
    pub grace_max_s: u32,
    /// The grace where neither request, label nor container names one.
    pub grace_default_s: u32,
    /// What the client deadline adds to the grace. At least 15,000.
    pub margin_ms: u64,
    /// The longest that connecting to an engine may take.
    pub connect_ms: u64,
    /// How long a ticket is good for.
    pub dispatch_by_ms: u64,
    /// The longest that one inspect may take.
    pub inspect_ms: u64,
    /// The longest that a new leader's replay may take, whatever hangs.
    pub replay_ms: u64,
    /// The first pause between two observations.
    pub observe_first_ms: u64,
    /// The longest pause between two observations. At most 60,000.
    pub observe_longest_ms: u64,
    /// Attempts per window.
    pub attempts: u32,
    /// The window of the attempts.
    pub attempts_window_ms: u64,
    /// The pause after the first attempt of a window; it doubles with each further one.
    pub backoff_first_ms: u64,
    /// The longest such pause.
    pub backoff_longest_ms: u64,
    /// Restarts in flight in the cluster.
    pub in_flight_cluster: u32,
    /// Restarts in flight on one host.
    pub in_flight_host: u32,
    /// Unresolved runs past their deadline on one host.
    pub unresolved_host: u32,
    /// How long a target stays closed after the deadline of a run whose exchange is not known to have ended.
    pub quarantine_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            grace_max_s: 300,
            grace_default_s: 10,
            margin_ms: 20_000,
            connect_ms: 3_000,
            dispatch_by_ms: 5_000,
            inspect_ms: 2_000,
            replay_ms: 2_000,
            observe_first_ms: 500,
            observe_longest_ms: 60_000,
            attempts: 3,
            attempts_window_ms: 3_600_000,
            backoff_first_ms: 300_000,
            backoff_longest_ms: 3_600_000,
            in_flight_cluster: 5,
            in_flight_host: 2,
            unresolved_host: 8,
            quarantine_ms: 600_000,
        }
    }
}

/// Limits that contradict a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("limit {field} = {value} is not valid: {rule}")]
pub struct InvalidLimits {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: u64,
    /// The rule that it breaks, and so what to write instead.
    pub rule: &'static str,
}

impl Limits {
    /// Checks every rule. Nothing is clamped.
    ///
    /// # Errors
    ///
    /// [`InvalidLimits`] names the first field that breaks a rule.
    pub fn check(&self) -> Result<(), InvalidLimits> {
        let invalid = |field, value, rule| Err(InvalidLimits { field, value, rule });
        if self.margin_ms < MARGIN_LEAST_MS {
            return invalid(
                "margin_ms",
                self.margin_ms,
                "it is at least 15000, since the engine may need 14 s and the start after the grace",
            );
        }
        // A deadline that never comes would keep a restart in flight for ever.
        if self.margin_ms > LONGEST_MS {
            return invalid("margin_ms", self.margin_ms, "it is at most 86400000, which is a day");
        }
        if u64::from(self.grace_max_s) * 1000 > LONGEST_MS {
            return invalid("grace_max_s", self.grace_max_s.into(), "it is at most 86400, which is a day");
        }
        if self.grace_default_s > self.grace_max_s {
            return invalid("grace_default_s", self.grace_default_s.into(), "it is at most grace_max_s");
        }
        if self.observe_longest_ms > 60_000 {
            return invalid("observe_longest_ms", self.observe_longest_ms, "it is at most 60000");
        }
        let positive = [
            ("connect_ms", self.connect_ms),
            ("dispatch_by_ms", self.dispatch_by_ms),
            ("inspect_ms", self.inspect_ms),
            ("replay_ms", self.replay_ms),
            ("observe_first_ms", self.observe_first_ms),
            ("observe_longest_ms", self.observe_longest_ms),
            ("attempts", self.attempts.into()),
            ("attempts_window_ms", self.attempts_window_ms),
            ("in_flight_cluster", self.in_flight_cluster.into()),
            ("in_flight_host", self.in_flight_host.into()),
            ("unresolved_host", self.unresolved_host.into()),
        ];
        match positive.into_iter().find(|(_, value)| *value == 0) {
            Some((field, value)) => invalid(field, value, "it is at least 1"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_keep_every_rule() {
        assert_eq!(Limits::default().check(), Ok(()));
    }

    #[test]
    fn a_margin_below_what_the_engine_needs_is_refused_by_name() {
        let error = Limits { margin_ms: 14_999, ..Limits::default() }.check().unwrap_err();
        assert!(error.to_string().contains("margin_ms = 14999"), "{error}");
    }

    #[test]
    fn a_deadline_without_end_is_refused_by_name() {
        let margin = Limits { margin_ms: u64::MAX, ..Limits::default() };
        assert_eq!(margin.check().unwrap_err().field, "margin_ms");
        let grace = Limits { grace_max_s: u32::MAX, ..Limits::default() };
        assert_eq!(grace.check().unwrap_err().field, "grace_max_s");
    }

    #[test]
    fn a_limit_of_zero_is_refused_by_name() {
        let error = Limits { in_flight_host: 0, ..Limits::default() }.check().unwrap_err();
        assert_eq!(error.field, "in_flight_host");
    }
}
