//! Evidence about a run: whose word counts, and what is put on record.

use super::apply::{Entry, Ledger};
use super::attempts::Refund;
use super::command::{Attest, Attestation, Observe, RecordExchange, Verify};
use super::judge::judge;
use super::outcome::{Outcome, Rejection};
use super::run::{EventKind, Interlock, Proof, Quarantine, Run, Status, Verification};
use crate::model::{
    Exchange, Health, Hole, Holes, JournalPosition, JournalWord, NotWrittenCause, Observation, StartedAt,
};

impl Ledger {
    /// Puts on record what the wire showed.
    pub(super) fn record_exchange(&mut self, entry: &Entry, command: RecordExchange) -> Outcome {
        let Some((mut run, interlock)) = self.with_interlock(&command.run) else {
            return Outcome::Rejected(Rejection::NoInterlock { run: command.run });
        };
        let known = run.exchange.as_ref();
        if known == Some(&command.exchange) {
            return Outcome::Recorded { changed: false };
        }
        let is_proof = !command.exchange.was_written();
        if is_proof && let Err(detail) = is_named_journal(&command.journal, &interlock, self.holes()) {
            return Outcome::Rejected(Rejection::NotItsWord { detail });
        }
        // Invariant 4: never once a byte is recorded; and a run that was proven unsent stays so.
        let clash = (is_proof && known.is_some_and(Exchange::was_written))
            || (!is_proof && matches!(run.status, Status::NotApplied { .. }));
        if clash {
            let detail = format!("{:?} against {}", command.exchange, run.status.word());
            return self.contradiction(entry, run, detail);
        }
        let detail = describe_exchange(&command.exchange);
        run.exchange = Some(command.exchange);
        if is_proof {
            run.word = Some(JournalWord::NotSent);
        }
        run.record(entry, EventKind::Exchanged, detail);
        self.reconsider(entry, run, &interlock)
    }

    /// Puts on record what a process states that can know.
    pub(super) fn attest(&mut self, entry: &Entry, command: Attest) -> Outcome {
        let Some((mut run, interlock)) = self.with_interlock(&command.run) else {
            return Outcome::Rejected(Rejection::NoInterlock { run: command.run });
        };
        match command.attestation {
            Attestation::NeverHandedOn { proposer, refusal } => {
                if proposer != interlock.proposer {
                    let detail = format!("node {} did not propose this run in this life", proposer.node);
                    return Outcome::Rejected(Rejection::NotItsWord { detail });
                }
                if run.exchange.is_some() || run.word.is_some() {
                    let detail = format!("never handed on ({}) against {:?}", refusal.detail, run.word);
                    return self.contradiction(entry, run, detail);
                }
                if run.never_handed_on.is_some() {
                    return Outcome::Recorded { changed: false };
                }
                let detail = format!("never handed on: {}", refusal.detail);
                run.never_handed_on = Some(refusal);
                run.record(entry, EventKind::Attested, detail);
            }
            Attestation::Journal { at, word } => {
                // A journal that is gone, another's, or behind the named sequence proves nothing.
                let word = match is_named_journal(&at, &interlock, self.holes()) {
                    Ok(()) => word,
                    Err(detail) => JournalWord::Unreachable { detail },
                };
                if !is_news(run.word.as_ref(), &word) {
                    return Outcome::Recorded { changed: false };
                }
                let nothing = matches!(word, JournalWord::NoIntent | JournalWord::NotSent);
                if nothing && run.exchange.as_ref().is_some_and(Exchange::was_written) {
                    return self.contradiction(entry, run, format!("{word:?} against a written request"));
                }
                run.record(entry, EventKind::Attested, format!("the journal says {}", describe_word(&word)));
                run.word = Some(word);
            }
        }
        self.reconsider(entry, run, &interlock)
    }

    /// Puts on record what a look at the container showed.
    pub(super) fn observe(&mut self, entry: &Entry, command: Observe) -> Outcome {
        let Some((mut run, interlock)) = self.with_interlock(&command.run) else {
            return Outcome::Rejected(Rejection::NoInterlock { run: command.run });
        };
        if !run.is_open() || run.observation.as_ref() == Some(&command.observation) {
            return Outcome::Recorded { changed: false };
        }
        run.record(entry, EventKind::Observed, describe_observation(&command.observation));
        run.observation = Some(command.observation);
        self.reconsider(entry, run, &interlock)
    }

    /// Judges whether an applied run's container became well.
    pub(super) fn verify(&mut self, entry: &Entry, command: Verify) -> Outcome {
        let Some((mut run, _)) = self.with_interlock(&command.run) else {
            return Outcome::Rejected(Rejection::NoInterlock { run: command.run });
        };
        let (Verification::Pending { until }, Status::Applied { observed, .. }) =
            (run.verification, &run.status)
        else {
            return Outcome::Recorded { changed: false };
        };
        let healthy = command.sighting.as_ref().is_some_and(|seen| {
            seen.engine_id == observed.engine_id
                && seen.container_id == observed.container_id
                && seen.started_at.instant().is_some_and(|at| at >= observed.started_at)
                && seen.health == Health::Healthy
        });
        let (verification, detail) = if healthy {
            (Verification::Recovered, "healthy")
        } else if entry.clock >= until {
            (Verification::NotRecovered, "not healthy within the verify window")
        } else {
            return Outcome::Recorded { changed: false };
        };
        run.verification = verification;
        run.record(entry, EventKind::Verified, detail.to_owned());
        self.put_run(run);
        Outcome::Recorded { changed: true }
    }

