//! Evidence about a run: whose word counts, and what is put on record.

use super::apply::Ledger;
use super::attempts::Refund;
use super::command::{Attest, Observe, RecordExchange};
use super::entry::Entry;
use super::judge::judge;
use super::order::{OrderFacts, Taken};
use super::outcome::{Outcome, Rejection};
use super::run::{Event, EventKind, Interlock, Quarantine, Run};
use super::status::{Proof, Status};
use super::words;
use crate::model::{NotWrittenCause, Observation, RunId};

impl Ledger {
    /// Puts on record what the wire showed.
    pub(super) fn record_exchange(&mut self, entry: &Entry, command: RecordExchange) -> Outcome {
        let RecordExchange { run, start, journal, exchange } = command;
        let holes = self.holes();
        self.take(entry, &run, start.as_ref(), [EventKind::Exchanged, EventKind::StartExchanged], |facts| {
            facts.take_exchange(exchange, &journal, holes)
        })
    }

    /// Puts on record what a process states that can know.
    pub(super) fn attest(&mut self, entry: &Entry, command: Attest) -> Outcome {
        let Attest { run, start, attestation } = command;
        let holes = self.holes();
        self.take(entry, &run, start.as_ref(), [EventKind::Attested, EventKind::StartAttested], |facts| {
            facts.take_attestation(attestation, holes)
        })
    }

