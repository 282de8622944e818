//! What operators do.

use super::*;

/// A hold's id.
pub(super) fn hold_id(n: u64) -> HoldId {
    HoldId::new(format!("{n:032x}")).unwrap()
}

/// A start's id; that of its order is another.
pub(super) fn start_id(n: u64) -> RunId {
    RunId::new(format!("5{n:031x}")).unwrap()
}

/// What a look shows after a restart that stopped the container and never started it again.
pub(super) fn down() -> Sighting {
    let mut seen = sighting(StartedAt::At(at(100)));
    seen.state = ContainerState::Exited;
    seen.finished_at = Some(at(150));
    seen
}

pub(super) fn hold(n: u64, scope: HoldScope) -> PlaceHold {
    PlaceHold {
        id: hold_id(n),
        scope,
        asked_as: None,
        owner: HoldOwner::Operator,
        by: "ann".to_owned(),
        reason: "upgrade".to_owned(),
        duration_ms: None,
    }
}

pub(super) fn of_target(target: &str) -> HoldScope {
    HoldScope::Target(Target::parse(target).unwrap())
}

impl World {
    pub(super) fn place(&mut self, hold: PlaceHold) -> Outcome {
        self.apply(Command::PlaceHold(Box::new(hold)))
    }

    /// The holds that were lifted.
    pub(super) fn lift(&mut self, meant: LiftHold) -> Vec<HoldId> {
        match self.apply(Command::LiftHold(meant)) {
            Outcome::Lifted(lifted) => lifted.into_iter().map(|hold| hold.id).collect(),
            other => panic!("not lifted: {other:?}"),
        }
    }

    /// A run whose restart was answered with 500 and left the container down.
    pub(super) fn left_down(&mut self) -> RunId {
        let ask = self.ask();
        let run = self.open(ask);
        self.exchanged(&run, replied(500, Wire::Unix, EngineProof::Proven));
        self.observe(&run, Observation::Seen(down()));
        run
    }

    /// An approval of a start in the making.
    pub(super) fn approval(&self, run: &RunId, n: u64) -> OpenStart {
        OpenStart {
            run: run.clone(),
            start: start_id(n),
            order: RunId::new(format!("0d{n:030x}")).unwrap(),
            by: "ann".to_owned(),
            reason: "it is down".to_owned(),
            look: Observation::Seen(down()),
            proposer: proposer(),
            dispatcher: DispatcherRef { guard: Guard::Agent, journal: position("a", 6) },
            term: self.term,
        }
    }

    /// Why a start is refused; nothing, if it is opened.
    pub(super) fn approve(&mut self, approval: OpenStart) -> Vec<ReasonCode> {
        match self.apply(Command::OpenStart(Box::new(approval))) {
            Outcome::StartDecided(decision) => decision.reasons.iter().map(|reason| reason.code).collect(),
            other => panic!("not decided: {other:?}"),
        }
    }

    /// A run that was left down, and a start that was approved for it.
    pub(super) fn started(&mut self) -> RunId {
        let run = self.left_down();
        let approval = self.approval(&run, 1);
        assert_eq!(self.approve(approval), []);
        run
    }

    pub(super) fn start_exchanged(&mut self, run: &RunId, n: u64, exchange: Exchange) -> Outcome {
        self.apply(Command::RecordExchange(Box::new(RecordExchange {
            run: run.clone(),
            start: Some(start_id(n)),
            journal: position("a", 7),
            exchange,
        })))
    }

    pub(super) fn start_attested(&mut self, run: &RunId, n: u64, attestation: Attestation) -> Outcome {
        let (run, start) = (run.clone(), Some(start_id(n)));
        self.apply(Command::Attest(Box::new(Attest { run, start, attestation })))
    }

    pub(super) fn resolve(&mut self, run: &RunId, accept_late_post: bool) -> Outcome {
        self.resolve_by("ann", run, accept_late_post)
    }

    pub(super) fn resolve_by(&mut self, by: &str, run: &RunId, accept_late_post: bool) -> Outcome {
        self.apply(Command::Resolve(Box::new(Resolve {
            run: run.clone(),
            by: by.to_owned(),
            reason: "looked at by hand".to_owned(),
            assertion: Some(Assertion::NotApplied),
            accept_late_post,
        })))
    }

    pub(super) fn prune(&mut self) {
        assert_eq!(self.apply(Command::Prune), Outcome::Done);
    }

    pub(super) fn change_limits(&mut self, change: LimitsChange) {
        assert_eq!(self.apply(Command::ChangeLimits(change)), Outcome::Done);
    }

    pub(super) fn is_quarantined(&self, run: &RunId) -> bool {
        self.run(run).is_quarantined(self.ledger.clock())
    }
}

/// What the journal that orders name says.
pub(super) fn journal_word(word: JournalWord) -> Attestation {
    Attestation::Journal { at: position("a", 8), word }
}
