//! Whether what happened keeps the invariants, judged from what the wire and the run itself show.

use crate::rpc::v1::{Disposition, Run, RunStatus, Verification};
use crate::sim::{EffectKind, Event, History};

/// What the demo saw.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    /// What arrived at the engine, byte for byte, by the engine's own log.
    pub(super) wire: &'a History,
    /// The container's full id.
    pub(super) container_id: &'a str,
    /// The run, at the end.
    pub(super) run: &'a Run,
    /// The run that the same request was answered with, when it was sent again at the end.
    pub(super) asked_again: &'a Run,
}

/// One thing that must be so.
#[derive(Debug)]
pub(super) struct Verdict {
    /// What, as an invariant with its number.
    pub(super) invariant: &'static str,
    /// What was seen.
    pub(super) seen: String,
    /// True if it is so.
    pub(super) kept: bool,
}

/// Judges each invariant that the story puts to the test.
pub(super) fn judge(evidence: &Evidence<'_>) -> Vec<Verdict> {
    let Evidence { wire, container_id, run, asked_again } = evidence;
    let posts = wire.posts(container_id).len();
    let stops = effects(wire, container_id, EffectKind::Sigterm);
    let has = |kind: &str| run.events.iter().any(|event| event.kind == kind);
    let (baseline, observed) = (run.baseline.as_ref(), run.observed.as_ref());
    let later = baseline.zip(observed).is_some_and(|(baseline, observed)| {
        let at = |life: &crate::rpc::v1::Incarnation| life.started_at.map(|at| (at.seconds, at.nanos));
        let same = baseline.engine_id == observed.engine_id && baseline.container_id == observed.container_id;
        same && observed.container_id == *container_id && at(observed) > at(baseline)
    });
    let verdict = |invariant, kept, seen| Verdict { invariant, seen, kept };
    vec![
        verdict(
            "1. interlock first: decided and on disk before the POST left",
            first_kind(run) == "INTERLOCKED" && !decided_after_post(evidence),
            format!("the run begins with {}", first_kind(run)),
        ),
        verdict(
            "2. once: one POST, through a crash and a repeated request",
            posts == 1 && stops == 1,
            format!("{posts} POST, {stops} stop"),
        ),
        verdict(
            "4. a lost answer is uncertain, not a no",
            has("UNRESOLVED") && !has("NOT_APPLIED"),
            format!("the run {} UNRESOLVED", if has("UNRESOLVED") { "was" } else { "never was" }),
        ),
        verdict(
            "5. applied only on evidence: a later StartedAt of the same container",
            run.status() == RunStatus::Applied && run.disposition() == Disposition::Applied && later,
            format!("{}, {}", super::super::view::status(run), run.settlement),
        ),
        verdict(
            "6. what is unresolved outlives the process that left it so",
            asked_again.run_id == run.run_id,
            format!("the same request was answered with run {}", short(&asked_again.run_id)),
        ),
        verdict(
            "and it helped: the container is well again",
            run.verification() == Verification::Recovered,
            super::super::view::verification(run).to_owned(),
        ),
    ]
}

fn first_kind(run: &Run) -> &str {
    run.events.first().map_or("nothing", |event| event.kind.as_str())
}

/// Both clocks are of one machine here, so the decision's time and the POST's can be compared.
fn decided_after_post(evidence: &Evidence<'_>) -> bool {
    let decided = evidence.run.decided_at.map(|at| (at.seconds, at.nanos));
    let posted = evidence.wire.posts(evidence.container_id).first().and_then(|entry| {
        let at = crate::docker::parse_instant(&entry.time).ok()?;
        Some((at.unix_s(), i32::try_from(at.nanos()).ok()?))
    });
    match (decided, posted) {
        (Some(decided), Some(posted)) => decided > posted,
        _ => true,
    }
}

fn effects(wire: &History, container: &str, wanted: EffectKind) -> usize {
    let is = |event: &Event| matches!(event, Event::Effect { container: of, effect, .. } if of == container && *effect == wanted);
    wire.entries.iter().filter(|entry| is(&entry.event)).count()
}

/// The first digits of an id.
pub(super) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use prost_types::Timestamp;

    use super::*;
    use crate::rpc::v1;
    use crate::sim::{Endpoint, Entry};

    const CONTAINER: &str = "c0ffee";

    fn post(request: u64) -> Event {
        Event::Request {
            connection: 1,
            request,
            method: "POST".into(),
            target: "/containers/c0ffee/restart?t=10".into(),
            endpoint: Endpoint::Restart,
            container: Some(CONTAINER.into()),
            head: String::new(),
            head_bytes: 180,
            rule: None,
        }
    }

    fn stop() -> Event {
        let (container, started_at) = (CONTAINER.to_owned(), String::new());
        Event::Effect { request: Some(1), container, effect: EffectKind::Sigterm, started_at }
    }

    fn wire(events: Vec<Event>) -> History {
        let time = "2024-05-01T10:20:31Z".to_owned();
        let entries = (1..).zip(events).map(|(seq, event)| Entry { seq, time: time.clone(), event });
        History { entries: entries.collect() }
    }

    fn good() -> Run {
        let life = |seconds| {
            Some(v1::Incarnation {
                engine_id: "e".into(),
                container_id: CONTAINER.into(),
                started_at: Some(Timestamp { seconds, nanos: 0 }),
            })
        };
        let event = |kind: &str| v1::Event { kind: kind.into(), ..v1::Event::default() };
        Run {
            run_id: "r".into(),
            status: RunStatus::Applied.into(),
            disposition: Disposition::Applied.into(),
            verification: Verification::Recovered.into(),
            baseline: life(1),
            observed: life(2),
            events: vec![event("INTERLOCKED"), event("UNRESOLVED"), event("APPLIED")],
            decided_at: Some(Timestamp { seconds: 1_714_558_830, nanos: 0 }),
            ..Run::default()
        }
    }

    /// The numbers of the broken invariants.
    fn broken(wire: &History, run: &Run, asked_again: &Run) -> Vec<String> {
        let verdicts = judge(&Evidence { wire, container_id: CONTAINER, run, asked_again });
        let number = |verdict: &Verdict| verdict.invariant.split(['.', ' ']).next().unwrap_or("").to_owned();
        verdicts.iter().filter(|verdict| !verdict.kept).map(number).collect()
    }

    #[test]
    fn each_invariant_can_be_broken_alone() {
        let once = wire(vec![post(1), stop()]);
        assert_eq!(broken(&once, &good(), &good()), [""; 0]);
        assert_eq!(broken(&wire(vec![post(1), stop(), post(2)]), &good(), &good()), ["2"]);
        type Change = fn(&mut Run);
        let changes: &[(&str, Change)] = &[
            ("1", |run| run.decided_at = Some(Timestamp { seconds: 1_714_558_832, nanos: 0 })),
            ("1", |run| run.events[0].kind = "EXCHANGED".into()),
            ("4", |run| run.events[1].kind = "OBSERVED".into()),
            ("4", |run| run.events[2].kind = "NOT_APPLIED".into()),
            ("5", |run| run.status = RunStatus::Unresolved.into()),
            ("5", |run| run.observed = run.baseline.clone()),
            ("5", |run| run.observed.as_mut().unwrap().container_id = "another".into()),
            ("and", |run| run.verification = Verification::Pending.into()),
        ];
        for (number, change) in changes {
            let mut run = good();
            change(&mut run);
            assert_eq!(broken(&once, &run, &run), [*number]);
        }
        let other = Run { run_id: "other".into(), ..good() };
        assert_eq!(broken(&once, &good(), &other), ["6"]);
    }
}