    /// Takes a piece of evidence about a run's restart or one of its starts, and asks what follows.
    fn take(
        &mut self,
        entry: &Entry,
        id: &RunId,
        start: Option<&RunId>,
        [of_restart, of_start]: [EventKind; 2],
        take: impl FnOnce(&mut OrderFacts<'_>) -> Taken,
    ) -> Outcome {
        let Some((mut run, interlock)) = self.with_interlock(id) else {
            return Outcome::Rejected(Rejection::NoInterlock { run: id.clone() });
        };
        let (status, level) = (run.status.word(), self.rules_level());
        let (taken, kind) = match start {
            None => (take(&mut run.facts(&interlock, level)), of_restart),
            Some(start) => {
                let Some(start) = run.starts.iter_mut().find(|known| known.id == *start) else {
                    let detail = format!("run {id} has no start {start}");
                    return Outcome::Rejected(Rejection::Invalid { detail });
                };
                (take(&mut start.facts(status, level)), of_start)
            }
        };
        match taken {
            Taken::Known => Outcome::Recorded { changed: false },
            Taken::Refused(rejection) => Outcome::Rejected(rejection),
            Taken::Contradiction(detail) => self.contradiction(entry, run, detail),
            Taken::News(detail) => {
                run.record(entry, kind, detail);
                self.reconsider(entry, run, &interlock)
            }
        }
    }

    /// Puts on record what a look at the container showed.
    pub(super) fn observe(&mut self, entry: &Entry, command: Observe) -> Outcome {
        let Some((mut run, interlock)) = self.with_interlock(&command.run) else {
            return Outcome::Rejected(Rejection::NoInterlock { run: command.run });
        };
        let wanted = run.is_open() || (self.rules(2) && wants_a_last_look(&run));
        if !wanted || run.observation.as_ref() == Some(&command.observation) {
            return Outcome::Recorded { changed: false };
        }
        run.record(entry, EventKind::Observed, words::observation(entry.rules, &command.observation));
        run.observation = Some(command.observation);
        self.reconsider(entry, run, &interlock)
    }

    /// Ends a quarantine whose bound has passed. The bound is no proof, and says so.
    pub(super) fn end_quarantine(&mut self, entry: &Entry, id: RunId) -> Outcome {
        let Some((mut run, _)) = self.with_interlock(&id) else {
            return Outcome::Rejected(Rejection::NoInterlock { run: id });
        };
        match run.quarantine.as_mut().filter(|q| !q.ended && entry.clock >= q.until) {
            None => return Outcome::Recorded { changed: false },
            Some(quarantine) => quarantine.ended = true,
        }
        let detail = "its time is over, which is a bound and no proof that nothing can still land";
        run.record(entry, EventKind::QuarantineEnded, detail.to_owned());
        self.put_run(run);
        Outcome::Recorded { changed: true }
    }

    /// Asks what the facts now amount to, and takes the run there.
    pub(super) fn reconsider(&mut self, entry: &Entry, mut run: Run, interlock: &Interlock) -> Outcome {
        if run.is_open() {
            let baseline = run.baseline.clone().expect("a run with an interlock has a baseline");
            let status = judge(&run, &baseline, interlock, entry, self.holes());
            let moved = status.word() != run.status.word();
            run.status = status;
            if moved {
                self.enter(entry, &mut run, interlock);
            }
        } else {
            settle_afterwards(entry, &mut run);
        }
        self.put_run(run);
        Outcome::Recorded { changed: true }
    }

    /// What follows from a new status.
    pub(super) fn enter(&mut self, entry: &Entry, run: &mut Run, interlock: &Interlock) {
        match run.status.clone() {
            Status::Unresolved { reasons } => {
                let why: Vec<&str> = reasons.iter().map(|reason| reason.code.as_str()).collect();
                run.record(entry, EventKind::Unresolved, why.join(", "));
            }
            Status::Applied { observed, evidence } => {
                let detail =
                    format!("started {}; {}", observed.started_at, words::evidence(entry.rules, evidence));
                run.record(entry, EventKind::Applied, detail);
                self.begin_quarantine(entry, run, interlock);
                run.verification = run.verification_from(entry.clock, entry.rules);
            }
            Status::NotApplied { proof } => {
                run.record(entry, EventKind::NotApplied, proof.to_string());
                if let Some(refund) = refund(&proof) {
                    self.give_back(run, refund);
                }
                // The proof is of the restart: a start may still be on its way.
                if !run.starts.is_empty() {
                    self.begin_quarantine(entry, run, interlock);
                }
            }
            Status::Superseded { by } => {
                run.record(entry, EventKind::Superseded, by.to_string());
            }
            Status::OperatorResolved { resolution } => {
                let detail = format!("by {}: {}", resolution.by, resolution.reason);
                run.record(entry, EventKind::Resolved, detail);
                self.begin_quarantine(entry, run, interlock);
            }
            Status::Interlocked { .. } | Status::Refused { .. } => {
                unreachable!("no evidence leads to {}", run.status.word())
            }
        }
    }

    /// Settled without a known end of the exchange: the target stays closed.
    fn begin_quarantine(&mut self, entry: &Entry, run: &mut Run, interlock: &Interlock) {
        if run.exchanges_have_ended() {
            return;
        }
        let until = run.last_deadline(interlock).after_ms(self.limits().quarantine_ms);
        run.quarantine = Some(Quarantine { until, ended: false });
        let bound = words::bound(entry.rules, until, until.since_ms(entry.clock));
        let detail = format!("the exchange is not known to have ended; {bound}");
        run.record(entry, EventKind::QuarantineBegan, detail);
    }

    /// A contradiction is told once, however often the same word comes.
    fn contradiction(&mut self, entry: &Entry, mut run: Run, detail: String) -> Outcome {
        let told = |event: &Event| event.kind == EventKind::Contradicted && event.detail == detail;
        if entry.rules >= 3 && run.events.iter().any(told) {
            return Outcome::Rejected(Rejection::Contradiction { detail });
        }
        run.record(entry, EventKind::Contradicted, detail.clone());
        self.put_run(run);
        Outcome::Rejected(Rejection::Contradiction { detail })
    }
}

/// Word that comes after the settlement ends a quarantine, and is set beside the settlement.
fn settle_afterwards(entry: &Entry, run: &mut Run) {
    if !run.exchanges_have_ended() {
        return;
    }
    let Some(quarantine) = run.quarantine.as_mut().filter(|quarantine| !quarantine.ended) else { return };
    quarantine.ended = true;
    run.record(entry, EventKind::QuarantineEnded, "the dispatcher's word".to_owned());
}

/// An engine that answered 404 to the restart knows no such container: who is there instead is set beside
/// the settlement, once.
fn wants_a_last_look(run: &Run) -> bool {
    let refused =
        matches!(&run.status, Status::NotApplied { proof: Proof::EngineRefused { status: 404, .. } });
    refused && !matches!(run.observation, Some(Observation::Gone { .. }))
}

/// Given back on proof (a) and (b) only; an engine that could not be reached still pauses (invariant 9).
fn refund(proof: &Proof) -> Option<Refund> {
    let why = match proof {
        Proof::EngineRefused { .. } => return None,
        Proof::NoIntent => return Some(Refund::Whole),
        Proof::GateClosed(why) | Proof::NeverHandedOn(why) => why,
    };
    Some(match why.cause {
        NotWrittenCause::Unreachable | NotWrittenCause::Unreadable => Refund::KeepPause,
        NotWrittenCause::AuthorityLost
        | NotWrittenCause::Fenced
        | NotWrittenCause::Revoked
        | NotWrittenCause::TicketExpired
        | NotWrittenCause::IncarnationChanged
        | NotWrittenCause::JournalFailed
        | NotWrittenCause::Held => Refund::Whole,
    })
}
