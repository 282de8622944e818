//! A run, for people.

use std::time::Duration;

use super::duration;
use super::next::{is_not_seen, next};
use super::table::{Fields, Table};
use super::text::{plain, word};
use super::times::instant;
pub(super) use super::times::{length, time};
use super::told::Told;
use crate::rpc::v1::{
    Assertion, Disposition, Event, Guard, Incarnation, Reason, Resolution, Run, RunStatus, Start,
    Verification,
};

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
    told(run, &mut Told::default())
}

/// The same with its history.
pub(super) fn page(run: &Run) -> String {
    let mut page = Told::default();
    let head = told(run, &mut page);
    format!("{head}\n{}", timeline(run, &mut page))
}

fn told(run: &Run, page: &mut Told) -> String {
    let mut fields = Fields::new();
    fields.add("run", run.run_id.as_str());
    fields.add("target", run.target.as_str());
    if run.spelling != run.target {
        fields.add("asked as", run.spelling.as_str());
    }
    fields.add("status", status_line(run));
    fields.add("settled by", run.settlement.as_str());
    let words = engines_words(&run.exchange).unwrap_or_default();
    if run.settlement.contains(words) {
        page.note(words);
    }
    if let Some(resolution) = &run.resolution {
        add_resolution(&mut fields, resolution);
    }
    fields.add("verification", verification_line(run));
    if run.quarantined {
        let left = run.quarantine_ends_in.as_ref().map(length).unwrap_or_default();
        fields.add("quarantined", format!("yes: the target stays closed, for {left} at most"));
    }
    fields.add("reason", run.reason.as_str());
    fields.add("asked by", run.requested_by.as_str());
    fields.add("request id", run.request_id.as_str());
    fields.add("decided", format!("{}, term {}, node {}", time(run.decided_at.as_ref()), run.term, run.node));
    restart(&mut fields, run);
    fields.add("observed", run.observed.as_ref().map(incarnation).unwrap_or_default());
    fields.add("exchange", page.tell(&run.exchange));
    page.note(words);
    fields.add("journal", run.journal.as_str());
    let starts: String = run.starts.iter().map(start).collect();
    let reasons: String = run.reasons.iter().map(|known| reason(known, &page.tell(&known.detail))).collect();
    fields.show() + &starts + &reasons + &next(run)
}

/// What the engine, or something before it, answered: the last part of an exchange.
fn engines_words(exchange: &str) -> Option<&str> {
    let (_, reply) = exchange.split_once("; ")?;
    Some(reply.split_once(": ")?.1)
}

/// What a request would restart, and how, if it were made, and why it would be refused: nothing of it has happened.
pub(super) fn proposal(run: &Run) -> String {
    let mut fields = Fields::new();
    fields.add("target", run.target.as_str());
    if run.spelling != run.target {
        fields.add("asked as", run.spelling.as_str());
    }
    restart(&mut fields, run);
    fields.show() + &reasons(&run.reasons)
}

/// What is to be restarted, and how.
fn restart(fields: &mut Fields, run: &Run) {
    fields.add("guard", guard(run.guard()));
    if run.if_unhealthy {
        fields.add("only if", "its health check says unhealthy");
    }
    fields.add("grace", grace(run));
    fields.add("expected", run.expect.as_ref().map(incarnation).unwrap_or_default());
    fields.add("baseline", run.baseline.as_ref().map(incarnation).unwrap_or_default());
}

/// Why something is refused, uncertain or in the way, since when, and what would end it.
pub(super) fn reasons(reasons: &[Reason]) -> String {
    reasons.iter().map(|known| reason(known, &known.detail)).collect()
}

fn reason(reason: &Reason, detail: &str) -> String {
    // The hold of a command that runs is renewed again and again.
    let bound = if reason.code == "held" { "unless it is renewed" } else { "at most" };
    let ends_in = reason.ends_in.as_ref().map(|d| format!(", in {} {bound}", length(d))).unwrap_or_default();
    format!(
        "\n{}: {}\n  since      {}\n  ends when  {}{ends_in}\n",
        plain(&reason.code),
        plain(detail),
        time(reason.since.as_ref()),
        plain(&reason.ends_when)
    )
}

