//! Admission: whether a request opens an interlock, attaches to an open one, or is refused (invariant 3).

use super::apply::{Entry, Ledger};
use super::attempts::attempt_keys;
use super::command::{Baseline, Expectation, OpenInterlock, RefuseRequest, Request};
use super::outcome::{Decision, DecisionKind, Outcome, Rejection};
use super::reason::{Reason, ReasonCode};
use super::record::Remembered;
use super::run::{EventKind, Interlock, Run, Status};
use crate::model::{ContainerState, Fence, Hole, HostName, RunId};

impl Ledger {
    /// Decides about a request whose target was resolved to one container.
    pub(super) fn open_interlock(&mut self, entry: &Entry, command: OpenInterlock) -> Outcome {
        if let Some(outcome) = self.known_request(&command.request) {
            return outcome;
        }
        if command.term != entry.position.term {
            return Outcome::StaleTerm { proposed: command.term, committed: entry.position.term };
        }
        if self.run(&command.run).is_some() {
            return Outcome::Rejected(Rejection::DuplicateRun { run: command.run });
        }
        let standing = self.standing_for(&command);
        if let Some(open) = standing.as_ref().filter(|run| run.is_open())
            && expected(command.expect.as_ref(), open.baseline.as_ref())
        {
            let open = open.id.clone();
            return self.attach(entry, &command, &open);
        }
        let reasons = self.refusals(entry, &command, standing.as_ref());
        if reasons.is_empty() { self.open(entry, command) } else { self.refuse(entry, command, reasons) }
    }

    /// Remembers a refusal that was made before a proposal.
    pub(super) fn refuse_request(&mut self, entry: &Entry, command: RefuseRequest) -> Outcome {
        if let Some(outcome) = self.known_request(&command.request) {
            return outcome;
        }
        if self.run(&command.run).is_some() {
            return Outcome::Rejected(Rejection::DuplicateRun { run: command.run });
        }
        if command.reasons.is_empty() {
            return Outcome::Rejected(Rejection::Invalid { detail: "a refusal has a reason".to_owned() });
        }
        let status = Status::Refused { reasons: command.reasons };
        let run = Run::new(command.run, command.request, command.target, entry.moment(), status);
        self.finish_refusal(entry, run)
    }

    /// The stored answer, if the request's id is known. It comes before every rule.
    fn known_request(&self, request: &Request) -> Option<Outcome> {
        let remembered = self.remembered(request.id.as_ref()?)?;
        if remembered.digest != request.digest {
            let run = remembered.decision.run.clone();
            return Some(Outcome::Rejected(Rejection::RequestIdReused { run }));
        }
        Some(Outcome::Decided(Decision { repeated: true, ..remembered.decision.clone() }))
    }

    /// The run that stands in the way: by container first, then by target.
    fn standing_for(&self, command: &OpenInterlock) -> Option<Run> {
        let incarnation = &command.baseline.incarnation;
        let by_container = self.index().for_container(&incarnation.engine_id, &incarnation.container_id);
        let by_container = by_container.filter(|_| !self.holes().open(Hole::MatchByTargetAlone));
        let by_target = self.index().for_target(&command.target);
        [by_container, by_target]
            .into_iter()
            .flatten()
            .filter_map(|id| self.run(id))
            .find(|run| run.is_open() || run.is_quarantined(self.clock()))
            .cloned()
    }

    fn attach(&mut self, entry: &Entry, command: &OpenInterlock, open: &RunId) -> Outcome {
        let mut run = self.run(open).expect("a standing run exists").clone();
        let mut ignored = Vec::new();
        if let Some(interlock) = &run.interlock
            && interlock.grace.seconds != command.grace.seconds
        {
            ignored.push(format!(
                "grace {} s: the open run uses {} s",
                command.grace.seconds, interlock.grace.seconds
            ));
        }
        let request = &command.request;
        let id = request.id.as_ref().map_or("without an id", |id| id.as_str());
        let detail = format!("request {id} for {}: {}", request.spelling, request.reason);
        run.record(entry, EventKind::Attached, detail);
        self.put_run(run);
        let decision = Decision { kind: DecisionKind::Attached, run: open.clone(), ignored, repeated: false };
        self.remember(entry, &command.request, &decision);
        Outcome::Decided(decision)
    }

