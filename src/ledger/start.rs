//! Left down: a start that an operator approves for a container which a restart stopped and never started.
//!
//! A start discards nothing, and is answered with 304 if the container runs already. It is a record of the
//! open run, with a fence, a dispatcher and an intent of its own; at most one is outstanding. The run stays
//! what it is, and is `APPLIED` once a later `StartedAt` is seen, with evidence `by-follow-up-start`.

use serde::{Deserialize, Serialize};

use super::command::{DispatcherRef, Proposer};
use super::moment::Moment;
use super::order::OrderFacts;
use crate::model::{ClusterTime, EngineProof, Exchange, Fence, JournalWord, NotWritten, Reply, RunId, Wire};

/// One approved start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Its id; it may be the caller's.
    pub id: RunId,
    /// What its dispatcher knows it by. Random, minted by the proposer, so that it is no other order's.
    pub order: RunId,
    /// Who approved it.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Where and when it was approved.
    pub opened: Moment,
    /// Its own authority and order.
    pub fence: Fence,
    /// Who proposed it.
    pub proposer: Proposer,
    /// Who may send it.
    pub dispatcher: DispatcherRef,
    /// How long the whole exchange may take, from the first request byte.
    pub client_deadline_ms: u64,
    /// How long a ticket for it is good.
    pub dispatch_by_ms: u64,
    /// When its exchange must have ended, one way or the other.
    pub deadline: ClusterTime,
    /// What the wire showed, as far as known.
    pub exchange: Option<Exchange>,
    /// What the journal says, as far as asked.
    pub word: Option<JournalWord>,
    /// What the proposer said, if it never handed the start on.
    pub never_handed_on: Option<NotWritten>,
}

impl Start {
    /// True once nothing of it can still take effect: it was never sent and never will be, or the engine has
    /// answered.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.exchange.as_ref().is_some_and(Exchange::has_ended)
            || matches!(self.word, Some(JournalWord::NoIntent | JournalWord::NotSent))
            || self.never_handed_on.is_some()
    }

    /// True while no other start may be approved: it has not ended, and its deadline has not passed.
    #[must_use]
    pub fn is_outstanding(&self, clock: ClusterTime) -> bool {
        !self.has_ended() && clock < self.deadline
    }

    /// True unless it is known that it was not sent. Its effect may be seen before anybody speaks of it.
    #[must_use]
    pub fn may_have_left(&self) -> bool {
        self.exchange.as_ref().map_or(!self.has_ended(), Exchange::was_written)
    }

    /// True if it may have had an effect: it may have been sent, and the engine itself has not said that it did
    /// nothing, since the container ran already (304) or could not be started.
    #[must_use]
    pub fn may_have_acted(&self) -> bool {
        let did_nothing = matches!(
            &self.exchange,
            Some(Exchange::Written {
                wire: Wire::Unix,
                reply: Reply::Complete { status: 304 | 400 | 404, proof: EngineProof::Proven, .. },
                ..
            })
        );
        self.may_have_left() && !did_nothing
    }

    pub(super) fn facts(&mut self, status: &'static str, level: u32) -> OrderFacts<'_> {
        let proven_unsent = self.has_ended() && !self.may_have_left();
        OrderFacts {
            proposer: &self.proposer,
            dispatcher: &self.dispatcher,
            exchange: &mut self.exchange,
            word: &mut self.word,
            never_handed_on: &mut self.never_handed_on,
            status,
            proven_unsent,
            rules: level,
        }
    }
}
