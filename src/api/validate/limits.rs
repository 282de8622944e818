//! What is asked for about limits.

use tonic::Status;

use crate::api::convert;
use crate::api::status::{invalid, violation};
use crate::ledger::LimitsChange;
use crate::rpc::v1;

/// What `SetLimits` asks for. What a limit may be is the ledger's to say.
pub(in crate::api) fn limits_change(message: &v1::SetLimitsRequest) -> Result<LimitsChange, Status> {
    let change = convert::limits_change(message.limits.as_ref().unwrap_or(&v1::LimitSet::default()));
    if change == LimitsChange::default() {
        return Err(invalid(vec![violation("limits", "it is required: name at least one limit to change")]));
    }
    Ok(change)
}
