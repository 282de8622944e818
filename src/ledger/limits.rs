//! The limits that admission keeps. They are replicated, and changed by a command.

use serde::{Deserialize, Serialize};

use crate::model::ClusterTime;

/// dockerd may need 14 s and the start after the grace; a shorter margin would give up on work that goes on.
const MARGIN_LEAST_MS: u64 = 15_000;

/// The longest of each time that a deadline is made of: a day.
const LONGEST_MS: u64 = 86_400_000;

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $default:expr, level $level:literal;)*) => {
        /// The replicated limits. All times are in the unit that the name ends in.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(from = "LimitsChange", into = "LimitsChange")]
        pub struct Limits {
            $($(#[$doc])* pub $name: $kind,)*
        }

        /// Some of the limits: those to change. It is also the stored form of all of them.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct LimitsChange {
            $(
                $(#[$doc])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $name: Option<$kind>,
            )*
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Limits {
            /// These limits with a change made to them.
            #[must_use]
            pub fn with(&self, change: &LimitsChange) -> Self {
                Self { $($name: change.$name.unwrap_or(self.$name),)* }
            }
        }

        impl From<LimitsChange> for Limits {
            fn from(stored: LimitsChange) -> Self {
                Self::default().with(&stored)
            }
        }

        /// Limits of later rules are left out while they are as at first, so that older builds read what
        /// was stored under older rules.
        impl From<Limits> for LimitsChange {
            fn from(limits: Limits) -> Self {
                let first = Limits::default();
                Self { $($name: ($level == 1 || limits.$name != first.$name).then_some(limits.$name),)* }
            }
        }
    };
}

limits! {
    /// The longest grace that a restart may have.
    grace_max_s: u32 = 300, level 1;
    /// The grace where neither request, label nor container names one.
    grace_default_s: u32 = 10, level 1;
    /// What the client deadline adds to the grace. At least 15,000.
    margin_ms: u64 = 20_000, level 1;
    /// The longest that connecting to an engine may take.
    connect_ms: u64 = 3_000, level 1;
    /// How long a ticket is good for.
    dispatch_by_ms: u64 = 5_000, level 1;
    /// The longest that one inspect may take.
    inspect_ms: u64 = 2_000, level 1;
    /// The longest that a new leader's replay may take, whatever hangs.
    replay_ms: u64 = 2_000, level 1;
    /// The first pause between two observations.
    observe_first_ms: u64 = 500, level 1;
    /// The longest pause between two observations. At most 60,000.
    observe_longest_ms: u64 = 60_000, level 1;
    /// Attempts per window.
    attempts: u32 = 3, level 1;
    /// The window of the attempts.
    attempts_window_ms: u64 = 3_600_000, level 1;
    /// The pause after the first attempt of a window; it doubles with each further one.
    backoff_first_ms: u64 = 300_000, level 1;
    /// The longest such pause.
    backoff_longest_ms: u64 = 3_600_000, level 1;
    /// Restarts in flight in the cluster.
    in_flight_cluster: u32 = 5, level 1;
    /// Restarts in flight on one host.
    in_flight_host: u32 = 2, level 1;
    /// Unresolved runs past their deadline on one host.
    unresolved_host: u32 = 8, level 1;
    /// How long a target stays closed after the deadline of a run whose exchange is not known to have ended.
    quarantine_ms: u64 = 600_000, level 1;
    /// How long an answered request is remembered at least.
    request_memory_ms: u64 = 86_400_000, level 2;
    /// How many refusals are remembered for one caller within that time.
    refusals_per_caller: u32 = 10_000, level 2;
    /// How many attached requests are remembered for one caller within that time.
    attaches_per_caller: u32 = 10_000, level 2;
    /// How many ended runs are kept.
    ended_runs: u32 = 100_000, level 2;
    /// How long ended runs are kept.
    ended_runs_ms: u64 = 90 * 86_400_000, level 2;
}

/// Limits that contradict a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("limit {field} = {value} is not valid: {rule}")]
pub struct InvalidLimits {
    /// The field.
    pub field: String,
    /// Its value.
    pub value: u64,
    /// The rule that it breaks, and so what to write instead.
    pub rule: String,
}

impl Limits {
    /// When an order that is committed at `clock` must have a connection, to be sent at all.
    pub(super) fn dispatched_by(&self, clock: ClusterTime) -> ClusterTime {
        clock.after_ms(self.dispatch_by_ms).after_ms(self.connect_ms)
    }

    /// Checks every rule. Nothing is clamped.
    ///
    /// # Errors
    ///
    /// [`InvalidLimits`] names the first field that breaks a rule.
    pub fn check(&self) -> Result<(), InvalidLimits> {
        let invalid = |field: &str, value, rule: &str| {
            Err(InvalidLimits { field: field.to_owned(), value, rule: rule.to_owned() })
        };
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
        // Deadlines are sums of these, and one that never comes would end no wait.
        let short = [
            ("connect_ms", self.connect_ms),
            ("dispatch_by_ms", self.dispatch_by_ms),
            ("inspect_ms", self.inspect_ms),
            ("replay_ms", self.replay_ms),
        ];
        if let Some((field, value)) = short.into_iter().find(|(_, value)| *value > LONGEST_MS) {
            return invalid(field, value, "it is at most 86400000, which is a day");
        }
        if self.grace_default_s > self.grace_max_s {
            return invalid("grace_default_s", self.grace_default_s.into(), "it is at most grace_max_s");
        }
        // An open run is never left unlooked at for longer.
        let pauses =
            [("observe_first_ms", self.observe_first_ms), ("observe_longest_ms", self.observe_longest_ms)];
        if let Some((field, value)) = pauses.into_iter().find(|(_, value)| *value > 60_000) {
            return invalid(field, value, "it is at most 60000");
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
            ("request_memory_ms", self.request_memory_ms),
            ("refusals_per_caller", self.refusals_per_caller.into()),
            ("attaches_per_caller", self.attaches_per_caller.into()),
            ("ended_runs", self.ended_runs.into()),
            ("ended_runs_ms", self.ended_runs_ms),
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
    fn a_wait_without_end_is_refused_by_name() {
        type Set = fn(&mut Limits, u64);
        let waits: [(&str, Set); 4] = [
            ("connect_ms", |limits, ms| limits.connect_ms = ms),
            ("dispatch_by_ms", |limits, ms| limits.dispatch_by_ms = ms),
            ("inspect_ms", |limits, ms| limits.inspect_ms = ms),
            ("replay_ms", |limits, ms| limits.replay_ms = ms),
        ];
        for (field, set) in waits {
            let with = |ms| {
                let mut limits = Limits::default();
                set(&mut limits, ms);
                limits.check().map_err(|error| error.field)
            };
            assert_eq!((with(86_400_000), with(86_400_001)), (Ok(()), Err(field.to_owned())));
        }
    }

    #[test]
    fn a_limit_of_zero_is_refused_by_name() {
        let error = Limits { in_flight_host: 0, ..Limits::default() }.check().unwrap_err();
        assert_eq!(error.field, "in_flight_host");
    }
}