    /// Asks what the facts now amount to, and takes the run there.
    fn reconsider(&mut self, entry: &Entry, mut run: Run, interlock: &Interlock) -> Outcome {
        if run.is_open() {
            let baseline = run.baseline.clone().expect("a run with an interlock has a baseline");
            let status = judge(&run, &baseline, interlock, entry.wall, self.holes());
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
    fn enter(&mut self, entry: &Entry, run: &mut Run, interlock: &Interlock) {
        match run.status.clone() {
            Status::Unresolved { reasons } => {
                let why: Vec<&str> = reasons.iter().map(|reason| reason.code.as_str()).collect();
                run.record(entry, EventKind::Unresolved, why.join(", "));
            }
            Status::Applied { observed, evidence } => {
                run.record(entry, EventKind::Applied, format!("started {}; {evidence}", observed.started_at));
                self.begin_quarantine(entry, run, interlock);
                let health_check = run.baseline.as_ref().and_then(|baseline| baseline.health_check);
                run.verification = match health_check {
                    None => Verification::Unverified,
                    Some(check) => {
                        Verification::Pending { until: entry.clock.after_ms(verify_window_ms(check)) }
                    }
                };
            }
            Status::NotApplied { proof } => {
                run.record(entry, EventKind::NotApplied, proof.to_string());
                if let Some(refund) = refund(&proof) {
                    self.give_back(run, refund);
                }
            }
            Status::Superseded { by } => {
                run.record(entry, EventKind::Superseded, by.to_string());
            }
            Status::Interlocked { .. } | Status::Refused { .. } => {
                unreachable!("no evidence leads to {}", run.status.word())
            }
        }
    }

    /// Settled without a known end of the exchange: the target stays closed.
    fn begin_quarantine(&mut self, entry: &Entry, run: &mut Run, interlock: &Interlock) {
        let ended = run.exchange.as_ref().is_some_and(Exchange::has_ended);
        if ended {
            return;
        }
        let until = interlock.deadline.after_ms(self.limits().quarantine_ms);
        run.quarantine = Some(Quarantine { until, ended: false });
        let detail = format!("the exchange is not known to have ended; at the latest until {until}");
        run.record(entry, EventKind::QuarantineBegan, detail);
    }

    fn contradiction(&mut self, entry: &Entry, mut run: Run, detail: String) -> Outcome {
        run.record(entry, EventKind::Contradicted, detail.clone());
        self.put_run(run);
        Outcome::Rejected(Rejection::Contradiction { detail })
    }
}

/// Word that comes after the settlement ends a quarantine, and is set beside the settlement.
fn settle_afterwards(entry: &Entry, run: &mut Run) {
    let Some(quarantine) = run.quarantine.as_mut().filter(|quarantine| !quarantine.ended) else { return };
    let over = run.exchange.as_ref().is_some_and(Exchange::has_ended)
        || matches!(run.word, Some(JournalWord::NoIntent | JournalWord::NotSent));
    if over {
        quarantine.ended = true;
        run.record(entry, EventKind::QuarantineEnded, "the dispatcher's word".to_owned());
    }
}

/// True if this is the journal that the interlock names, at or after the place that it names.
fn is_named_journal(at: &JournalPosition, interlock: &Interlock, holes: Holes) -> Result<(), String> {
    let named = &interlock.dispatcher.journal;
    if holes.open(Hole::AnyJournalProves) {
        return Ok(());
    }
    if at.journal != named.journal {
        return Err(format!("journal {} answered, the interlock names {}", at.journal, named.journal));
    }
    if at.sequence < named.sequence {
        return Err(format!("the journal is at {}, behind the named {}", at.sequence, named.sequence));
    }
    Ok(())
}

/// A stronger word replaces a weaker one, never the reverse.
fn is_news(known: Option<&JournalWord>, word: &JournalWord) -> bool {
    match (known, word) {
        (None | Some(JournalWord::Unreachable { .. }), JournalWord::Unreachable { .. }) => known.is_none(),
        (None | Some(JournalWord::Unreachable { .. }), _) => true,
        (Some(JournalWord::Intent), JournalWord::NotSent) => true,
        (Some(_), _) => false,
    }
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
        | NotWrittenCause::JournalFailed => Refund::Whole,
    })
}

fn verify_window_ms(check: crate::model::HealthCheck) -> u64 {
    let probes = 3 * (check.interval_ms.saturating_add(check.timeout_ms));
    check.start_period_ms.saturating_add(probes).clamp(30_000, 30 * 60_000)
}

fn describe_exchange(exchange: &Exchange) -> String {
    use crate::model::Reply;
    match exchange {
        Exchange::NeverWritten(why) => format!("no byte was written: {}", why.detail),
        Exchange::Written { bytes, reply: Reply::Lost(lost), .. } => {
            format!("{bytes} bytes written, no whole reply: {}", lost.detail)
        }
        Exchange::Written { bytes, reply: Reply::Complete { status, message, .. }, .. } => {
            format!("{bytes} bytes written, reply {status} {message}").trim_end().to_owned()
        }
    }
}

fn describe_word(word: &JournalWord) -> String {
    match word {
        JournalWord::NoIntent => "no intent, revoked".to_owned(),
        JournalWord::Intent => "intent".to_owned(),
        JournalWord::NotSent => "not sent".to_owned(),
        JournalWord::Unreachable { detail } => format!("nothing: {detail}"),
    }
}

fn describe_observation(observation: &Observation) -> String {
    match observation {
        Observation::Seen(seen) => match &seen.started_at {
            StartedAt::At(at) => format!("{:?}, started {at}", seen.state),
            other => format!("{:?}, StartedAt {other:?}", seen.state),
        },
        Observation::Gone { successor: Some(id), .. } => format!("gone; {id} answers to its name"),
        Observation::Gone { successor: None, .. } => "gone".to_owned(),
        Observation::Unreadable { detail } => format!("unreadable: {detail}"),
    }
}
