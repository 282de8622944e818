//! Whether what happened keeps the invariants, judged from what the wire and the run itself show.

use prost_types::Timestamp;

use crate::docker::format_instant;
use crate::model::EngineInstant;
use crate::rpc::v1::{Disposition, Incarnation, Run, RunStatus, Verification};

/// What was seen at the engine, by somebody who knows nothing of relatch.
#[derive(Debug)]
pub(super) struct Witness {
    /// The container's full id.
    pub(super) container_id: String,
    /// The restart requests that arrived whole.
    pub(super) posts: Vec<Post>,
    /// What they did.
    pub(super) effect: Effect,
}

/// A restart request that arrived whole.
#[derive(Debug, Clone)]
pub(super) struct Post {
    /// When, on this machine's wall clock; none if that could not be read.
    pub(super) at: Option<EngineInstant>,
    /// Its first line.
    pub(super) request_line: String,
}

/// What restart requests did, as far as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// How often the container was asked to stop.
    Stops(usize),
    /// What the engine itself says of `StartedAt`, when it is asked without relatch.
    StartedAt {
        /// Before relatch was asked for anything.
        before: EngineInstant,
        /// At the end.
        after: EngineInstant,
    },
}

/// What the demo saw.
#[derive(Debug)]
pub(super) struct Evidence<'a> {
    /// At the engine.
    pub(super) witness: &'a Witness,
    /// The run, at the end.
    pub(super) run: &'a Run,
    /// The run that the same request was answered with, when it was sent again at the end.
    pub(super) asked_again: &'a Run,
    /// Whether the story went on until the container's health was known.
    pub(super) is_health_awaited: bool,
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
    let Evidence { witness, run, asked_again, is_health_awaited } = evidence;
    let has = |kind: &str| run.events.iter().any(|event| event.kind == kind);
    let (is_once, seen_once) = once(witness);
    let (is_later, seen_later) = later(witness, run);
    let verdict = |invariant, kept, seen| Verdict { invariant, seen, kept };
    let mut verdicts = vec![
        verdict(
            "1. interlock first: decided and on disk before the POST left",
            first_kind(run) == "INTERLOCKED" && !decided_after_post(evidence),
            format!("the run begins with {}", first_kind(run)),
        ),
        verdict("2. once: one POST, through a crash and a repeated request", is_once, seen_once),
        verdict(
            "4. a lost answer is uncertain, not a no",
            has("UNRESOLVED") && !has("NOT_APPLIED"),
            format!("the run {} UNRESOLVED", if has("UNRESOLVED") { "was" } else { "never was" }),
        ),
        verdict(
            "5. applied only on evidence: a later StartedAt of the same container",
            run.status() == RunStatus::Applied && run.disposition() == Disposition::Applied && is_later,
            format!("{}, {}{seen_later}", super::super::view::status(run), run.settlement),
        ),
        verdict(
            "6. what is unresolved outlives the process that left it so",
            asked_again.run_id == run.run_id,
            format!("the same request was answered with run {}", short(&asked_again.run_id)),
        ),
    ];
    if *is_health_awaited {
        verdicts.push(verdict(
            "and it helped: the container is well again",
            run.verification() == Verification::Recovered,
            super::super::view::verification(run).to_owned(),
        ));
    }
    verdicts
}

fn first_kind(run: &Run) -> &str {
    run.events.first().map_or("nothing", |event| event.kind.as_str())
}

/// Whether there was one restart request, for this container, and what was seen of that.
fn once(witness: &Witness) -> (bool, String) {
    let posts = witness.posts.len();
    let is_one = posts == 1 && witness.posts[0].request_line.contains(&witness.container_id);
    match witness.effect {
        Effect::Stops(stops) => (is_one && stops == 1, format!("{posts} POST, {stops} stop")),
        Effect::StartedAt { .. } => (is_one, format!("{posts} POST")),
    }
}

