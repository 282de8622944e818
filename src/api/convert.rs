//! A run of the ledger in its public form.

use prost_types::{Duration, Timestamp};

use super::words;
use crate::coordinator::{Answer, Checked, Explanation};
use crate::ledger::{
    Assertion, DecisionKind, Diagnosis, Disposition, Event, Evidence, Expectation, Guard, Hold, HoldOwner,
    HoldScope, Limits, LimitsChange, Reason, Run, Start, Status, Verification,
};
use crate::model::{ClusterTime, EngineInstant, Exchange, Incarnation, Observation, Reply, WallTime};
use crate::rpc::v1;

/// An answer, as it is at cluster time `now`. What was not committed has no id.
pub(super) fn answer(answer: &Answer, now: ClusterTime) -> v1::RequestRecoveryResponse {
    let kind = answer.decision.kind;
    let mut run = run(&answer.run, now);
    if answer.dry_run && !answer.decision.repeated && kind != DecisionKind::Attached {
        run.run_id.clear();
        run.events.clear();
    }
    v1::RequestRecoveryResponse {
        decision: decision(kind).into(),
        run: Some(run),
        ignored: answer.decision.ignored.clone(),
        repeated_answer: answer.decision.repeated,
        dry_run: answer.dry_run,
    }
}

fn decision(kind: DecisionKind) -> v1::Decision {
    match kind {
        DecisionKind::Opened => v1::Decision::Opened,
        DecisionKind::Attached => v1::Decision::Attached,
        DecisionKind::Refused => v1::Decision::Refused,
    }
}

/// An explanation, as it is at cluster time `now`.
pub(super) fn explanation(explained: &Explanation, now: ClusterTime) -> v1::ExplainResponse {
    let found = explained.found.as_ref();
    let baseline = found.map(|(baseline, _)| baseline);
    let grace = found.map(|(_, grace)| grace);
    v1::ExplainResponse {
        target: explained.target.to_string(),
        decision: decision(explained.kind).into(),
        checks: explained.checks.iter().map(|(name, checked)| check(name, checked.as_ref(), now)).collect(),
        incarnation: baseline.map(|baseline| incarnation(&baseline.incarnation)),
        state: baseline.map(|baseline| baseline.state.as_str().to_owned()).unwrap_or_default(),
        health: baseline.map(|baseline| baseline.health.as_str().to_owned()).unwrap_or_default(),
        grace: grace.map(|grace| duration_ms(u64::from(grace.seconds) * 1_000)),
        grace_source: grace.map(|grace| words::grace_source(grace.source).to_owned()).unwrap_or_default(),
        guard: guard(explained.guard).into(),
        standing: explained.standing.as_ref().map(|standing| run(standing, now)),
    }
}

fn check(name: &str, checked: Option<&Checked>, now: ClusterTime) -> v1::Check {
    let verdict = match checked {
        None => v1::Verdict::NotMade,
        Some(checked) if checked.reasons.is_empty() => v1::Verdict::Pass,
        Some(_) => v1::Verdict::Block,
    };
    v1::Check {
        name: name.to_owned(),
        verdict: verdict.into(),
        detail: checked.map(|checked| checked.detail.clone()).unwrap_or_default(),
        reasons: reasons(checked.map(|checked| checked.reasons.as_slice()).unwrap_or_default(), now),
    }
}

/// Reasons, as they are at cluster time `now`.
pub(super) fn reasons(reasons: &[Reason], now: ClusterTime) -> Vec<v1::Reason> {
    reasons.iter().map(|known| reason(known, now)).collect()
}

/// A run, as it is at cluster time `now`.
pub(super) fn run(run: &Run, now: ClusterTime) -> v1::Run {
    let left = |until: ClusterTime| duration_ms(until.since_ms(now));
    let quarantined = run.is_quarantined(now);
    let interlock = run.interlock.as_ref();
    v1::Run {
        run_id: run.id.to_string(),
        request_id: run.request.id.as_ref().map(ToString::to_string).unwrap_or_default(),
        target: run.target.to_string(),
        status: status(&run.status).into(),
        disposition: disposition(run.disposition()).into(),
        quarantined,
        reasons: reasons(&run.reasons_at(now), now),
        term: run.opened.term.0,
        node: run.opened.node.0,
        guard: interlock.map_or(v1::Guard::Unspecified, |i| guard(i.dispatcher.guard)).into(),
        baseline: run.baseline.as_ref().map(|baseline| incarnation(&baseline.incarnation)),
        observed: observed(run),
        verification: verification(run.verification).into(),
        events: run.events.iter().map(event).collect(),
        reason: run.request.reason.clone(),
        grace: interlock.map(|i| duration_ms(u64::from(i.grace.seconds) * 1_000)),
        settlement: settlement(run),
        decided_at: Some(wall_time(run.opened.wall)),
        quarantine_ends_in: run.quarantine.filter(|_| quarantined).map(|q| left(q.until)),
        spelling: run.request.spelling.clone(),
        expect: run.expect.as_ref().map(expectation),
        exchange: run.exchange.as_ref().map(words::exchange).unwrap_or_default(),
        journal: run.word.as_ref().map(words::journal).unwrap_or_default(),
        client_deadline: interlock.map(|i| duration_ms(i.client_deadline_ms)),
        grace_source: interlock.map(|i| words::grace_source(i.grace.source).to_owned()).unwrap_or_default(),
        verification_ends_in: match run.verification {
            Verification::Pending { until } => Some(left(until)),
            _ => None,
        },
        starts: run.starts.iter().map(|known| start(known, run, now)).collect(),
        resolution: resolution(&run.status),
        if_unhealthy: run.diagnosis() == Diagnosis::Unhealthy,
        deadline_in: run.deadline().map(left),
        verify_window: interlock.and(run.verify_window_ms()).map(duration_ms),
        requested_by: run.request.by.clone().unwrap_or_default(),
        evidence: match &run.status {
            Status::Applied { evidence, .. } => evidence.as_str().to_owned(),
            _ => String::new(),
        },
        reply_status: reply_status(run.exchange.as_ref()),
    }
}

