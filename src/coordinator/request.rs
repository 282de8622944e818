//! What a client asks, and what it is told.

use crate::ledger::{Decision, Expectation, Run};
use crate::model::{RequestId, RunId, Target};

/// A request, well-formed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryRequest {
    /// The caller's id for it.
    pub id: Option<RequestId>,
    /// SHA-256 of the request as sent and of its caller, in hex: the same id with another digest is refused.
    pub digest: String,
    /// The target in the caller's spelling.
    pub spelling: Target,
    /// Why, for people.
    pub reason: String,
    /// The grace that it asks for, in whole seconds.
    pub grace_s: Option<u32>,
    /// The incarnation that it means.
    pub expect: Option<Expectation>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// How it was decided.
    pub decision: Decision,
    /// The run that answers it, as it is now.
    pub run: Run,
}

/// Why a request was not decided. An admission refusal is none of these: it is an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A field breaks a rule. Nothing was stored.
    #[error("{field}: {rule}")]
    Invalid {
        /// The field, as it is called in the request.
        field: &'static str,
        /// The rule, and what to do.
        rule: String,
    },
    /// The request id was used for another request.
    #[error("request_id: it was used for another request, answered by run {run}; use a new id")]
    RequestIdReused {
        /// The run that answered that one.
        run: RunId,
    },
    /// No leader that may admit. Nothing was decided; the same request may be sent again.
    #[error("not admitting: {detail}; send the same request again")]
    Unavailable {
        /// Why.
        detail: String,
    },
    /// It is not known whether the request was decided. The same request with the same id finds out.
    #[error(
        "not known whether it was decided: {detail}; send the same request with the same request_id again"
    )]
    Unknown {
        /// Why.
        detail: String,
    },
}