    /// Every reason against it, not only the first.
    fn refusals(&self, entry: &Entry, command: &OpenInterlock, standing: Option<&Run>) -> Vec<Reason> {
        let wall = entry.wall;
        let mut reasons = Vec::new();
        match standing {
            Some(run) if run.is_open() => {
                let detail = format!("run {} is open for another incarnation", run.id);
                reasons.push(Reason::new(ReasonCode::ExpectationMismatch, detail, wall));
            }
            Some(run) => {
                let until = run.quarantine.map_or(self.clock(), |quarantine| quarantine.until);
                let detail = format!("the exchange of run {} is not known to have ended", run.id);
                reasons.push(Reason::until(ReasonCode::Quarantined, detail, wall, until));
            }
            None => {}
        }
        reasons.extend(self.host_refusal(entry, command));
        reasons.extend(state_refusal(entry, &command.baseline));
        if !expected(command.expect.as_ref(), Some(&command.baseline)) {
            let now = &command.baseline.incarnation;
            let detail = format!("it is now {} started {}", now.container_id, now.started_at);
            reasons.push(Reason::new(ReasonCode::ExpectationMismatch, detail, wall));
        }
        let limits = self.limits();
        if command.grace.seconds > limits.grace_max_s {
            let detail =
                format!("{} s is above the limit of {} s", command.grace.seconds, limits.grace_max_s);
            reasons.push(Reason::new(ReasonCode::GraceAboveLimit, detail, wall));
        }
        reasons.extend(self.attempt_refusals(entry, command));
        reasons.extend(self.flight_refusals(entry, command.target.host()));
        reasons
    }

    fn host_refusal(&self, entry: &Entry, command: &OpenInterlock) -> Option<Reason> {
        let name = command.target.host();
        let Some(host) = self.host(name) else {
            return Some(Reason::new(
                ReasonCode::HostUnknown,
                format!("host {name} is not bound"),
                entry.wall,
            ));
        };
        let engine = &command.baseline.incarnation.engine_id;
        if host.engine_id != *engine {
            let detail = format!("engine {engine} answers, {} is bound", host.engine_id);
            return Some(Reason::new(ReasonCode::HostDiffers, detail, entry.wall));
        }
        let journal = &command.dispatcher.journal.journal;
        if host.dispatcher.journal.journal != *journal {
            let detail = format!("journal {journal} answers, {} is bound", host.dispatcher.journal.journal);
            return Some(Reason::new(ReasonCode::HostDiffers, detail, entry.wall));
        }
        None
    }

    /// The fuller of both accounts decides.
    fn attempt_refusals(&self, entry: &Entry, command: &OpenInterlock) -> Vec<Reason> {
        let of = |key| {
            let account = self.attempts(key);
            account.map_or_else(Vec::new, |a| a.refusals(self.clock(), entry.wall, self.limits()))
        };
        let [by_name, by_container] = attempt_keys(&command.target, &command.baseline);
        let mut reasons = of(&by_name);
        for reason in of(&by_container) {
            match reasons.iter_mut().find(|known| known.code == reason.code) {
                Some(known) if known.until < reason.until => *known = reason,
                Some(_) => {}
                None => reasons.push(reason),
            }
        }
        reasons
    }

    fn flight_refusals(&self, entry: &Entry, host: &HostName) -> Vec<Reason> {
        let (mut cluster, mut on_host, mut unresolved) = (0_u32, 0_u32, 0_u32);
        for run in self.open_runs() {
            let in_flight = run.interlock.as_ref().is_some_and(|interlock| self.clock() < interlock.deadline);
            let here = run.target.host() == host;
            cluster += u32::from(in_flight);
            on_host += u32::from(in_flight && here);
            unresolved += u32::from(!in_flight && here);
        }
        let limits = self.limits();
        [
            (ReasonCode::InFlightCluster, cluster, limits.in_flight_cluster),
            (ReasonCode::InFlightHost, on_host, limits.in_flight_host),
            (ReasonCode::UnresolvedHost, unresolved, limits.unresolved_host),
        ]
        .into_iter()
        .filter(|(_, count, most)| count >= most)
        .map(|(code, count, most)| Reason::new(code, format!("{count} of {most}"), entry.wall))
        .collect()
    }

