//! What the evidence on record amounts to (invariants 4 and 5).
//!
//! A pure function of one run's facts. It is asked after every piece of evidence, and what it says once is
//! not asked again: a settled run never changes its mind.
//!
//! The order matters, and is the protocol's: a proof that nothing was sent comes before any look at
//! `StartedAt`, because a container can be started again by others.

use super::command::Baseline;
use super::entry::Entry;
use super::reason::{Reason, ReasonCode};
use super::run::{Interlock, Run};
use super::start::Start;
use super::status::{Evidence, Proof, Status, SupersededBy};
use crate::model::{
    ContainerState, EngineProof, Exchange, Hole, Holes, Incarnation, JournalWord, LostReply, NotWritten,
    NotWrittenCause, Observation, Reply, Sighting, StartedAt, Wire,
};

/// The status that the run's facts amount to. `now` dates reasons that are new.
pub(super) fn judge(
    run: &Run,
    baseline: &Baseline,
    interlock: &Interlock,
    now: &Entry,
    holes: Holes,
) -> Status {
    if let Some(proof) = proof_of_nothing(run, interlock, holes) {
        return Status::NotApplied { proof };
    }
    let may_have_left = run.exchange.is_some()
        || matches!(run.word, Some(JournalWord::Intent | JournalWord::Unreachable { .. }));
    if may_have_left && let Some(status) = settled_by_look(run, baseline, holes) {
        return status;
    }
    if holes.open(Hole::ReplyIsEvidence)
        && let Some(Exchange::Written { reply: Reply::Complete { status: 204, .. }, .. }) = &run.exchange
    {
        return Status::Applied {
            observed: baseline.incarnation.clone(),
            evidence: Evidence::StartedAtAndReply,
        };
    }
    let reasons = uncertainty(run, baseline, now);
    if may_have_left { Status::Unresolved { reasons } } else { Status::Interlocked { reasons } }
}

/// Invariant 4: the only ways to know that nothing happened and nothing will.
fn proof_of_nothing(run: &Run, interlock: &Interlock, holes: Holes) -> Option<Proof> {
    match &run.exchange {
        Some(Exchange::NeverWritten(why)) if !holes.open(Hole::ClosedGateIsUncertain) => {
            return Some(Proof::GateClosed(why.clone()));
        }
        Some(Exchange::Written { wire, reply: Reply::Complete { status, proof, message }, .. })
            if is_the_engines_refusal(*wire, *status, *proof, holes) =>
        {
            return Some(Proof::EngineRefused { status: *status, message: message.clone() });
        }
        Some(Exchange::Written { reply: Reply::Lost(LostReply { timed_out, detail, .. }), .. }) => {
            if *timed_out && holes.open(Hole::TimeoutIsNotApplied) {
                let cause = NotWrittenCause::Unreachable;
                return Some(Proof::GateClosed(NotWritten { cause, detail: detail.clone() }));
            }
            return None;
        }
        // Once the first write call was made, no other word can take it back.
        Some(_) => return None,
        None => {}
    }
    if let Some(why) = &run.never_handed_on {
        return Some(Proof::NeverHandedOn(why.clone()));
    }
    match &run.word {
        Some(JournalWord::NoIntent) => Some(Proof::NoIntent),
        Some(JournalWord::NotSent) => Some(Proof::GateClosed(NotWritten {
            cause: NotWrittenCause::Fenced,
            detail: format!("journal {} says not-sent", interlock.dispatcher.journal.journal),
        })),
        Some(JournalWord::Intent | JournalWord::Unreachable { .. }) | None => None,
    }
}

/// Proof (c): the engine itself looked and refused. Over TCP a proxy may have sent the request twice, and any
/// other status may come after the stop.
fn is_the_engines_refusal(wire: Wire, status: u16, proof: EngineProof, holes: Holes) -> bool {
    (wire == Wire::Unix || holes.open(Hole::TcpRefusalProves))
        && (proof == EngineProof::Proven || holes.open(Hole::AnyonesRefusalProves))
        && (matches!(status, 400 | 404) || holes.open(Hole::AnyStatusProves))
}

/// Invariant 5, and the end of an incarnation.
fn settled_by_look(run: &Run, baseline: &Baseline, holes: Holes) -> Option<Status> {
    match run.observation.as_ref()? {
        Observation::Seen(sighting) => {
            let observed = later_start(sighting, &baseline.incarnation, holes)?;
            Some(Status::Applied { observed, evidence: evidence(run) })
        }
        Observation::Gone { engine_id, successor } if *engine_id == baseline.incarnation.engine_id => {
            let by = match successor {
                Some(other) => SupersededBy::Replaced(other.clone()),
                None => SupersededBy::Removed,
            };
            Some(Status::Superseded { by })
        }
        Observation::Gone { .. } | Observation::Unreadable { .. } => None,
    }
}

