//! What is known of one order to a dispatcher: a run's restart, or a start that followed it. Whose word counts,
//! and which word can be taken back by none (invariant 4).

use super::command::{Attestation, DispatcherRef, Proposer};
use super::outcome::Rejection;
use super::words;
use crate::model::{Exchange, Hole, Holes, JournalPosition, JournalWord, NotWritten};

/// What is on record of one order, to be added to.
pub(super) struct OrderFacts<'a> {
    pub(super) proposer: &'a Proposer,
    pub(super) dispatcher: &'a DispatcherRef,
    pub(super) exchange: &'a mut Option<Exchange>,
    pub(super) word: &'a mut Option<JournalWord>,
    pub(super) never_handed_on: &'a mut Option<NotWritten>,
    /// Where the run stands, in the public word.
    pub(super) status: &'static str,
    /// True once it was settled that nothing was sent.
    pub(super) proven_unsent: bool,
    /// The rules in force.
    pub(super) rules: u32,
}

/// What became of a piece of evidence.
pub(super) enum Taken {
    /// It was known.
    Known,
    /// It is on record now; in one line.
    News(String),
    /// It is not the word of who could know.
    Refused(Rejection),
    /// It contradicts what is on record; in one line.
    Contradiction(String),
}

impl OrderFacts<'_> {
    /// Takes what the wire showed. Never a proof once a byte is on record, and never a byte once it is settled
    /// that nothing was sent.
    pub(super) fn take_exchange(
        &mut self,
        exchange: Exchange,
        journal: &JournalPosition,
        holes: Holes,
    ) -> Taken {
        let known = self.exchange.as_ref();
        if known == Some(&exchange) {
            return Taken::Known;
        }
        let is_proof = !exchange.was_written();
        if is_proof && let Err(detail) = self.is_named(journal, holes) {
            return Taken::Refused(Rejection::NotItsWord { detail });
        }
        let clash =
            (is_proof && known.is_some_and(Exchange::was_written)) || (!is_proof && self.proven_unsent);
        if clash {
            let told = if self.rules >= 3 { words::exchange(&exchange) } else { format!("{exchange:?}") };
            return Taken::Contradiction(format!("{told} against {}", self.status));
        }
        let detail = words::exchange(&exchange);
        *self.exchange = Some(exchange);
        if is_proof {
            *self.word = Some(JournalWord::NotSent);
        }
        Taken::News(detail)
    }

    /// Takes what a process states that can know.
    pub(super) fn take_attestation(&mut self, attestation: Attestation, holes: Holes) -> Taken {
        match attestation {
            Attestation::NeverHandedOn { proposer, refusal } => {
                if proposer != *self.proposer {
                    let detail = format!("node {} did not propose this run in this life", proposer.node);
                    return Taken::Refused(Rejection::NotItsWord { detail });
                }
                // Revoked by another task while its proposer was about to hand it on: both say that nothing was sent.
                let revoked = matches!(self.word, Some(JournalWord::NoIntent | JournalWord::NotSent));
                if self.rules >= 2 && revoked && self.exchange.is_none() {
                    return Taken::Known;
                }
                // A journal that could not be asked has said nothing that this could contradict.
                let word = match &self.word {
                    Some(JournalWord::Unreachable { .. }) if self.rules >= 3 => None,
                    word => word.as_ref(),
                };
                if self.exchange.is_some() || word.is_some() {
                    let against = match (&self.exchange, word) {
                        _ if self.rules < 3 => format!("{:?}", self.word),
                        (Some(exchange), _) => words::exchange(exchange),
                        (None, word) => {
                            format!(
                                "the journal, which says {}",
                                word.map_or_else(String::new, words::journal)
                            )
                        }
                    };
                    let detail = format!("never handed on ({}) against {against}", refusal.detail);
                    return Taken::Contradiction(detail);
                }
                if self.never_handed_on.is_some() {
                    return Taken::Known;
                }
                let detail = format!("never handed on: {}", refusal.detail);
                *self.never_handed_on = Some(refusal);
                Taken::News(detail)
            }
            Attestation::Journal { at, word } => {
                // A journal that is gone, another's, or behind the named sequence proves nothing.
                let word = match self.is_named(&at, holes) {
                    Ok(()) => word,
                    Err(detail) => JournalWord::Unreachable { detail },
                };
                if !is_news(self.word.as_ref(), &word) {
                    return Taken::Known;
                }
                let nothing = matches!(word, JournalWord::NoIntent | JournalWord::NotSent);
                if nothing && self.exchange.as_ref().is_some_and(Exchange::was_written) {
                    let told = if self.rules >= 3 {
                        format!("the journal says {},", words::journal(&word))
                    } else {
                        format!("{word:?}")
                    };
                    return Taken::Contradiction(format!("{told} against a written request"));
                }
                let detail = format!("the journal says {}", words::journal(&word));
                *self.word = Some(word);
                Taken::News(detail)
            }
        }
    }

    /// True if this is the journal that the order names, at or after the place that it names.
    fn is_named(&self, at: &JournalPosition, holes: Holes) -> Result<(), String> {
        let named = &self.dispatcher.journal;
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
