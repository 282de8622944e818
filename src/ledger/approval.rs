//! Whether an approved start is opened.

use super::apply::Ledger;
use super::command::OpenStart;
use super::entry::Entry;
use super::outcome::{Outcome, Rejection, StartDecision};
use super::reason::{Reason, ReasonCode};
use super::run::{EventKind, Interlock, Run};
use super::start::Start;
use super::status::Status;
use super::words;
use crate::model::{
    ContainerState, Exchange, Fence, Incarnation, JournalWord, Observation, RunId, StartedAt,
};

/// How many starts a run may have. Each stays on record with its reason, and the run must stay readable; what so
/// many could not get up needs to be looked at.
const MOST: usize = 20;

impl Ledger {
    /// Decides whether an approved start is opened.
    pub(super) fn open_start(&mut self, entry: &Entry, command: OpenStart) -> Outcome {
        let Some((mut run, interlock)) = self.with_interlock(&command.run) else {
            return Outcome::Rejected(Rejection::NoInterlock { run: command.run });
        };
        if let Some(known) = run.start(&command.start) {
            return if (&known.by, &known.reason) == (&command.by, &command.reason) {
                decided(command.start, Vec::new(), true)
            } else {
                Outcome::Rejected(Rejection::StartIdReused { start: command.start })
            };
        }
        if self.index().run_of_start(&command.start).is_some() {
            return Outcome::Rejected(Rejection::StartIdReused { start: command.start });
        }
        if command.term != entry.position.term {
            return Outcome::StaleTerm { proposed: command.term, committed: entry.position.term };
        }
        let reasons = self.start_refusals(entry, &command, &run, &interlock);
        if !reasons.is_empty() {
            return decided(command.start, reasons, false);
        }
        let limits = self.limits();
        let deadline = limits.dispatched_by(entry.clock).after_ms(limits.margin_ms);
        let start = Start {
            id: command.start.clone(),
            order: command.order,
            by: command.by,
            reason: command.reason,
            opened: entry.moment(),
            fence: Fence {
                cluster: self.cluster().clone(),
                term: entry.position.term,
                index: entry.position.index,
            },
            proposer: command.proposer,
            dispatcher: command.dispatcher,
            client_deadline_ms: limits.margin_ms,
            dispatch_by_ms: limits.dispatch_by_ms,
            deadline,
            exchange: None,
            word: None,
            never_handed_on: None,
        };
        let detail = format!("{}; approved by {}: {}", start.fence, start.by, start.reason);
        run.starts.push(start);
        run.record(entry, EventKind::StartApproved, detail);
        self.reconsider(entry, run, &interlock);
        decided(command.start, Vec::new(), false)
    }

    /// Every reason against a start, not only the first.
    fn start_refusals(
        &self,
        entry: &Entry,
        command: &OpenStart,
        run: &Run,
        interlock: &Interlock,
    ) -> Vec<Reason> {
        let reason = |code, detail: String| Reason::new(code, detail, entry.wall);
        let Some(baseline) = run.baseline.as_ref().filter(|_| run.is_open()) else {
            let detail = format!("the run is {}", run.status.word());
            return vec![reason(ReasonCode::RunSettled, detail)];
        };
        let mut reasons = Vec::new();
        let may_have_left =
            run.exchange.as_ref().is_some_and(Exchange::was_written) || run.word == Some(JournalWord::Intent);
        if !matches!(run.status, Status::Unresolved { .. }) || !may_have_left {
            let detail = "nobody has said that the restart was sent".to_owned();
            reasons.push(reason(ReasonCode::RestartNotSent, detail));
        }
        let ended = run.exchange.as_ref().is_some_and(Exchange::has_ended);
        if !ended && entry.clock < interlock.deadline {
            let detail = "the restart may still stop and start the container".to_owned();
            let until = interlock.deadline;
            reasons.push(Reason::until(ReasonCode::RestartUnderWay, detail, run.opened.wall, until));
        }
        if let Some(start) = run.outstanding_start(entry.clock) {
            let detail = format!("start {} was approved by {}", start.id, start.by);
            let since = start.opened.wall;
            reasons.push(Reason::until(ReasonCode::StartOutstanding, detail, since, start.deadline));
        }
        if run.starts.len() >= MOST {
            let detail = format!("{MOST} starts were approved, and did not get it up");
            reasons.push(reason(ReasonCode::StartsExhausted, detail));
        }
        let engine = &baseline.incarnation.engine_id;
        let journal = &command.dispatcher.journal.journal;
        let host = run.target.host();
        reasons.extend(self.host_refusal(entry.wall, host, engine, journal));
        let not_down = down_refusal(entry.rules, &command.look, &baseline.incarnation);
        reasons.extend(not_down.map(|(code, detail)| reason(code, detail)));
        let mut names = vec![baseline.name.as_str()];
        if let Observation::Seen(seen) = &command.look {
            names.push(&seen.name);
        }
        let container_id = &baseline.incarnation.container_id;
        reasons.extend(self.held(&run.target, &names, container_id, entry.clock));
        reasons
    }
}

fn decided(start: RunId, reasons: Vec<Reason>, repeated: bool) -> Outcome {
    Outcome::StartDecided(StartDecision { start, reasons, repeated })
}

/// Only the very life that the restart ended may be followed by a start, and only if nothing runs.
fn down_refusal(rules: u32, look: &Observation, before: &Incarnation) -> Option<(ReasonCode, String)> {
    let seen = match look {
        Observation::Seen(seen) => seen,
        Observation::Gone { .. } => {
            return Some((ReasonCode::IncarnationChanged, "the container is gone".to_owned()));
        }
        Observation::Unreadable { detail } => return Some((ReasonCode::BaselineUnreadable, detail.clone())),
    };
    let same = seen.engine_id == before.engine_id
        && seen.container_id == before.container_id
        && seen.started_at == StartedAt::At(before.started_at);
    if !same {
        let shown = words::started(rules, &seen.started_at);
        let detail = format!("it shows {shown}, the run is of {}", before.started_at);
        return Some((ReasonCode::IncarnationChanged, detail));
    }
    let detail = || format!("{} is {}", seen.name, words::state(rules, seen.state));
    (seen.state != ContainerState::Exited).then(|| (ReasonCode::TargetNotDown, detail()))
}