/// The incarnation seen, if it is a strictly later life of the same container on the same engine.
fn later_start(sighting: &Sighting, before: &Incarnation, holes: Holes) -> Option<Incarnation> {
    let started_at = sighting.started_at.instant()?;
    let same = sighting.engine_id == before.engine_id && sighting.container_id == before.container_id;
    let later =
        started_at > before.started_at || (holes.open(Hole::EqualIsLater) && started_at == before.started_at);
    (same && later).then(|| Incarnation { started_at, ..before.clone() })
}

fn evidence(run: &Run) -> Evidence {
    let mut starts = run.starts.iter().filter(|start| start.may_have_acted()).peekable();
    if starts.peek().is_some() {
        let unknown = |start: &Start| {
            start.exchange.is_none() && matches!(start.word, Some(JournalWord::Unreachable { .. }))
        };
        return if starts.all(unknown) { Evidence::JournalUnreachable } else { Evidence::ByFollowUpStart };
    }
    match (&run.exchange, &run.word) {
        (Some(Exchange::Written { reply: Reply::Complete { status: 204, .. }, .. }), _) => {
            Evidence::StartedAtAndReply
        }
        (None, Some(JournalWord::Unreachable { .. })) => Evidence::JournalUnreachable,
        _ => Evidence::StartedAtOnly,
    }
}

/// Every reason for which nothing can be claimed. A reason that stands already keeps its date.
fn uncertainty(run: &Run, baseline: &Baseline, now: &Entry) -> Vec<Reason> {
    let mut reasons = vec![about_the_exchange(run)];
    if let Some(JournalWord::Unreachable { detail }) = &run.word {
        reasons.push((ReasonCode::JournalUnreachable, detail.clone()));
    }
    if run.exchange.is_some() || run.word.is_some() {
        reasons.extend(about_the_look(run, baseline));
    }
    let awaited = run.outstanding_start(now.clock).map(|start| {
        let detail = format!("start {} was approved by {}", start.id, start.by);
        Reason::until(ReasonCode::StartAwaited, detail, start.opened.wall, start.deadline)
    });
    reasons
        .into_iter()
        .map(|(code, detail)| {
            let since = run.reasons().iter().find(|r| r.code == code).map_or(now.wall, |r| r.since);
            Reason::new(code, detail, since)
        })
        .chain(awaited)
        .collect()
}

fn about_the_exchange(run: &Run) -> (ReasonCode, String) {
    match &run.exchange {
        Some(Exchange::Written { reply: Reply::Lost(lost), .. }) if lost.timed_out => {
            (ReasonCode::DeadlinePassed, lost.detail.clone())
        }
        Some(Exchange::Written { reply: Reply::Lost(lost), .. }) => {
            (ReasonCode::ReplyLost, lost.detail.clone())
        }
        Some(Exchange::Written { reply: Reply::Complete { status: 204, .. }, .. }) => {
            (ReasonCode::AwaitingStart, "the engine answered 204".to_owned())
        }
        Some(Exchange::Written { reply: Reply::Complete { status, message, .. }, .. }) => {
            (ReasonCode::ErrorReply, format!("{status}: {message}"))
        }
        Some(Exchange::NeverWritten(_)) | None => match &run.word {
            None => (ReasonCode::AwaitingDispatch, "nobody has reported yet".to_owned()),
            Some(_) => (ReasonCode::ExchangeUnknown, "the process that sent it is gone".to_owned()),
        },
    }
}

fn about_the_look(run: &Run, baseline: &Baseline) -> Vec<(ReasonCode, String)> {
    let before = &baseline.incarnation;
    let sighting = match &run.observation {
        None => return vec![(ReasonCode::NotObserved, "not looked at yet".to_owned())],
        Some(Observation::Unreadable { detail }) => {
            return vec![(ReasonCode::EngineUnreadable, detail.clone())];
        }
        Some(Observation::Gone { engine_id, .. }) => {
            return vec![(ReasonCode::EngineDiffers, format!("engine {engine_id} answered 404"))];
        }
        Some(Observation::Seen(sighting)) => sighting,
    };
    if sighting.engine_id != before.engine_id || sighting.container_id != before.container_id {
        let detail = format!("engine {} answered", sighting.engine_id);
        return vec![(ReasonCode::EngineDiffers, detail)];
    }
    let mut reasons = vec![match &sighting.started_at {
        StartedAt::At(at) if *at < before.started_at => {
            (ReasonCode::StartedAtEarlier, format!("it shows {at}"))
        }
        StartedAt::At(at) => (ReasonCode::StartedAtEqual, format!("it still shows {at}")),
        StartedAt::Zero => (ReasonCode::StartedAtZero, "it shows the zero time".to_owned()),
        StartedAt::Empty => (ReasonCode::StartedAtEmpty, "it shows none".to_owned()),
        StartedAt::Unreadable(text) => (ReasonCode::StartedAtUnreadable, format!("it shows {text:?}")),
    }];
    if matches!(sighting.state, ContainerState::Exited | ContainerState::Dead) {
        let since = sighting.finished_at.map_or_else(String::new, |at| format!(" since {at}"));
        reasons.push((ReasonCode::TargetDown, format!("target down{since}")));
    }
    reasons
}