/// The public word for a status.
pub(super) fn status(status: &Status) -> v1::RunStatus {
    match status {
        Status::Refused { .. } => v1::RunStatus::Refused,
        Status::Interlocked { .. } => v1::RunStatus::Interlocked,
        Status::Unresolved { .. } => v1::RunStatus::Unresolved,
        Status::Applied { .. } => v1::RunStatus::Applied,
        Status::NotApplied { .. } => v1::RunStatus::NotApplied,
        Status::Superseded { .. } => v1::RunStatus::Superseded,
        Status::OperatorResolved { .. } => v1::RunStatus::OperatorResolved,
    }
}

fn disposition(disposition: Disposition) -> v1::Disposition {
    match disposition {
        Disposition::Applied => v1::Disposition::Applied,
        Disposition::NotApplied => v1::Disposition::NotApplied,
        Disposition::Uncertain => v1::Disposition::Uncertain,
    }
}

fn verification(verification: Verification) -> v1::Verification {
    match verification {
        Verification::NotStarted => v1::Verification::Unspecified,
        Verification::Pending { .. } => v1::Verification::Pending,
        Verification::Recovered => v1::Verification::Recovered,
        Verification::NotRecovered => v1::Verification::NotRecovered,
        Verification::Unverified => v1::Verification::Unverified,
    }
}

fn guard(guard: Guard) -> v1::Guard {
    match guard {
        Guard::Agent => v1::Guard::Agent,
        Guard::LeaderOnly => v1::Guard::LeaderOnly,
    }
}

fn settlement(run: &Run) -> String {
    match (&run.status, &run.observation) {
        (Status::Applied { evidence: Evidence::StartedAtOnly, .. }, _) if got_a_reply(run) => {
            "StartedAt only, and the reply was none of success".to_owned()
        }
        (Status::Applied { evidence, .. }, _) => evidence.to_string(),
        // The engine knew no such container: who is there instead was looked up.
        (Status::NotApplied { proof }, Some(Observation::Gone { successor, .. })) => match successor {
            Some(other) => format!("{proof}; another container, {other}, answers to the target"),
            None => format!("{proof}; the container is gone, and none answers to the target"),
        },
        (Status::NotApplied { proof }, _) => proof.to_string(),
        (Status::Superseded { by }, _) => by.to_string(),
        (Status::OperatorResolved { resolution }, _) => format!("the word of {}", resolution.by),
        (Status::Refused { .. } | Status::Interlocked { .. } | Status::Unresolved { .. }, _) => String::new(),
    }
}

fn got_a_reply(run: &Run) -> bool {
    matches!(run.exchange, Some(Exchange::Written { reply: Reply::Complete { .. }, .. }))
}

fn start(start: &Start, run: &Run, now: ClusterTime) -> v1::Start {
    v1::Start {
        start_id: start.id.to_string(),
        operator: start.by.clone(),
        reason: start.reason.clone(),
        approved_at: Some(wall_time(start.opened.wall)),
        term: start.fence.term.0,
        index: start.fence.index.0,
        exchange: start.exchange.as_ref().map(words::exchange).unwrap_or_default(),
        journal: start.word.as_ref().map(words::journal).unwrap_or_default(),
        outstanding: run.is_open() && start.is_outstanding(now),
        reply_status: reply_status(start.exchange.as_ref()),
    }
}

/// The status of the engine's whole answer; 0 if there is none.
fn reply_status(exchange: Option<&Exchange>) -> u32 {
    match exchange {
        Some(Exchange::Written { reply: Reply::Complete { status, .. }, .. }) => u32::from(*status),
        Some(Exchange::Written { .. } | Exchange::NeverWritten(_)) | None => 0,
    }
}

fn resolution(status: &Status) -> Option<v1::Resolution> {
    let Status::OperatorResolved { resolution } = status else { return None };
    let assertion = match resolution.assertion {
        None => v1::Assertion::Unspecified,
        Some(Assertion::Applied) => v1::Assertion::Applied,
        Some(Assertion::NotApplied) => v1::Assertion::NotApplied,
    };
    Some(v1::Resolution {
        operator: resolution.by.clone(),
        reason: resolution.reason.clone(),
        assertion: assertion.into(),
        accepted_late_post: resolution.accepted_late_post,
    })
}