/// Whether the run shows a later life of the same container, and the engine's own word agrees, where there is
/// one. What it says goes behind the settlement.
fn later(witness: &Witness, run: &Run) -> (bool, String) {
    let started = |life: &Incarnation| instant(life.started_at);
    let lives = run.baseline.as_ref().zip(run.observed.as_ref()).filter(|(baseline, observed)| {
        baseline.engine_id == observed.engine_id
            && baseline.container_id == observed.container_id
            && observed.container_id == witness.container_id
    });
    let instants = lives.and_then(|(baseline, observed)| started(baseline).zip(started(observed)));
    let is_later = instants.is_some_and(|(baseline, observed)| observed > baseline);
    match witness.effect {
        Effect::Stops(_) => (is_later, String::new()),
        Effect::StartedAt { before, after } => {
            // The container may have been started by others before and after; never between the two.
            let agrees = instants.is_some_and(|(baseline, observed)| before <= baseline && observed <= after);
            (is_later && agrees, format!("; the engine itself says {}", format_instant(after)))
        }
    }
}

/// Both clocks are of one machine here, so the decision's time and the POST's can be compared.
fn decided_after_post(evidence: &Evidence<'_>) -> bool {
    let decided = instant(evidence.run.decided_at);
    let posted = evidence.witness.posts.first().and_then(|post| post.at);
    decided.zip(posted).is_none_or(|(decided, posted)| decided > posted)
}

fn instant(at: Option<Timestamp>) -> Option<EngineInstant> {
    let at = at?;
    EngineInstant::new(at.seconds, u32::try_from(at.nanos).ok()?).ok()
}

/// The first digits of an id.
pub(super) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::v1;

    const CONTAINER: &str = "c0ffee";

    fn at(unix_s: i64) -> EngineInstant {
        EngineInstant::new(unix_s, 0).unwrap()
    }

    fn post() -> Post {
        let request_line = format!("POST /containers/{CONTAINER}/restart?t=10 HTTP/1.1");
        Post { at: Some(at(1_714_558_831)), request_line }
    }

    fn witness(posts: Vec<Post>, effect: Effect) -> Witness {
        Witness { container_id: CONTAINER.into(), posts, effect }
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
    fn broken(witness: &Witness, run: &Run, asked_again: &Run) -> Vec<String> {
        let verdicts = judge(&Evidence { witness, run, asked_again, is_health_awaited: true });
        let number = |verdict: &Verdict| verdict.invariant.split(['.', ' ']).next().unwrap_or("").to_owned();
        verdicts.iter().filter(|verdict| !verdict.kept).map(number).collect()
    }

    #[test]
    fn each_invariant_can_be_broken_alone() {
        let once = witness(vec![post()], Effect::Stops(1));
        assert_eq!(broken(&once, &good(), &good()), [""; 0]);
        let other = Post { request_line: "POST /containers/other/restart HTTP/1.1".into(), ..post() };
        for (posts, stops) in [(vec![post(), post()], 1), (vec![post()], 2), (vec![other], 1)] {
            assert_eq!(broken(&witness(posts, Effect::Stops(stops)), &good(), &good()), ["2"]);
        }
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

    #[test]
    fn the_engines_own_word_must_agree_with_what_the_run_shows() {
        let says =
            |before, after| witness(vec![post()], Effect::StartedAt { before: at(before), after: at(after) });
        assert_eq!(broken(&says(1, 2), &good(), &good()), [""; 0]);
        assert_eq!(broken(&says(0, 3), &good(), &good()), [""; 0], "others start containers too");
        assert_eq!(broken(&says(1, 1), &good(), &good()), ["5"], "the engine knows of no later start");
        assert_eq!(broken(&says(2, 2), &good(), &good()), ["5"], "the baseline was old news");
    }

    #[test]
    fn a_health_that_was_not_waited_for_is_not_judged() {
        let witness = witness(vec![post()], Effect::Stops(1));
        let run = Run { verification: Verification::Pending.into(), ..good() };
        let evidence = Evidence { witness: &witness, run: &run, asked_again: &run, is_health_awaited: false };
        assert!(judge(&evidence).iter().all(|verdict| verdict.kept));
    }
}
