//! A run of the ledger in its public form.

use prost_types::{Duration, Timestamp};

use super::words;
use crate::coordinator::Answer;
use crate::ledger::{
    DecisionKind, Disposition, Event, Expectation, Guard, Reason, Run, Status, Verification,
};
use crate::model::{ClusterTime, EngineInstant, Incarnation, Observation, WallTime};
use crate::rpc::v1;

/// An answer, as it is at cluster time `now`.
pub(super) fn answer(answer: &Answer, now: ClusterTime) -> v1::RequestRecoveryResponse {
    let decision = match answer.decision.kind {
        DecisionKind::Opened => v1::Decision::Opened,
        DecisionKind::Attached => v1::Decision::Attached,
        DecisionKind::Refused => v1::Decision::Refused,
    };
    v1::RequestRecoveryResponse {
        decision: decision.into(),
        run: Some(run(&answer.run, now)),
        ignored: answer.decision.ignored.clone(),
        repeated_answer: answer.decision.repeated,
        dry_run: false,
    }
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
        reasons: run
            .reasons()
            .iter()
            .cloned()
            .chain(run.quarantine_reason(now))
            .map(|r| reason(&r, now))
            .collect(),
        term: run.opened.term.0,
        node: run.opened.node.0,
        guard: interlock.map_or(v1::Guard::Unspecified, |i| guard(i.dispatcher.guard)).into(),
        baseline: run.baseline.as_ref().map(|baseline| incarnation(&baseline.incarnation)),
        observed: observed(run),
        verification: verification(run.verification).into(),
        events: run.events.iter().map(event).collect(),
        reason: run.request.reason.clone(),
        grace: interlock.map(|i| duration_ms(u64::from(i.grace.seconds) * 1_000)),
        settlement: settlement(&run.status),
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
        starts: Vec::new(),
        resolution: None,
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

fn settlement(status: &Status) -> String {
    match status {
        Status::Applied { evidence, .. } => evidence.to_string(),
        Status::NotApplied { proof } => proof.to_string(),
        Status::Superseded { by } => by.to_string(),
        Status::Refused { .. } | Status::Interlocked { .. } | Status::Unresolved { .. } => String::new(),
    }
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
        ends_when: reason.code.ends_when().to_owned(),
        ends_in: reason.until.map(|until| duration_ms(until.since_ms(now))),
    }
}

fn event(event: &Event) -> v1::Event {
    v1::Event {
        kind: words::event_kind(event.kind).to_owned(),
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

fn duration_ms(ms: u64) -> Duration {
    let seconds = i64::try_from(ms / 1_000).unwrap_or(i64::MAX);
    Duration { seconds, nanos: millis_as_nanos(ms) }
}

/// The part below a second.
fn millis_as_nanos(ms: u64) -> i32 {
    i32::try_from(ms % 1_000).unwrap_or(0) * 1_000_000
}
