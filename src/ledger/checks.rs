//! The checks of admission, one by one: what a request is refused for, and what a person is told who asks why.

use super::apply::Ledger;
use super::attempts::attempt_keys;
use super::command::{Baseline, Expectation, OpenInterlock};
use super::diagnosis::Diagnosis;
use super::entry::Entry;
use super::reason::{Reason, ReasonCode};
use super::run::Run;
use super::words;
use crate::model::{ContainerState, EngineId, Health, HostName, JournalId, WallTime};

/// One check, as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Which.
    pub name: CheckName,
    /// What was seen, in one line.
    pub detail: String,
    /// Why it blocks; empty if it passes.
    pub reasons: Vec<Reason>,
}

macro_rules! check_names {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// The checks, in the order in which they are made. Their texts are stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum CheckName {
            $($(#[$doc])* $name,)*
        }

        impl CheckName {
            /// Every check, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable text.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

check_names! {
    /// Whether another run stands for the container or the target.
    Standing = "standing-run";
    /// Whether the host is bound to the engine and the dispatcher that answered.
    Host = "host";
    /// Whether the container is running, and not paused, restarting or being removed.
    State = "state";
    /// Whether its health check says unhealthy, if the request is only for that.
    Health = "health";
    /// Whether it is the incarnation that the caller means.
    Expectation = "expectation";
    /// Whether the grace is within the limit.
    Grace = "grace";
    /// Whether a hold stands.
    Hold = "hold";
    /// Whether attempts are left in the window.
    Attempts = "attempts";
    /// Whether the pause after the last attempt is over.
    Backoff = "backoff";
    /// Whether the cluster has room for another restart in flight.
    InFlightCluster = "in-flight-cluster";
    /// Whether the host has room for another restart in flight.
    InFlightHost = "in-flight-host";
    /// Whether the host has room for another unresolved run.
    UnresolvedHost = "unresolved-host";
}

impl Ledger {
    /// Every check of a request against which `standing` stands.
    pub(super) fn checks(&self, now: &Entry, command: &OpenInterlock, standing: Option<&Run>) -> Vec<Check> {
        let baseline = &command.baseline;
        let incarnation = &baseline.incarnation;
        let wall = now.wall;
        let mut checks = vec![self.standing_check(now, standing, command.expect.as_ref())];
        let mut add =
            |name, detail: String, reasons: Vec<Reason>| checks.push(Check { name, detail, reasons });

        let host = command.target.host();
        let journal = &command.dispatcher.journal.journal;
        let refusal = self.host_refusal(wall, host, &incarnation.engine_id, journal);
        add(CheckName::Host, format!("engine {}", incarnation.engine_id), refusal.into_iter().collect());

        let doing = format!("{} is {}", baseline.name, words::state(now.rules, baseline.state));
        let refusal = state_refusal(baseline.state).map(|code| Reason::new(code, doing.clone(), wall));
        add(CheckName::State, doing, refusal.into_iter().collect());

        let health = words::health(now.rules, baseline.health);
        let mut reasons = Vec::new();
        if command.diagnosis == Diagnosis::Unhealthy && baseline.health != Health::Unhealthy {
            reasons.push(Reason::new(ReasonCode::TargetNotUnhealthy, health.clone(), wall));
        }
        add(CheckName::Health, health, reasons);

        let seen = format!("it is now {} started {}", incarnation.container_id, incarnation.started_at);
        let mut reasons = Vec::new();
        if !is_expected(command.expect.as_ref(), Some(baseline)) {
            reasons.push(Reason::new(ReasonCode::ExpectationMismatch, seen.clone(), wall));
        }
        add(CheckName::Expectation, seen, reasons);

        let (asked_s, most_s) = (command.grace.seconds, self.limits().grace_max_s);
        let mut reasons = Vec::new();
        if asked_s > most_s {
            let detail = format!("{asked_s} s is above the limit of {most_s} s");
            reasons.push(Reason::new(ReasonCode::GraceAboveLimit, detail, wall));
        }
        add(CheckName::Grace, format!("{asked_s} s of at most {most_s} s"), reasons);

        let held = self.held(&command.target, &[&baseline.name], &incarnation.container_id, now.clock);
        let count = self.holds().filter(|hold| hold.stands(now.clock)).count();
        add(CheckName::Hold, format!("of {count} in the cluster, none covers it"), held);

        checks.extend(self.attempt_checks(now, command));
        checks.extend(self.flight_checks(now, host));
        for check in &mut checks {
            if let Some(reason) = check.reasons.first() {
                check.detail.clone_from(&reason.detail);
            }
        }
        checks
    }

    fn standing_check(&self, now: &Entry, standing: Option<&Run>, expect: Option<&Expectation>) -> Check {
        let check = |detail: String, reasons| Check { name: CheckName::Standing, detail, reasons };
        match standing {
            None => check("no run stands for it".to_owned(), Vec::new()),
            Some(run) if attaches(run, expect) => {
                check(format!("run {} is open: a request attaches to it", run.id), Vec::new())
            }
            Some(run) if run.is_open() => {
                let detail = format!("run {} is open for another incarnation", run.id);
                let since = self.since(now, run.opened.wall);
                let reason = Reason::new(ReasonCode::ExpectationMismatch, detail.clone(), since);
                check(detail, vec![reason])
            }
            Some(run) => {
                let until = run.quarantine.map_or(now.clock, |quarantine| quarantine.until);
                let detail = format!("the exchange of run {} is not known to have ended", run.id);
                let since = self.since(now, run.quarantine_began().unwrap_or(now.wall));
                let reason = Reason::until(ReasonCode::Quarantined, detail.clone(), since, until);
                check(detail, vec![reason])
            }
        }
    }

    /// Whether a host is bound to what answered.
    pub(super) fn host_refusal(
        &self,
        wall: WallTime,
        name: &HostName,
        engine: &EngineId,
        journal: &JournalId,
    ) -> Option<Reason> {
        let Some(host) = self.host(name) else {
            return Some(Reason::new(ReasonCode::HostUnknown, format!("host {name} is not bound"), wall));
        };
        if host.engine_id != *engine {
            let detail = format!("engine {engine} answers, {} is bound", host.engine_id);
            return Some(Reason::new(ReasonCode::HostDiffers, detail, wall));
        }
        if host.dispatcher.journal.journal != *journal {
            let detail = format!("journal {journal} answers, {} is bound", host.dispatcher.journal.journal);
            return Some(Reason::new(ReasonCode::HostDiffers, detail, wall));
        }
        None
    }

    /// The fuller of both accounts decides.
    fn attempt_checks(&self, now: &Entry, command: &OpenInterlock) -> [Check; 2] {
        let limits = self.limits();
        let of = |key| {
            let account = self.attempts(key);
            account.map_or_else(Vec::new, |account| {
                let since = account.charges.last().and_then(|charge| self.run(&charge.run));
                let since = self.since(now, since.map_or(now.wall, |run| run.opened.wall));
                account.refusals(now.clock, since, limits)
            })
        };
        let keys = attempt_keys(&command.target, &command.baseline);
        let used = |key| self.attempts(key).map_or(0, |account| account.counted(now.clock, limits));
        let most_used = keys.iter().map(used).max().unwrap_or(0);
        let [by_name, by_container] = &keys;
        let mut reasons = of(by_name);
        for reason in of(by_container) {
            match reasons.iter_mut().find(|known| known.code == reason.code) {
                Some(known) if known.until < reason.until => *known = reason,
                Some(_) => {}
                None => reasons.push(reason),
            }
        }
        // Under the first rules they stood in the order in which the accounts were looked at.
        let (exhausted, backing_off) = reasons
            .into_iter()
            .partition(|reason| !self.rules(2) || reason.code == ReasonCode::AttemptsExhausted);
        let window_s = limits.attempts_window_ms / 1_000;
        let detail = format!("{most_used} of {} in {window_s} s are used", limits.attempts);
        [
            Check { name: CheckName::Attempts, detail, reasons: exhausted },
            Check {
                name: CheckName::Backoff,
                detail: "no pause is under way".to_owned(),
                reasons: backing_off,
            },
        ]
    }

    fn flight_checks(&self, now: &Entry, host: &HostName) -> [Check; 3] {
        let (mut cluster, mut on_host, mut unresolved) = (0_u32, 0_u32, 0_u32);
        let mut newest = None;
        for flight in self.index().flights() {
            let in_flight = flight.deadline.is_some_and(|deadline| now.clock < deadline);
            let here = flight.host == *host;
            cluster += u32::from(in_flight);
            on_host += u32::from(in_flight && here);
            unresolved += u32::from(!in_flight && here);
            newest = newest.max(Some(flight.opened));
        }
        let since = self.since(now, newest.map_or(now.wall, |(_, wall)| wall));
        let limits = self.limits();
        let check = |name, code, count: u32, most: u32| {
            let detail = format!("{count} of {most}");
            let reason = (count >= most).then(|| Reason::new(code, detail.clone(), since));
            Check { name, detail, reasons: reason.into_iter().collect() }
        };
        [
            check(CheckName::InFlightCluster, ReasonCode::InFlightCluster, cluster, limits.in_flight_cluster),
            check(CheckName::InFlightHost, ReasonCode::InFlightHost, on_host, limits.in_flight_host),
            check(CheckName::UnresolvedHost, ReasonCode::UnresolvedHost, unresolved, limits.unresolved_host),
        ]
    }

    /// Since when a reason stands. Under the first rules it was always the moment of the decision.
    fn since(&self, now: &Entry, known: WallTime) -> WallTime {
        if self.rules(2) { known } else { now.wall }
    }
}

/// True if a request that expects this attaches to the run.
pub(super) fn attaches(run: &Run, expect: Option<&Expectation>) -> bool {
    run.is_open() && is_expected(expect, run.baseline.as_ref())
}

/// True if the caller named no incarnation, or this one.
fn is_expected(expect: Option<&Expectation>, baseline: Option<&Baseline>) -> bool {
    expect.is_none_or(|expect| {
        baseline.is_some_and(|baseline| {
            expect.container_id == baseline.incarnation.container_id
                && expect.started_at == baseline.incarnation.started_at
        })
    })
}

/// Only a running container may be restarted: a restart never acts as a start, or undoes a pause.
fn state_refusal(state: ContainerState) -> Option<ReasonCode> {
    match state {
        ContainerState::Running => None,
        ContainerState::Paused => Some(ReasonCode::TargetPaused),
        ContainerState::Restarting => Some(ReasonCode::TargetRestarting),
        ContainerState::Removing => Some(ReasonCode::TargetRemoving),
        ContainerState::Created | ContainerState::Exited | ContainerState::Dead | ContainerState::Unknown => {
            Some(ReasonCode::TargetNotRunning)
        }
    }
}
