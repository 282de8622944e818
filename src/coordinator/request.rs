//! What a client asks, and what it is told.

use crate::ledger::{
    Assertion, Baseline, Decision, DecisionKind, Diagnosis, Expectation, Guard, Hold, HoldScope, Reason, Run,
};
use crate::model::{Grace, HoldId, RequestId, RunId, Target};

/// A request, well-formed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryRequest {
    /// The caller's id for it.
    pub id: Option<RequestId>,
    /// Who asks.
    pub caller: String,
    /// The name that they gave, for people.
    pub by: Option<String>,
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
    /// Decide, and commit nothing.
    pub dry_run: bool,
    /// What is said to be the matter with it.
    pub diagnosis: Diagnosis,
}

/// An operator's wish to end a run, well-formed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolveRequest {
    /// The run.
    pub run: RunId,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// What they say happened.
    pub assertion: Option<Assertion>,
    /// Also if the restart may still land.
    pub accept_late_post: bool,
}

/// An operator's approval of a start, well-formed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApproveRequest {
    /// The run.
    pub run: RunId,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// The caller's id for it.
    pub start: Option<RunId>,
}

/// A wish for a hold, well-formed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldRequest {
    /// What it is to cover; a target in the caller's spelling.
    pub scope: HoldScope,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// How long; `None` until it is lifted.
    pub duration_ms: Option<u64>,
    /// The caller's id for it.
    pub id: Option<HoldId>,
}

/// A hold that stands, and the open runs that it covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The hold.
    pub hold: Hold,
    /// True if it stood before.
    pub repeated: bool,
    /// Each may be on its way to the engine already.
    pub open_runs: Vec<RunId>,
    /// What whoever placed it should know, in one line; empty for nothing.
    pub note: String,
}

/// What stands in the way of a restart, and what does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The canonical target, as far as it is known.
    pub target: Target,
    /// How a request would be decided.
    pub kind: DecisionKind,
    /// Every check by name: what it found, or `None` if it was not made.
    pub checks: Vec<(&'static str, Option<Checked>)>,
    /// The container and the grace that a restart would have, if it could be looked at.
    pub found: Option<(Baseline, Grace)>,
    /// How strongly a restart would be fenced.
    pub guard: Guard,
    /// The open or quarantined run that stands for it.
    pub standing: Option<Run>,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// In one line.
    pub detail: String,
    /// Why it blocks; empty if it passes.
    pub reasons: Vec<Reason>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// How it was decided.
    pub decision: Decision,
    /// The run that answers it, as it is now; after a dry run, as it would be.
    pub run: Run,
    /// True if nothing was committed.
    pub dry_run: bool,
}

/// Why a request was not decided. An admission refusal is none of these: it is an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A field breaks a rule. Nothing was stored.
    #[error("{field}: {rule}")]
    Invalid {
        /// The field, as it is called in the request.
        field: String,
        /// The rule, and what to do.
        rule: String,
    },
    /// The request id was used for another request.
    #[error("request_id: it was used for another request, answered by run {run}; use a new id")]
    RequestIdReused {
        /// The run that answered that one.
        run: RunId,
    },
    /// There is no such run, or it never had an interlock.
    #[error("run {run}: there is no run of this id that was ever admitted; `relatch runs list` shows all")]
    NoSuchRun {
        /// The id.
        run: RunId,
    },
    /// Something else must be so first. Nothing was changed.
    #[error("{detail}")]
    Precondition {
        /// What kind of thing, such as `RUN_SETTLED`.
        kind: &'static str,
        /// Of what.
        subject: String,
        /// What, and what to do.
        detail: String,
    },
    /// A caller's share of what is remembered is full. Nothing was decided.
    #[error(
        "{caller} has {most} {what} remembered already, which is as many as one caller may have; there is room \
         again in {} s{detail}",
        frees_in_ms.div_ceil(1000)
    )]
    Exhausted {
        /// Whose.
        caller: String,
        /// Of what, such as `refusals`.
        what: &'static str,
        /// How many one caller may have.
        most: u32,
        /// When there is room again.
        frees_in_ms: u64,
        /// What it would have been refused for.
        detail: String,
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
