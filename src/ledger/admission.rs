//! Admission: whether a request opens an interlock, attaches to an open one, or is refused (invariant 3).

use super::apply::Ledger;
use super::attempts::attempt_keys;
use super::checks::{Check, attaches};
use super::command::{OpenInterlock, RefuseRequest};
use super::diagnosis::Diagnosis;
use super::entry::{Entry, EntryPosition};
use super::outcome::{Decision, DecisionKind, Exhausted, Outcome, Rejection};
use super::reason::{Reason, ReasonCode};
use super::run::{EventKind, Interlock, Run};
use super::status::Status;
use crate::model::{ClusterTime, Fence, Hole, LogIndex, NodeId, RunId, Target, Term, WallTime};

/// How a request would be decided, before anything is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighed {
    /// How.
    pub kind: DecisionKind,
    /// The run that answers it: the open one that it attaches to, else its own, as it would be.
    pub run: Run,
    /// What of the request an attach leaves aside, one line each.
    pub ignored: Vec<String>,
    /// Every check that was made.
    pub checks: Vec<Check>,
    /// The caller's share that is full, so that the request would not be decided at all.
    pub exhausted: Option<Exhausted>,
    /// The open or quarantined run that stands for its target or container, whatever becomes of the request.
    pub standing: Option<RunId>,
}

impl Ledger {
    /// How a request would be decided now, if its id is not known. Changes nothing.
    #[must_use]
    pub fn weigh(
        &self,
        clock: ClusterTime,
        wall: WallTime,
        node: NodeId,
        command: &OpenInterlock,
    ) -> Weighed {
        let position = EntryPosition { term: command.term, index: LogIndex(0) };
        self.weigh_at(&Entry { position, node, clock, wall, rules: self.rules_level() }, command)
    }

    /// The refusal that a request would be answered with. Changes nothing.
    #[must_use]
    pub fn weigh_refusal(
        &self,
        clock: ClusterTime,
        wall: WallTime,
        node: NodeId,
        command: &RefuseRequest,
    ) -> Weighed {
        let position = EntryPosition { term: Term(0), index: LogIndex(0) };
        let entry = Entry { position, node, clock, wall, rules: self.rules_level() };
        let run = refused_before(&entry, command.clone());
        Weighed {
            kind: DecisionKind::Refused,
            exhausted: self.refusals_full(clock, &run.request, run.reasons()),
            run,
            ignored: Vec::new(),
            checks: Vec::new(),
            standing: None,
        }
    }

    /// The run that is open or quarantined for a target.
    #[must_use]
    pub fn standing_for_target(&self, target: &Target) -> Option<&Run> {
        let stands = |run: &&Run| run.is_open() || run.is_quarantined(self.clock());
        self.index().for_target(target).and_then(|id| self.run(id)).filter(stands)
    }

    fn weigh_at(&self, entry: &Entry, command: &OpenInterlock) -> Weighed {
        let standing = self.standing_for(command, entry.clock);
        let checks = self.checks(entry, command, standing);
        let weighed = |kind, run, ignored, checks, exhausted| Weighed {
            kind,
            run,
            ignored,
            checks,
            exhausted,
            standing: standing.map(|run| run.id.clone()),
        };
        if let Some(open) = standing.filter(|run| attaches(run, command.expect.as_ref())) {
            let full = self.attaches_full(entry.clock, &command.request);
            return weighed(DecisionKind::Attached, open.clone(), ignored(command, open), checks, full);
        }
        let reasons: Vec<Reason> = checks.iter().flat_map(|check| check.reasons.clone()).collect();
        if reasons.is_empty() {
            return weighed(DecisionKind::Opened, self.opened(entry, command), Vec::new(), checks, None);
        }
        let mut run = of_request(entry, command, Status::Refused { reasons });
        if entry.rules >= 3 {
            run.refused_for = command.diagnosis;
        }
        refused(entry, &mut run);
        let full = self.refusals_full(entry.clock, &run.request, run.reasons());
        weighed(DecisionKind::Refused, run, Vec::new(), checks, full)
    }

    /// Decides about a request whose target was resolved to one container.
    pub(super) fn open_interlock(&mut self, entry: &Entry, command: &OpenInterlock) -> Outcome {
        if let Some(outcome) = self.known_request(&command.request) {
            return outcome;
        }
        if command.term != entry.position.term {
            return Outcome::StaleTerm { proposed: command.term, committed: entry.position.term };
        }
        if let Some(taken) = self.taken(&command.run) {
            return taken;
        }
        let Weighed { kind, run, ignored, exhausted, .. } = self.weigh_at(entry, command);
        if let Some(full) = exhausted {
            return Outcome::Exhausted(full);
        }
        match kind {
            DecisionKind::Attached => self.attach(entry, command, run, ignored),
            DecisionKind::Refused => self.answer(entry, DecisionKind::Refused, run),
            DecisionKind::Opened => {
                let [by_name, by_container] = attempt_keys(&command.target, &command.baseline);
                self.charge(by_name, &command.run, entry.clock);
                if !self.holes().open(Hole::ChargeNameAlone) {
                    self.charge(by_container, &command.run, entry.clock);
                }
                self.answer(entry, DecisionKind::Opened, run)
            }
        }
    }

