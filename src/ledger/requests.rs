//! What requests are answered by memory, and which are remembered.

use super::apply::Ledger;
use super::command::Request;
use super::entry::Entry;
use super::outcome::{Decision, Exhausted, Outcome, Rejection, Share};
use super::reason::Reason;
use super::record::Remembered;
use crate::model::{ClusterTime, RequestId};

impl Ledger {
    /// The stored answer to a request.
    #[must_use]
    pub fn remembered(&self, id: &RequestId) -> Option<&Remembered> {
        self.memory().get(id)
    }

    /// The stored answer, if the request's id is known. It comes before every rule.
    pub(super) fn known_request(&self, request: &Request) -> Option<Outcome> {
        let remembered = self.remembered(request.id.as_ref()?)?;
        if remembered.digest != request.digest {
            let run = remembered.decision.run.clone();
            return Some(Outcome::Rejected(Rejection::RequestIdReused { run }));
        }
        Some(Outcome::Decided(Decision { repeated: true, ..remembered.decision.clone() }))
    }

    /// Whether another refusal of this caller can be kept; `reasons` are what it would be refused for.
    pub(super) fn refusals_full(
        &self,
        clock: ClusterTime,
        request: &Request,
        reasons: &[Reason],
    ) -> Option<Exhausted> {
        let full = self.share_full(Share::Refusals, clock, request)?;
        Some(Exhausted { reasons: reasons.to_vec(), ..full })
    }

    /// Whether another attach of this caller can be remembered. One without an id need not be.
    pub(super) fn attaches_full(&self, clock: ClusterTime, request: &Request) -> Option<Exhausted> {
        request.id.as_ref()?;
        self.share_full(Share::Attaches, clock, request)
    }

    fn share_full(&self, share: Share, clock: ClusterTime, request: &Request) -> Option<Exhausted> {
        if !self.rules(2) {
            return None;
        }
        self.memory().full(share, &request.caller, clock, self.limits())
    }

    pub(super) fn remember(&mut self, entry: &Entry, request: &Request, decision: &Decision) {
        if let Some(id) = &request.id {
            self.put_request(Remembered {
                id: id.clone(),
                caller: request.caller.clone(),
                digest: request.digest.clone(),
                decision: decision.clone(),
                at: entry.moment(),
            });
        }
    }
}
