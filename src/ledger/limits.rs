//! The limits that admission keeps. They are replicated, and changed by a command.

use serde::{Deserialize, Serialize};

use crate::model::ClusterTime;

/// dockerd may need 14 s and the start after the grace; a shorter margin would give up on work that goes on.
const MARGIN_LEAST_MS: u64 = 15_000;

/// The longest of each time that a deadline is made of, and the least that an answer is remembered for.
const DAY_MS: u64 = 86_400_000;

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
        self.broken(u32::MAX).into_iter().next().map_or(Ok(()), Err)
    }

    /// Every field that breaks a rule of these levels, in the order in which they are told.
    pub(super) fn broken(&self, rules: u32) -> Vec<InvalidLimits> {
        let mut broken = Vec::new();
        let mut hold = |holds: bool, field: &str, value: u64, rule: &str| {
            if !holds {
                broken.push(InvalidLimits { field: field.to_owned(), value, rule: rule.to_owned() });
            }
        };
        let at_most_a_day = "it is at most 86400000, which is a day";
        hold(
            self.margin_ms >= MARGIN_LEAST_MS,
            "margin_ms",
            self.margin_ms,
            "it is at least 15000, since the engine may need 14 s and the start after the grace",
        );
        // A deadline that never comes would keep a restart in flight for ever.
        hold(self.margin_ms <= DAY_MS, "margin_ms", self.margin_ms, at_most_a_day);
        hold(
            u64::from(self.grace_max_s) * 1000 <= DAY_MS,
            "grace_max_s",
            self.grace_max_s.into(),
            "it is at most 86400, which is a day",
        );
        // Deadlines are sums of these, and one that never comes would end no wait.
        for (field, value) in [
            ("connect_ms", self.connect_ms),
            ("dispatch_by_ms", self.dispatch_by_ms),
            ("inspect_ms", self.inspect_ms),
            ("replay_ms", self.replay_ms),
        ] {
            hold(value <= DAY_MS, field, value, at_most_a_day);
        }
        hold(
            self.grace_default_s <= self.grace_max_s,
            "grace_default_s",
            self.grace_default_s.into(),
            "it is at most grace_max_s",
        );
        // An open run is never left unlooked at for longer.
        for (field, value) in
            [("observe_first_ms", self.observe_first_ms), ("observe_longest_ms", self.observe_longest_ms)]
        {
            hold(value <= 60_000, field, value, "it is at most 60000");
        }
        for (field, value) in self.positive() {
            hold(value > 0, field, value, "it is at least 1");
        }
        if rules >= 3 {
            self.hold_to_the_third_rules(&mut hold);
        }
        broken
    }

    /// The limits of which 0 would be none at all.
    fn positive(&self) -> [(&'static str, u64); 16] {
        [
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
        ]
    }

    fn hold_to_the_third_rules(&self, hold: &mut impl FnMut(bool, &str, u64, &str)) {
        let minute_ms = 60_000;
        hold(
            self.inspect_ms <= minute_ms,
            "inspect_ms",
            self.inspect_ms,
            "it is at most 60000: an open run is looked at once a minute",
        );
        hold(
            self.quarantine_ms <= DAY_MS,
            "quarantine_ms",
            self.quarantine_ms,
            "it is at most 86400000, which is a day: a hold keeps a target closed for longer",
        );
        hold(
            self.request_memory_ms >= DAY_MS,
            "request_memory_ms",
            self.request_memory_ms,
            "it is at least 86400000, which is a day: a client may send a request again for so long",
        );
        let rule = format!(
            "it is at most attempts_window_ms, which is {}: an attempt that has left the window makes nobody wait",
            self.attempts_window_ms
        );
        let fits = self.backoff_longest_ms <= self.attempts_window_ms;
        hold(fits, "backoff_longest_ms", self.backoff_longest_ms, &rule);
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
        let waits: [(&str, u64, Set); 5] = [
            ("connect_ms", 86_400_000, |limits, ms| limits.connect_ms = ms),
            ("dispatch_by_ms", 86_400_000, |limits, ms| limits.dispatch_by_ms = ms),
            ("inspect_ms", 60_000, |limits, ms| limits.inspect_ms = ms),
            ("replay_ms", 86_400_000, |limits, ms| limits.replay_ms = ms),
            ("quarantine_ms", 86_400_000, |limits, ms| limits.quarantine_ms = ms),
        ];
        for (field, most_ms, set) in waits {
            let with = |ms| {
                let mut limits = Limits::default();
                set(&mut limits, ms);
                limits.check().map_err(|error| error.field)
            };
            assert_eq!((with(most_ms), with(most_ms + 1)), (Ok(()), Err(field.to_owned())));
        }
    }

    #[test]
    fn a_limit_of_zero_is_refused_by_name() {
        let error = Limits { in_flight_host: 0, ..Limits::default() }.check().unwrap_err();
        assert_eq!(error.field, "in_flight_host");
    }

    #[test]
    fn an_answer_is_remembered_for_a_day_at_least() {
        let with = |request_memory_ms| Limits { request_memory_ms, ..Limits::default() }.check();
        assert_eq!(with(86_400_000), Ok(()));
        assert_eq!(with(86_399_999).unwrap_err().field, "request_memory_ms");
    }

    #[test]
    fn a_pause_that_outlives_its_window_is_refused_and_not_cut() {
        let with = |backoff_longest_ms, attempts_window_ms| {
            Limits { backoff_longest_ms, attempts_window_ms, ..Limits::default() }.check()
        };
        assert_eq!(with(7_200_000, 7_200_000), Ok(()));
        let error = with(7_200_001, 7_200_000).unwrap_err();
        assert_eq!((error.field.as_str(), error.value), ("backoff_longest_ms", 7_200_001));
        assert!(error.rule.contains("attempts_window_ms, which is 7200000"), "{error}");
    }
}
