//! A way into this module for `tests/fuzz` alone: what a client sent, as far as the coordinator gets it.

use super::validate;
use crate::coordinator::{ApproveRequest, HoldRequest, RecoveryRequest, ResolveRequest};
use crate::ledger::{ANONYMOUS, LiftHold, LimitsChange};
use crate::model::RunId;
use crate::rpc::v1;

/// A request that was found well-formed.
#[derive(Debug)]
pub enum WellFormed {
    /// Of `RequestRecovery` or `Explain`.
    Recovery(RecoveryRequest),
    /// Of `ResolveRun`.
    Resolve(ResolveRequest),
    /// Of `ApproveStart`.
    Approve(ApproveRequest),
    /// Of `PlaceHold`.
    Hold(HoldRequest),
    /// Of `LiftHold`.
    Lift(LiftHold, String),
    /// Of `SetLimits`.
    Limits(LimitsChange),
    /// Of a method that only reads.
    Read,
}

/// A request, as it was decoded.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each is the request of the method of that name")]
pub enum Request {
    RequestRecovery(v1::RequestRecoveryRequest),
    Explain(v1::ExplainRequest),
    ResolveRun(v1::ResolveRunRequest),
    ApproveStart(v1::ApproveStartRequest),
    GetRun(v1::GetRunRequest),
    ListRuns(v1::ListRunsRequest),
    PlaceHold(v1::PlaceHoldRequest),
    LiftHold(v1::LiftHoldRequest),
    SetLimits(v1::SetLimitsRequest),
}

/// Validates a request. Where it names a run by its beginning, `run` is the run that begins so.
///
/// # Errors
///
/// The status that the client is answered with.
pub fn well_formed(request: &Request, run: &RunId) -> Result<WellFormed, tonic::Status> {
    Ok(match request {
        Request::RequestRecovery(message) => {
            WellFormed::Recovery(validate::recovery_request(message, ANONYMOUS)?)
        }
        Request::Explain(message) => WellFormed::Recovery(validate::explain_request(message)?),
        Request::ResolveRun(message) => {
            let (_, wish) = validate::resolve_request(message)?;
            WellFormed::Resolve(wish(run.clone()))
        }
        Request::ApproveStart(message) => {
            let (_, approval) = validate::approve_request(message)?;
            WellFormed::Approve(approval(run.clone()))
        }
        Request::GetRun(message) => {
            validate::run_beginning(&message.run_id)?;
            WellFormed::Read
        }
        Request::ListRuns(message) => {
            validate::page(message)?;
            WellFormed::Read
        }
        Request::PlaceHold(message) => WellFormed::Hold(validate::hold_request(message)?),
        Request::LiftHold(message) => {
            let (which, by) = validate::lift_request(message)?;
            WellFormed::Lift(which, by)
        }
        Request::SetLimits(message) => WellFormed::Limits(validate::limits_change(message)?),
    })
}