/// The history, oldest first.
fn timeline(run: &Run, page: &mut Told) -> String {
    let mut table = Table::new(&["TIME", "AFTER (CLUSTER TIME)", "EVENT", "TERM", "NODE", "DETAIL"]);
    for event in &run.events {
        table.row([
            time(event.time.as_ref()),
            after(event, run),
            event_word(event, run).to_owned(),
            event.term.to_string(),
            event.node.to_string(),
            page.tell(&event.detail),
        ]);
    }
    table.show()
}

/// One event on a line of its own.
pub(super) fn event_line(event: &Event, run: &Run) -> String {
    plain(&format!("{:>8}  {:<16}  {}", after(event, run), event_word(event, run), event.detail)) + "\n"
}

/// What happened, in a word. The end of verification is told by what it came to: `VERIFIED` reads as if all were well.
fn event_word<'a>(event: &'a Event, run: &Run) -> &'a str {
    match run.verification() {
        Verification::Unspecified | Verification::Pending => &event.kind,
        _ if event.kind == "VERIFIED" => verification(run),
        _ => &event.kind,
    }
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
    match (&run.verification_ends_in, run.verification()) {
        (Some(left), _) => format!("{}, for {} at most", verification(run), length(left)),
        (None, Verification::Unverified) if is_not_seen(run) => {
            format!("{} (it could not be seen)", verification(run))
        }
        (None, Verification::Unverified) => format!("{} (it has no health check)", verification(run)),
        (None, _) => verification(run).to_owned(),
    }
}

/// How strongly restarts are fenced, in a few words.
pub(super) fn guard(guard: Guard) -> &'static str {
    match guard {
        Guard::Unspecified => "",
        Guard::Agent => "agent (beside the engine: it remembers what it sent, and refuses what is outdated)",
        Guard::LeaderOnly => "leader-only (no agent beside the engine: only the leader's own checks)",
    }
}

fn add_resolution(fields: &mut Fields, resolution: &Resolution) {
    fields.add("resolved by", format!("{}: {}", resolution.operator, resolution.reason));
    fields.add(
        "asserted",
        match resolution.assertion() {
            Assertion::Unspecified => "",
            Assertion::Applied => "applied (their word; it changes no claim)",
            Assertion::NotApplied => "not applied (their word; it changes no claim)",
        },
    );
    if resolution.accepted_late_post {
        fields.add("late restart", "accepted: the dispatcher had not acknowledged that nothing more is sent");
    }
}

fn start(start: &Start) -> String {
    let outstanding = if start.outstanding { "yes: it may still take effect" } else { "no" };
    let at = time(start.approved_at.as_ref());
    let mut text = format!("\nstart {}\n", plain(&start.start_id));
    for (name, value) in [
        ("approved by", format!("{}: {}", start.operator, start.reason)),
        ("approved", format!("{at}, term {}, index {}", start.term, start.index)),
        ("exchange", start.exchange.clone()),
        ("journal", start.journal.clone()),
        ("outstanding", outstanding.to_owned()),
    ] {
        if !value.is_empty() {
            text += &format!("  {name:<11}  {}\n", plain(&value));
        }
    }
    text
}

fn grace(run: &Run) -> String {
    let Some(grace) = &run.grace else { return String::new() };
    let deadline = run.client_deadline.as_ref().map(length).unwrap_or_default();
    let source = grace_source(&run.grace_source);
    format!("{} (from {source}); the whole exchange may take {deadline}", length(grace))
}

/// Where a grace came from, as it is called elsewhere.
pub(super) fn grace_source(source: &str) -> &str {
    match source {
        "request" => "the request",
        "label" => "its label relatch.grace",
        "stop-timeout" => "its own stop timeout",
        "policy" => "the limit grace_default_s",
        other => other,
    }
}

/// One life of one container.
pub(super) fn incarnation(incarnation: &Incarnation) -> String {
    let started = match &incarnation.started_at {
        Some(at) => format!("started {}", instant(at)),
        None => "without a readable StartedAt".to_owned(),
    };
    format!("{}, {started}", incarnation.container_id)
}

#[cfg(test)]
mod tests {
    use prost_types::Timestamp;