/// A hold, as it is at cluster time `now`.
pub(super) fn hold(hold: &Hold, now: ClusterTime) -> v1::Hold {
    use v1::hold_scope::Scope;
    let scope = match &hold.scope {
        HoldScope::Everything => Scope::Everything(true),
        HoldScope::Host(host) => Scope::Host(host.to_string()),
        HoldScope::Project { host, project } => Scope::Project(format!("{host}/{project}")),
        HoldScope::Target(target) => Scope::Target(target.to_string()),
    };
    let owner = match hold.owner {
        HoldOwner::Operator => v1::HoldOwner::Operator,
        HoldOwner::Auto => v1::HoldOwner::Auto,
    };
    v1::Hold {
        hold_id: hold.id.to_string(),
        scope: Some(v1::HoldScope { scope: Some(scope) }),
        owner: owner.into(),
        operator: hold.by.clone(),
        reason: hold.reason.clone(),
        placed_at: Some(wall_time(hold.placed.wall)),
        ends_in: hold.until().map(|until| duration_ms(until.since_ms(now))),
    }
}

macro_rules! limit_fields {
    ($($name:ident)*) => {
        /// All limits.
        pub(super) fn limits(limits: &Limits) -> v1::LimitSet {
            v1::LimitSet { $($name: Some(limits.$name),)* }
        }

        /// The limits that a message names.
        pub(super) fn limits_change(message: &v1::LimitSet) -> LimitsChange {
            LimitsChange { $($name: message.$name,)* }
        }
    };
}

limit_fields! {
    grace_max_s grace_default_s margin_ms connect_ms dispatch_by_ms inspect_ms replay_ms observe_first_ms
    observe_longest_ms attempts attempts_window_ms backoff_first_ms backoff_longest_ms in_flight_cluster
    in_flight_host unresolved_host quarantine_ms request_memory_ms refusals_per_caller attaches_per_caller
    ended_runs ended_runs_ms
}

/// The life that settled the run, else the one that was seen last.
fn observed(run: &Run) -> Option<v1::Incarnation> {
    if let Status::Applied { observed, .. } = &run.status {
        return Some(incarnation(observed));
    }
    let Some(Observation::Seen(sighting)) = &run.observation else { return None };
    Some(v1::Incarnation {
        engine_id: sighting.engine_id.to_string(),
        container_id: sighting.container_id.to_string(),
        // What is no instant is left out; the reasons say what it was.
        started_at: sighting.started_at.instant().map(instant),
    })
}

fn incarnation(incarnation: &Incarnation) -> v1::Incarnation {
    v1::Incarnation {
        engine_id: incarnation.engine_id.to_string(),
        container_id: incarnation.container_id.to_string(),
        started_at: Some(instant(incarnation.started_at)),
    }
}

fn expectation(expect: &Expectation) -> v1::Incarnation {
    v1::Incarnation {
        engine_id: String::new(),
        container_id: expect.container_id.to_string(),
        started_at: Some(instant(expect.started_at)),
    }
}

fn reason(reason: &Reason, now: ClusterTime) -> v1::Reason {
    v1::Reason {
        code: reason.code.to_string(),
        detail: reason.detail.clone(),
        since: Some(wall_time(reason.since)),
        ends_when: reason.ends_when().to_owned(),
        ends_in: reason.until.map(|until| duration_ms(until.since_ms(now))),
    }
}

fn event(event: &Event) -> v1::Event {
    v1::Event {
        kind: event.kind.word().to_owned(),
        term: event.at.term.0,
        node: event.at.node.0,
        time: Some(wall_time(event.at.wall)),
        index: event.at.index.0,
        cluster_time_ms: event.at.clock.0,
        detail: event.detail.clone(),
        times: event.times,
    }
}

fn instant(instant: EngineInstant) -> Timestamp {
    Timestamp { seconds: instant.unix_s(), nanos: i32::try_from(instant.nanos()).unwrap_or(0) }
}

fn wall_time(time: WallTime) -> Timestamp {
    let seconds = i64::try_from(time.0 / 1_000).unwrap_or(i64::MAX);
    Timestamp { seconds, nanos: millis_as_nanos(time.0) }
}

/// Protobuf's durations end at about 10,000 years; what is longer has no JSON form, and is told as that.
fn duration_ms(ms: u64) -> Duration {
    const LONGEST_S: i64 = 315_576_000_000;
    match i64::try_from(ms / 1_000) {
        Ok(seconds @ 0..LONGEST_S) => Duration { seconds, nanos: millis_as_nanos(ms) },
        _ => Duration { seconds: LONGEST_S, nanos: 0 },
    }
}

/// The part below a second.
fn millis_as_nanos(ms: u64) -> i32 {
    i32::try_from(ms % 1_000).unwrap_or(0) * 1_000_000
}
