//! The limits by their names, and how their values are typed and shown.

use std::str::FromStr;
use std::time::Duration;

use super::super::duration;
use super::super::exit::WrongUsage;
use crate::rpc::v1::LimitSet;

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Seconds,
    Milliseconds,
    Things,
}

/// One limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limit {
    name: &'static str,
    unit: Unit,
    get: fn(&LimitSet) -> Option<u64>,
    /// False if the value does not fit.
    set: fn(&mut LimitSet, u64) -> bool,
}

macro_rules! limits {
    ($($name:ident: $unit:ident,)*) => {
        &[$(Limit {
            name: stringify!($name),
            unit: Unit::$unit,
            get: |limits| limits.$name.map(u64::from),
            set: |limits, value| {
                limits.$name = value.try_into().ok();
                limits.$name.is_some()
            },
        },)*]
    };
}

/// Every limit, in the order of the interface.
pub(super) const LIMITS: &[Limit] = limits! {
    grace_max_s: Seconds,
    grace_default_s: Seconds,
    margin_ms: Milliseconds,
    connect_ms: Milliseconds,
    dispatch_by_ms: Milliseconds,
    inspect_ms: Milliseconds,
    replay_ms: Milliseconds,
    observe_first_ms: Milliseconds,
    observe_longest_ms: Milliseconds,
    attempts: Things,
    attempts_window_ms: Milliseconds,
    backoff_first_ms: Milliseconds,
    backoff_longest_ms: Milliseconds,
    in_flight_cluster: Things,
    in_flight_host: Things,
    unresolved_host: Things,
    quarantine_ms: Milliseconds,
    request_memory_ms: Milliseconds,
    refusals_per_caller: Things,
    attaches_per_caller: Things,
    ended_runs: Things,
    ended_runs_ms: Milliseconds,
};

impl Limit {
    pub(super) fn name(self) -> &'static str {
        self.name
    }

    pub(super) fn value(self, limits: &LimitSet) -> Option<u64> {
        (self.get)(limits)
    }

    /// A value for people; a time also as it is.
    pub(super) fn show(self, value: u64) -> String {
        let time = match self.unit {
            Unit::Seconds => Duration::from_secs(value),
            Unit::Milliseconds => Duration::from_millis(value),
            Unit::Things => return value.to_string(),
        };
        format!("{} ({value})", duration::show(time))
    }

    fn parse(self, text: &str) -> Result<u64, String> {
        if let Ok(number) = text.parse() {
            return Ok(number);
        }
        match self.unit {
            Unit::Seconds => duration::parse(text).and_then(|time| match time.subsec_nanos() {
                0 => Ok(time.as_secs()),
                _ => Err(format!("{text:?} is not whole seconds")),
            }),
            Unit::Milliseconds => duration::parse(text)
                .and_then(|time| u64::try_from(time.as_millis()).map_err(|error| error.to_string())),
            Unit::Things => Err(format!("{text:?} is no number: it is a count, as in 5")),
        }
    }
}

/// One limit and its new value, as they are typed: `NAME=VALUE`.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    limit: Limit,
    value: u64,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || format!("{text:?}: write it as NAME=VALUE, as in margin_ms=30s or attempts=5");
        let (name, value) = text.split_once('=').ok_or_else(shape)?;
        let limit = LIMITS.iter().copied().find(|limit| limit.name == name).ok_or_else(|| {
            let names: Vec<&str> = LIMITS.iter().map(|limit| limit.name).collect();
            format!("there is no limit {name:?}; there are {}", names.join(", "))
        })?;
        let value = limit.parse(value).map_err(|error| format!("{name}: {error}"))?;
        let mut change = LimitSet::default();
        if !(limit.set)(&mut change, value) {
            return Err(format!("{name}: {value} is far above any limit"));
        }
        Ok(Self { limit, value })
    }
}

/// All of the settings together.
///
/// # Errors
///
/// [`WrongUsage`] if a limit is named twice.
pub(super) fn all(settings: &[Setting]) -> Result<LimitSet, WrongUsage> {
    let mut limits = LimitSet::default();
    for Setting { limit, value } in settings {
        if limit.value(&limits).is_some() {
            return Err(WrongUsage(format!("{} is given twice: give it once", limit.name)));
        }
        (limit.set)(&mut limits, *value);
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use prost_reflect::DescriptorPool;

    use super::*;

    #[test]
    fn every_limit_of_the_interface_has_its_name_and_its_unit_here() {
        let pool = DescriptorPool::decode(crate::rpc::DESCRIPTORS).unwrap();
        let message = pool.get_message_by_name("relatch.v1.LimitSet").unwrap();
        let theirs: Vec<String> = message.fields().map(|field| field.name().to_owned()).collect();
        let ours: Vec<&str> = LIMITS.iter().map(|limit| limit.name).collect();
        assert_eq!(ours, theirs);
        for limit in LIMITS {
            let unit = match limit.name {
                name if name.ends_with("_ms") => Unit::Milliseconds,
                name if name.ends_with("_s") => Unit::Seconds,
                _ => Unit::Things,
            };
            assert_eq!(limit.unit, unit, "{}", limit.name);
        }
    }

    #[test]
    fn every_limit_is_set_and_read_by_its_own_name() {
        let settings: Vec<Setting> =
            LIMITS.iter().zip(1..).map(|(limit, n)| format!("{}={n}", limit.name).parse().unwrap()).collect();
        let limits = all(&settings).unwrap();
        let read: Vec<u64> = LIMITS.iter().filter_map(|limit| limit.value(&limits)).collect();
        assert_eq!(read, (1..=LIMITS.len() as u64).collect::<Vec<_>>());
    }

    #[test]
    fn a_time_has_units_or_is_the_raw_value() {
        let limits = |text: &str| all(&[text.parse().unwrap()]).unwrap();
        assert_eq!(limits("margin_ms=30s").margin_ms, Some(30_000));
        assert_eq!(limits("margin_ms=30000").margin_ms, Some(30_000));
        assert_eq!(limits("grace_max_s=2m").grace_max_s, Some(120));
        assert_eq!(limits("grace_max_s=120").grace_max_s, Some(120));
        assert_eq!(limits("attempts=5").attempts, Some(5));
    }

    #[test]
    fn what_is_no_setting_is_refused_by_name() {
        for (text, said) in [
            ("attempts", "NAME=VALUE"),
            ("margin=30s", "there is no limit \"margin\"; there are grace_max_s, grace_default_s, margin_ms"),
            ("MARGIN_MS=30s", "there is no limit"),
            ("margin_ms=", "margin_ms: "),
            ("margin_ms=soon", "write it as 10s"),
            ("grace_max_s=1500ms", "whole seconds"),
            ("attempts=3s", "it is a count"),
            ("attempts=-1", "it is a count"),
            ("attempts=4294967296", "far above"),
        ] {
            let error = text.parse::<Setting>().unwrap_err();
            assert!(error.contains(said), "{text}: {said:?} is not in: {error}");
        }
    }
}
