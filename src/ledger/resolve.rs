//! An operator's word: it ends a run, and claims nothing (invariant 6).

use super::apply::Ledger;
use super::command::Resolve;
use super::entry::Entry;
use super::outcome::{Outcome, Rejection};
use super::resolution::Resolution;
use super::run::Run;
use super::status::Status;
use crate::model::{Exchange, JournalWord};

impl Run {
    /// True if its dispatcher has acknowledged that it sends nothing more for this run: it revoked it, or told how
    /// its one request went, be it that the reply was lost. Starts that were approved count as well.
    #[must_use]
    pub fn dispatcher_is_done(&self) -> bool {
        let acknowledged = |exchange: Option<&Exchange>, word: Option<&JournalWord>| {
            exchange.is_some()
                || matches!(word, Some(JournalWord::NoIntent | JournalWord::NotSent | JournalWord::Intent))
        };
        acknowledged(self.exchange.as_ref(), self.word.as_ref())
            && self
                .starts
                .iter()
                .all(|start| start.has_ended() || acknowledged(start.exchange.as_ref(), start.word.as_ref()))
    }
}

impl Ledger {
    /// Ends an open run by an operator's word.
    pub(super) fn resolve(&mut self, entry: &Entry, command: Resolve) -> Outcome {
        let Some((mut run, interlock)) = self.with_interlock(&command.run) else {
            return Outcome::Rejected(Rejection::NoInterlock { run: command.run });
        };
        if let Status::OperatorResolved { resolution } = &run.status
            && (&resolution.by, &resolution.reason, resolution.assertion)
                == (&command.by, &command.reason, command.assertion)
        {
            return Outcome::Recorded { changed: false };
        }
        if !run.is_open() {
            return Outcome::Rejected(Rejection::RunSettled {
                run: command.run,
                status: run.status.word().to_owned(),
            });
        }
        let done = run.dispatcher_is_done();
        if !done && !command.accept_late_post {
            return Outcome::Rejected(Rejection::MayStillLand { run: command.run });
        }
        run.status = Status::OperatorResolved {
            resolution: Resolution {
                by: command.by,
                reason: command.reason,
                assertion: command.assertion,
                accepted_late_post: !done,
            },
        };
        self.enter(entry, &mut run, &interlock);
        self.put_run(run);
        Outcome::Recorded { changed: true }
    }
}
