//! What a client is told of a proposal that came to no answer of its own.

use std::sync::atomic::Ordering;

use super::request::RequestError;
use super::shared::Shared;
use crate::consensus::ProposeError;
use crate::env::hex_id;
use crate::ledger::{Command, Exhausted, Outcome, Rejection, Share};
use crate::model::{InvalidId, Term};

impl Shared {
    /// Proposes on behalf of a client, once: its fate may stay unknown.
    pub(super) async fn ask(&self, term: Term, command: Command) -> Result<Outcome, RequestError> {
        let caller = match &command {
            Command::OpenInterlock(open) => open.request.caller.clone(),
            Command::RefuseRequest(refuse) => refuse.request.caller.clone(),
            _ => String::new(),
        };
        match self.propose(term, command).await {
            Ok(Outcome::Rejected(why)) => Err(rejected(why)),
            Ok(Outcome::Exhausted(full)) => Err(self.exhausted(&caller, &full)),
            Ok(outcome) => Ok(outcome),
            Err(ProposeError::Unknown { detail, .. }) => Err(RequestError::Unknown { detail }),
            Err(
                error @ (ProposeError::NotLeader { .. }
                | ProposeError::Stopped { .. }
                | ProposeError::Unstorable { .. }),
            ) => Err(self.unavailable(error.to_string())),
        }
    }

    /// A share of a caller is full.
    pub(super) fn exhausted(&self, caller: &str, full: &Exhausted) -> RequestError {
        RequestError::Exhausted {
            caller: caller.to_owned(),
            what: match full.share {
                Share::Refusals => "refusals",
                Share::Attaches => "attached requests",
            },
            most: full.most,
            frees_in_ms: full.frees.since_ms(self.consensus.cluster_time()),
            detail: full.reasons.iter().map(|why| format!("; {}: {}", why.code, why.detail)).collect(),
        }
    }

    /// This node decides nothing now. One that is ending says that instead of what follows from it.
    pub(super) fn unavailable(&self, detail: String) -> RequestError {
        let ending = "this node is ending: ask another one, or this one once it is started again";
        let detail = if self.is_ending.load(Ordering::Relaxed) { ending.to_owned() } else { detail };
        RequestError::Unavailable { detail }
    }

    /// A new random id.
    pub(super) fn mint<T>(&self, of: fn(String) -> Result<T, InvalidId>) -> Result<T, RequestError> {
        let unavailable = |detail: String| RequestError::Unavailable { detail };
        let text = hex_id(self.randomness.as_ref()).map_err(|error| unavailable(error.to_string()))?;
        of(text).map_err(|error| unavailable(error.to_string()))
    }
}

/// An outcome that no command of this kind has: a proposal of another term, for one.
pub(super) fn unexpected(outcome: Outcome) -> RequestError {
    RequestError::Unavailable { detail: format!("the ledger answered {outcome:?}") }
}

fn rejected(why: Rejection) -> RequestError {
    let detail = why.to_string();
    let invalid = |field: &str, rule: String| RequestError::Invalid { field: field.to_owned(), rule };
    match why {
        Rejection::RequestIdReused { run } => RequestError::RequestIdReused { run },
        Rejection::NoInterlock { run } => RequestError::NoSuchRun { run },
        Rejection::RunSettled { run, .. } => {
            RequestError::Precondition { kind: "RUN_SETTLED", subject: run.to_string(), detail }
        }
        Rejection::MayStillLand { run } => {
            RequestError::Precondition { kind: "MAY_STILL_LAND", subject: run.to_string(), detail }
        }
        Rejection::HoldIdReused { .. } => invalid("hold_id", detail),
        Rejection::StartIdReused { .. } => invalid("start_id", detail),
        Rejection::InvalidLimit(limit) => invalid(
            &format!("limits.{}", limit.field),
            format!("{} is not valid: {}", limit.value, limit.rule),
        ),
        Rejection::RulesTooOld { .. } => {
            RequestError::Precondition { kind: "RULES_LEVEL", subject: "cluster".to_owned(), detail }
        }
        Rejection::Invalid { .. } => {
            RequestError::Precondition { kind: "RULE", subject: "ledger".to_owned(), detail }
        }
        Rejection::DuplicateRun { .. } | Rejection::NotItsWord { .. } | Rejection::Contradiction { .. } => {
            RequestError::Unavailable { detail }
        }
    }
}
