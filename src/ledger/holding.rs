//! Placing and lifting holds, and what they stand in the way of.

use super::apply::Ledger;
use super::command::{LiftHold, PlaceHold};
use super::entry::Entry;
use super::hold::{Hold, HoldOwner};
use super::outcome::{Outcome, Rejection};
use super::reason::Reason;
use crate::model::{ClusterTime, ContainerId, HoldId, Target};

/// How many holds there may be: each is looked at for every request.
const MOST: usize = 1_000;

impl Ledger {
    /// A hold by its id, also one that has ended and was not cleared away yet.
    #[must_use]
    pub fn hold(&self, id: &HoldId) -> Option<&Hold> {
        self.holds().find(|hold| hold.id == *id)
    }

    /// Why a container is held at `clock`; empty if it is not. A hold on any of its names is meant for it: it may
    /// have been renamed since it was decided about.
    #[must_use]
    pub fn held(&self, target: &Target, names: &[&str], id: &ContainerId, clock: ClusterTime) -> Vec<Reason> {
        let covers = |hold: &&Hold| names.iter().any(|name| hold.covers(target, name, id));
        self.holds().filter(|hold| hold.stands(clock)).filter(covers).map(Hold::reason).collect()
    }

    pub(super) fn place_hold(&mut self, entry: &Entry, command: PlaceHold) -> Outcome {
        let PlaceHold { id, scope, asked_as, owner, by, reason, duration_ms } = command;
        let placed = entry.moment();
        let hold = Hold { id, scope, asked_as, owner, by, reason, duration_ms, placed, renewed: None };
        if let Some(known) = self.hold(&hold.id) {
            return if known.is_the_same_wish(&hold) && known.stands(entry.clock) {
                Outcome::Held { hold: Box::new(known.clone()), repeated: true }
            } else {
                Outcome::Rejected(Rejection::HoldIdReused { hold: hold.id })
            };
        }
        if hold.duration_ms == Some(0) {
            let detail =
                "a hold of 0 ms holds nothing: leave the duration out, or name a longer one".to_owned();
            return Outcome::Rejected(Rejection::Invalid { detail });
        }
        if self.holds().filter(|hold| hold.stands(entry.clock)).count() >= MOST {
            let detail = format!("there are {MOST} holds: lift some, or place one over a wider scope");
            return Outcome::Rejected(Rejection::Invalid { detail });
        }
        self.put_hold(hold.clone());
        Outcome::Held { hold: Box::new(hold), repeated: false }
    }

    /// Lets the time of a hold begin anew. One that has ended stays so: what it covered may have been restarted since.
    pub(super) fn renew_hold(&mut self, entry: &Entry, id: &HoldId) -> Outcome {
        let Some(mut hold) = self.hold(id).filter(|hold| hold.stands(entry.clock)).cloned() else {
            return Outcome::Renewed(None);
        };
        if hold.duration_ms.is_some() {
            hold.renewed = Some(entry.clock);
            self.put_hold(hold.clone());
        }
        Outcome::Renewed(Some(Box::new(hold)))
    }

    /// Lifts one hold by its id, or every operator's hold of exactly one scope.
    pub(super) fn lift_hold(&mut self, entry: &Entry, command: &LiftHold) -> Outcome {
        let meant = |hold: &&Hold| match command {
            LiftHold::Id(id) => hold.id == *id,
            LiftHold::Scope(scope) => hold.scope == *scope && hold.owner == HoldOwner::Operator,
        };
        let lifted: Vec<Hold> =
            self.holds().filter(|hold| hold.stands(entry.clock)).filter(meant).cloned().collect();
        for hold in &lifted {
            self.remove_hold(hold);
        }
        Outcome::Lifted(lifted)
    }
}