    fn open(&mut self, entry: &Entry, command: OpenInterlock) -> Outcome {
        let limits = self.limits().clone();
        let client_deadline_ms = command.grace.client_deadline_ms(limits.margin_ms);
        let deadline =
            entry.clock.after_ms(limits.dispatch_by_ms + limits.connect_ms).after_ms(client_deadline_ms);
        let interlock = Interlock {
            fence: Fence {
                cluster: self.cluster().clone(),
                term: entry.position.term,
                index: entry.position.index,
            },
            proposer: command.proposer,
            dispatcher: command.dispatcher,
            grace: command.grace,
            client_deadline_ms,
            dispatch_by_ms: limits.dispatch_by_ms,
            deadline,
        };
        for key in attempt_keys(&command.target, &command.baseline) {
            self.charge(key, &command.run, entry.clock);
        }
        let detail = format!("{}; grace {} s", interlock.fence, interlock.grace.seconds);
        let waiting = Reason::new(ReasonCode::AwaitingDispatch, "nobody has reported yet", entry.wall);
        let status = Status::Interlocked { reasons: vec![waiting] };
        let mut run = Run {
            baseline: Some(command.baseline),
            expect: command.expect,
            interlock: Some(interlock),
            ..Run::new(command.run, command.request, command.target, entry.moment(), status)
        };
        run.record(entry, EventKind::Interlocked, detail);
        self.answer(entry, DecisionKind::Opened, run)
    }

    fn refuse(&mut self, entry: &Entry, command: OpenInterlock, reasons: Vec<Reason>) -> Outcome {
        let status = Status::Refused { reasons };
        let run = Run {
            baseline: Some(command.baseline),
            expect: command.expect,
            ..Run::new(command.run, command.request, command.target, entry.moment(), status)
        };
        self.finish_refusal(entry, run)
    }

    fn finish_refusal(&mut self, entry: &Entry, mut run: Run) -> Outcome {
        let codes: Vec<&str> = run.reasons().iter().map(|reason| reason.code.as_str()).collect();
        let detail = codes.join(", ");
        run.record(entry, EventKind::Refused, detail);
        self.answer(entry, DecisionKind::Refused, run)
    }

    /// Answers a request by a run of its own.
    fn answer(&mut self, entry: &Entry, kind: DecisionKind, run: Run) -> Outcome {
        let decision = Decision { kind, run: run.id.clone(), ignored: Vec::new(), repeated: false };
        self.remember(entry, &run.request, &decision);
        self.put_run(run);
        Outcome::Decided(decision)
    }

    fn remember(&mut self, entry: &Entry, request: &Request, decision: &Decision) {
        if let Some(id) = &request.id {
            self.put_request(Remembered {
                id: id.clone(),
                digest: request.digest.clone(),
                decision: decision.clone(),
                at: entry.moment(),
            });
        }
    }
}

/// True if the caller named no incarnation, or this one.
fn expected(expect: Option<&Expectation>, baseline: Option<&Baseline>) -> bool {
    expect.is_none_or(|expect| {
        baseline.is_some_and(|baseline| {
            expect.container_id == baseline.incarnation.container_id
                && expect.started_at == baseline.incarnation.started_at
        })
    })
}

/// Only a running container may be restarted: a restart never acts as a start, or undoes a pause.
fn state_refusal(entry: &Entry, baseline: &Baseline) -> Option<Reason> {
    let code = match baseline.state {
        ContainerState::Running => return None,
        ContainerState::Paused => ReasonCode::TargetPaused,
        ContainerState::Restarting => ReasonCode::TargetRestarting,
        ContainerState::Removing => ReasonCode::TargetRemoving,
        ContainerState::Created | ContainerState::Exited | ContainerState::Dead | ContainerState::Unknown => {
            ReasonCode::TargetNotRunning
        }
    };
    Some(Reason::new(code, format!("{} is {:?}", baseline.name, baseline.state), entry.wall))
}