    /// Remembers a refusal that was made before a proposal.
    pub(super) fn refuse_request(&mut self, entry: &Entry, command: RefuseRequest) -> Outcome {
        if let Some(outcome) = self.known_request(&command.request) {
            return outcome;
        }
        if let Some(taken) = self.taken(&command.run) {
            return taken;
        }
        if command.reasons.is_empty() {
            return Outcome::Rejected(Rejection::Invalid { detail: "a refusal has a reason".to_owned() });
        }
        let run = refused_before(entry, command);
        match self.refusals_full(entry.clock, &run.request, run.reasons()) {
            Some(full) => Outcome::Exhausted(full),
            None => self.answer(entry, DecisionKind::Refused, run),
        }
    }

    /// A run id is used once.
    fn taken(&self, id: &RunId) -> Option<Outcome> {
        let run = self.run(id)?.id.clone();
        Some(Outcome::Rejected(Rejection::DuplicateRun { run }))
    }

    /// The run that stands in the way: by container first, then by target.
    fn standing_for(&self, command: &OpenInterlock, clock: ClusterTime) -> Option<&Run> {
        let incarnation = &command.baseline.incarnation;
        let by_container = self.index().for_container(&incarnation.engine_id, &incarnation.container_id);
        let by_container = by_container.filter(|_| !self.holes().open(Hole::MatchByTargetAlone));
        let by_target = self.index().for_target(&command.target);
        [by_container, by_target]
            .into_iter()
            .flatten()
            .filter_map(|id| self.run(id))
            .find(|run| run.is_open() || run.is_quarantined(clock))
    }

    fn attach(
        &mut self,
        entry: &Entry,
        command: &OpenInterlock,
        mut run: Run,
        ignored: Vec<String>,
    ) -> Outcome {
        let request = &command.request;
        let id = request.id.as_ref().map_or("without an id", |id| id.as_str());
        let by = request.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let detail = format!("request {id}{by} for {}: {}", request.spelling, request.reason);
        run.record(entry, EventKind::Attached, detail);
        let decision =
            Decision { kind: DecisionKind::Attached, run: run.id.clone(), ignored, repeated: false };
        self.put_run(run);
        self.remember(entry, request, &decision);
        Outcome::Decided(decision)
    }

    /// The run that a request opens.
    fn opened(&self, entry: &Entry, command: &OpenInterlock) -> Run {
        let limits = self.limits();
        let client_deadline_ms = command.grace.client_deadline_ms(limits.margin_ms);
        let deadline = limits.dispatched_by(entry.clock).after_ms(client_deadline_ms);
        let interlock = Interlock {
            fence: Fence {
                cluster: self.cluster().clone(),
                term: entry.position.term,
                index: entry.position.index,
            },
            proposer: command.proposer.clone(),
            dispatcher: command.dispatcher.clone(),
            grace: command.grace,
            diagnosis: command.diagnosis,
            client_deadline_ms,
            dispatch_by_ms: limits.dispatch_by_ms,
            deadline,
        };
        let detail = format!("{}; grace {} s", interlock.fence, interlock.grace.seconds);
        let waiting = Reason::new(ReasonCode::AwaitingDispatch, "nobody has reported yet", entry.wall);
        let status = Status::Interlocked { reasons: vec![waiting] };
        let mut run = Run { interlock: Some(interlock), ..of_request(entry, command, status) };
        run.record(entry, EventKind::Interlocked, detail);
        run
    }

    /// Answers a request by a run of its own.
    fn answer(&mut self, entry: &Entry, kind: DecisionKind, run: Run) -> Outcome {
        let decision = Decision { kind, run: run.id.clone(), ignored: Vec::new(), repeated: false };
        self.remember(entry, &run.request, &decision);
        self.put_run(run);
        Outcome::Decided(decision)
    }
}

/// The run of a request whose container was looked at.
fn of_request(entry: &Entry, command: &OpenInterlock, status: Status) -> Run {
    let (id, target) = (command.run.clone(), command.target.clone());
    Run {
        baseline: Some(command.baseline.clone()),
        expect: command.expect.clone(),
        ..Run::new(id, command.request.clone(), target, entry.moment(), status)
    }
}

/// The run of a request that was refused before its container was looked at.
fn refused_before(entry: &Entry, command: RefuseRequest) -> Run {
    let status = Status::Refused { reasons: command.reasons };
    let mut run = Run::new(command.run, command.request, command.target, entry.moment(), status);
    run.refused_for = command.diagnosis;
    refused(entry, &mut run);
    run
}

fn refused(entry: &Entry, run: &mut Run) {
    let codes: Vec<&str> = run.reasons().iter().map(|reason| reason.code.as_str()).collect();
    let detail = codes.join(", ");
    run.record(entry, EventKind::Refused, detail);
}

/// What of a request an attach leaves aside.
fn ignored(command: &OpenInterlock, open: &Run) -> Vec<String> {
    let Some(interlock) = &open.interlock else { return Vec::new() };
    let (asked_s, used_s) = (command.grace.seconds, interlock.grace.seconds);
    let grace = (asked_s != used_s).then(|| format!("grace {asked_s} s: the open run uses {used_s} s"));
    let diagnosis = (command.diagnosis != interlock.diagnosis).then(|| match command.diagnosis {
        Diagnosis::Callers => "any health: the open run is for an unhealthy container alone".to_owned(),
        Diagnosis::Unhealthy => "an unhealthy container alone: the open run is for any health".to_owned(),
    });
    grace.into_iter().chain(diagnosis).collect()
}
