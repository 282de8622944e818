//! What operators ask for about a run.

use tonic::Status;

use super::record::{operator, reason};
use super::{Check, beginning, optional};
use crate::coordinator::{ApproveRequest, ResolveRequest};
use crate::ledger::Assertion;
use crate::model::RunId;
use crate::rpc::v1;

/// What `ResolveRun` asks for: of which run, and the wish that lacks only the whole id of that.
pub(in crate::api) fn resolve_request(
    message: &v1::ResolveRunRequest,
) -> Result<(String, impl FnOnce(RunId) -> ResolveRequest + use<>), Status> {
    let mut check = Check::default();
    let run = check.take("run_id", beginning(&message.run_id));
    let by = check.take("operator", operator(&message.operator));
    let reason = check.take("reason", reason(&message.reason));
    let assertion = check.take("assertion", assertion(message.assertion));
    let accept_late_post = message.accept_late_post;
    let wish = (|| {
        let (by, reason, assertion) = (by?, reason?, assertion?);
        let wish = move |run| ResolveRequest { run, by, reason, assertion, accept_late_post };
        Some((run?, wish))
    })();
    check.end(wish)
}

fn assertion(number: i32) -> Result<Option<Assertion>, String> {
    match v1::Assertion::try_from(number) {
        Ok(v1::Assertion::Unspecified) => Ok(None),
        Ok(v1::Assertion::Applied) => Ok(Some(Assertion::Applied)),
        Ok(v1::Assertion::NotApplied) => Ok(Some(Assertion::NotApplied)),
        Err(_) => Err(format!("{number} is no assertion: leave it out to assert nothing")),
    }
}

/// What `ApproveStart` asks for: of which run, and the approval that lacks only the whole id of that.
pub(in crate::api) fn approve_request(
    message: &v1::ApproveStartRequest,
) -> Result<(String, impl FnOnce(RunId) -> ApproveRequest + use<>), Status> {
    let mut check = Check::default();
    let run = check.take("run_id", beginning(&message.run_id));
    let by = check.take("operator", operator(&message.operator));
    let reason = check.take("reason", reason(&message.reason));
    let start = check.take("start_id", optional::<RunId>(&message.start_id));
    let approval = (|| {
        let (by, reason, start) = (by?, reason?, start?);
        Some((run?, move |run| ApproveRequest { run, by, reason, start }))
    })();
    check.end(approval)
}