    use super::*;

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
            "guard    agent (beside the engine",
            "reply-lost: connection reset\n",
            "  since      2024-05-01T10:20:31.000Z\n",
            "  ends when  a later StartedAt shows the effect, in 1m30s at most\n",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
        }
        assert!(!text.contains('\x1b') && !text.contains("RUN_STATUS_"), "{text}");
        let held = Reason { code: "held".into(), ..uncertain().reasons.remove(0) };
        assert!(
            reasons(&[held]).ends_with(", in 1m30s unless it is renewed\n"),
            "a hold has no longest time"
        );
    }

    #[test]
    fn the_engines_long_words_stand_once_on_a_page() {
        let words = "failed to create task for container: ".repeat(3);
        let mut seen = uncertain();
        seen.exchange = format!("180 bytes written over a unix socket; reply 500: {words}");
        seen.reasons[0].detail = format!("500: {words}");
        let detail = format!("180 bytes written, reply 500 {words}");
        seen.events.push(Event { kind: "EXCHANGED".into(), detail, ..Event::default() });
        let text = page(&seen);
        assert_eq!(text.matches(words.trim_end()).count(), 1, "{text}");
        assert!(text.contains("reply-lost: 500: … (as above)\n"), "{text}");
        seen.settlement = format!("the engine refused it with 404: {words}; another container answers");
        assert_eq!(page(&seen).matches(words.trim_end()).count(), 1, "{}", page(&seen));
    }

    #[test]
    fn a_run_that_is_only_for_the_unhealthy_says_so() {
        assert!(!run(&uncertain()).contains("only if"));
        let text = run(&Run { if_unhealthy: true, ..uncertain() });
        assert!(text.contains("only if") && text.contains("health check says unhealthy\n"), "{text}");
    }

    #[test]
    fn a_run_says_who_asked_for_it_if_they_said_so() {
        assert!(!run(&uncertain()).contains("asked by"));
        let text = run(&Run { requested_by: "kim".into(), ..uncertain() });
        assert!(text.contains("asked by  kim\n"), "{text}");
    }

    #[test]
    fn a_timeline_counts_from_the_decision() {
        let text = timeline(&uncertain(), &mut Told::default());
        assert!(text.contains("+0ms") && text.contains("+1.5s"), "{text}");
        assert!(text.lines().next().unwrap().contains("AFTER (CLUSTER TIME)"), "{text}");
    }

    #[test]
    fn words_that_are_not_plain_are_explained() {
        let mut seen = uncertain();
        seen.set_status(RunStatus::Applied);
        seen.set_verification(Verification::Unverified);
        seen.set_guard(Guard::LeaderOnly);
        let text = run(&seen);
        assert!(text.contains("UNVERIFIED (it has no health check)\n"), "{text}");
        assert!(text.contains("leader-only (no agent beside the engine"), "{text}");
        seen.reasons = vec![Reason { code: "target-not-seen".into(), ..Reason::default() }];
        assert!(run(&seen).contains("UNVERIFIED (it could not be seen)\n"), "{}", run(&seen));
        let end = Event { kind: "VERIFIED".into(), ..Event::default() };
        let line = event_line(&end, &seen);
        assert!(line.contains("  UNVERIFIED ") && !line.contains(" VERIFIED"), "{line}");
    }

    #[test]
    fn a_resolution_is_shown_as_an_operators_word() {
        let resolution = Resolution {
            operator: "kim".into(),
            reason: "host is gone".into(),
            assertion: Assertion::NotApplied.into(),
            accepted_late_post: true,
        };
        let text = run(&Run { resolution: Some(resolution.clone()), ..uncertain() });
        for expected in [
            "resolved by   kim: host is gone\n",
            "asserted      not applied (their word; it changes no claim)\n",
            "late restart  accepted: ",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
        }
        let plain = Resolution { assertion: 0, accepted_late_post: false, ..resolution };
        let text = run(&Run { resolution: Some(plain), ..uncertain() });
        assert!(!text.contains("asserted") && !text.contains("late restart"), "{text}");
    }

    #[test]
    fn each_approved_start_is_shown() {
        let first = Start {
            start_id: "cd".repeat(16),
            operator: "kim".into(),
            reason: "it is down".into(),
            term: 3,
            index: 17,
            exchange: "refused: 500\nno space".into(),
            ..Start::default()
        };
        let second = Start { start_id: "ef".repeat(16), outstanding: true, ..first.clone() };
        let text = run(&Run { starts: vec![first, second], ..uncertain() });
        for expected in [
            &format!("\nstart {}\n  approved by  kim: it is down\n", "cd".repeat(16)),
            ", term 3, index 17\n  exchange     refused: 500 no space\n  outstanding  no\n",
            &format!("\nstart {}\n", "ef".repeat(16)),
            "  outstanding  yes: it may still take effect\n",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
        }
    }
}
