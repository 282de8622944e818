//! Installed rules: which of them the next request consumes.

use std::time::{Duration, Instant};

use super::{
    script::{Endpoint, Rule},
    wire::ConnectionRule,
};

/// What rules of both kinds have in common.
pub(crate) trait Limited: Clone {
    fn skip(&self) -> u32;
    /// `None` for ever.
    fn times(&self) -> Option<u32>;
    fn after_ms(&self) -> u64;
}

impl Limited for Rule {
    fn skip(&self) -> u32 {
        self.skip
    }
    fn times(&self) -> Option<u32> {
        (!self.forever).then_some(self.times)
    }
    fn after_ms(&self) -> u64 {
        self.after_ms
    }
}

impl Limited for ConnectionRule {
    fn skip(&self) -> u32 {
        self.skip
    }
    fn times(&self) -> Option<u32> {
        (!self.forever).then_some(self.times)
    }
    fn after_ms(&self) -> u64 {
        self.after_ms
    }
}

#[derive(Debug)]
struct Installed<R> {
    rule: R,
    since: Instant,
    skip_left: u32,
    times_left: Option<u32>,
}

/// Rules in order. The first that matches, is due and has let its number pass is taken.
#[derive(Debug)]
pub(crate) struct Queue<R> {
    installed: Vec<Installed<R>>,
}

impl<R> Default for Queue<R> {
    fn default() -> Self {
        Self { installed: Vec::new() }
    }
}

impl<R: Limited> Queue<R> {
    pub(crate) fn add(&mut self, rules: impl IntoIterator<Item = R>) {
        let since = Instant::now();
        self.installed.extend(rules.into_iter().map(|rule| Installed {
            skip_left: rule.skip(),
            times_left: rule.times(),
            since,
            rule,
        }));
    }

    pub(crate) fn clear(&mut self) {
        self.installed.clear();
    }

    /// Consumes one use of the first matching rule.
    pub(crate) fn take(&mut self, matches: impl Fn(&R) -> bool) -> Option<R> {
        let now = Instant::now();
        let mut taken = None;
        for entry in &mut self.installed {
            let due = now.duration_since(entry.since) >= Duration::from_millis(entry.rule.after_ms());
            if !due || entry.times_left == Some(0) || !matches(&entry.rule) {
                continue;
            }
            if entry.skip_left > 0 {
                entry.skip_left -= 1;
                continue;
            }
            if let Some(left) = &mut entry.times_left {
                *left -= 1;
            }
            taken = Some(entry.rule.clone());
            break;
        }
        self.installed.retain(|entry| entry.times_left != Some(0));
        taken
    }

    pub(crate) fn any(&self, matches: impl Fn(&R) -> bool) -> bool {
        self.installed.iter().any(|entry| matches(&entry.rule))
    }

    /// The rules that are not spent, with how often each may still be used.
    pub(crate) fn left(&self) -> impl Iterator<Item = (&R, Option<u32>)> {
        self.installed.iter().map(|entry| (&entry.rule, entry.times_left))
    }
}

/// Whether `rule` speaks of this endpoint.
pub(crate) fn matches(rule: &Rule, endpoint: Endpoint) -> bool {
    rule.on == Endpoint::Any || rule.on == endpoint
}
