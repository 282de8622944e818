//! A run, for people.

use std::time::Duration;

use prost_types::Timestamp;

use super::duration;
use super::table::{Fields, Table};
use super::text::{plain, word};
use crate::docker::format_instant;
use crate::model::EngineInstant;
use crate::rpc::v1::{Disposition, Event, Guard, Incarnation, Run, RunStatus, Verification};

/// The status without its prefix.
pub(super) fn status(run: &Run) -> &'static str {
    word(run.status().as_str_name(), "RUN_STATUS_")
}

/// The verification without its prefix; empty if there is none.
pub(super) fn verification(run: &Run) -> &'static str {
    match run.verification() {
        Verification::Unspecified => "",
        other => word(other.as_str_name(), "VERIFICATION_"),
    }
}

/// A run on one page: what it is, where it stands, and why.
pub(super) fn run(run: &Run) -> String {
    let mut fields = Fields::new();
    fields.add("run", run.run_id.as_str());
    fields.add("target", run.target.as_str());
    if run.spelling != run.target {
        fields.add("asked as", run.spelling.as_str());
    }
    fields.add("status", status_line(run));
    fields.add("settled by", run.settlement.as_str());
    fields.add("verification", verification_line(run));
    if run.quarantined {
        let left = run.quarantine_ends_in.as_ref().map(length).unwrap_or_default();
        fields.add("quarantined", format!("yes: the target stays closed, for {left} at most"));
    }
    fields.add("reason", run.reason.as_str());
    fields.add("request id", run.request_id.as_str());
    fields.add("decided", format!("{}, term {}, node {}", time(run.decided_at.as_ref()), run.term, run.node));
    fields.add("guard", guard(run));
    fields.add("grace", grace(run));
    fields.add("expected", run.expect.as_ref().map(incarnation).unwrap_or_default());
    fields.add("baseline", run.baseline.as_ref().map(incarnation).unwrap_or_default());
    fields.add("observed", run.observed.as_ref().map(incarnation).unwrap_or_default());
    fields.add("exchange", run.exchange.as_str());
    fields.add("journal", run.journal.as_str());
    fields.show() + &reasons(run)
}

/// Why a run is refused or uncertain, since when, and what would end it. Empty if it is neither.
pub(super) fn reasons(run: &Run) -> String {
    let mut text = String::new();
    for reason in &run.reasons {
        let ends_in =
            reason.ends_in.as_ref().map(|d| format!(", in {} at most", length(d))).unwrap_or_default();
        text += &format!("\n{}: {}\n", plain(&reason.code), plain(&reason.detail));
        text += &format!("  since      {}\n", time(reason.since.as_ref()));
        text += &format!("  ends when  {}{ends_in}\n", plain(&reason.ends_when));
    }
    text
}

/// The history, oldest first.
pub(super) fn timeline(run: &Run) -> String {
    let mut table = Table::new(&["TIME", "AFTER", "EVENT", "TERM", "NODE", "DETAIL"]);
    for event in &run.events {
        table.row([
            time(event.time.as_ref()),
            after(event, run),
            event.kind.clone(),
            event.term.to_string(),
            event.node.to_string(),
            event.detail.clone(),
        ]);
    }
    table.show()
}

/// One event on a line of its own.
pub(super) fn event_line(event: &Event, run: &Run) -> String {
    plain(&format!("{:>8}  {:<16}  {}", after(event, run), event.kind, event.detail)) + "\n"
}

/// How long after the first event this one came, on the cluster clock.
fn after(event: &Event, run: &Run) -> String {
    let first = run.events.first().map_or(0, |first| first.cluster_time_ms);
    format!("+{}", duration::show(Duration::from_millis(event.cluster_time_ms.saturating_sub(first))))
}

fn status_line(run: &Run) -> String {
    let note = match (run.status(), run.disposition()) {
        (RunStatus::Refused, _) => " (nothing was sent)",
        (_, Disposition::Uncertain) => " (uncertain: no claim is made about the effect)",
        _ => "",
    };
    format!("{}{note}", status(run))
}

fn verification_line(run: &Run) -> String {
    match &run.verification_ends_in {
        Some(left) => format!("{}, for {} at most", verification(run), length(left)),
        None => verification(run).to_owned(),
    }
}

fn guard(run: &Run) -> &'static str {
    match run.guard() {
        Guard::Unspecified => "",
        Guard::Agent => "agent",
        Guard::LeaderOnly => "leader-only",
    }
}

fn grace(run: &Run) -> String {
    let Some(grace) = &run.grace else { return String::new() };
    let deadline = run.client_deadline.as_ref().map(length).unwrap_or_default();
    format!("{} (from {}); the whole exchange may take {deadline}", length(grace), run.grace_source)
}

fn incarnation(incarnation: &Incarnation) -> String {
    let started = match &incarnation.started_at {
        Some(at) => format!("started {}", time(Some(at))),
        None => "without a readable StartedAt".to_owned(),
    };
    format!("{}, {started}", incarnation.container_id)
}

/// An instant as Docker writes it.
pub(super) fn time(at: Option<&Timestamp>) -> String {
    let Some(at) = at else { return "?".into() };
    let nanos = u32::try_from(at.nanos).unwrap_or(0);
    EngineInstant::new(at.seconds, nanos).map_or_else(|_| "?".into(), format_instant)
}

fn length(duration: &prost_types::Duration) -> String {
    duration::show(Duration::try_from(*duration).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::v1::Reason;

    fn uncertain() -> Run {
        Run {
            run_id: "ab".repeat(16),
            target: "local/web".into(),
            spelling: "local/web".into(),
            status: RunStatus::Unresolved.into(),
            disposition: Disposition::Uncertain.into(),
            guard: Guard::Agent.into(),
            reason: "stuck\x1b[2J".into(),
            decided_at: Some(Timestamp { seconds: 1_714_558_830, nanos: 120_000_000 }),
            reasons: vec![Reason {
                code: "reply-lost".into(),
                detail: "connection reset".into(),
                since: Some(Timestamp { seconds: 1_714_558_831, nanos: 0 }),
                ends_when: "a later StartedAt shows the effect".into(),
                ends_in: Some(prost_types::Duration { seconds: 90, nanos: 0 }),
            }],
            events: vec![
                Event { kind: "INTERLOCKED".into(), cluster_time_ms: 1_000, ..Event::default() },
                Event { kind: "UNRESOLVED".into(), cluster_time_ms: 2_500, ..Event::default() },
            ],
            ..Run::default()
        }
    }

    #[test]
    fn an_uncertain_run_says_why_since_when_and_what_would_end_it() {
        let text = run(&uncertain());
        for expected in [
            "status   UNRESOLVED (uncertain: no claim is made about the effect)\n",
            "guard    agent\n",
            "reply-lost: connection reset\n",
            "  since      2024-05-01T10:20:31Z\n",
            "  ends when  a later StartedAt shows the effect, in 1m30s at most\n",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
        }
        assert!(!text.contains('\x1b') && !text.contains("RUN_STATUS_"), "{text}");
    }

    #[test]
    fn a_timeline_counts_from_the_decision() {
        let text = timeline(&uncertain());
        assert!(text.contains("+0ms") && text.contains("+1.5s"), "{text}");
    }
}
