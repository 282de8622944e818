//! What is asked for about holds.

use prost_types::Duration;
use tonic::Status;

use super::record::{operator, reason};
use super::{Check, optional};
use crate::coordinator::HoldRequest;
use crate::ledger::{HoldScope, LiftHold};
use crate::model::{HoldId, HostName, Target, excerpt};
use crate::rpc::v1;

/// What `PlaceHold` asks for.
pub(in crate::api) fn hold_request(message: &v1::PlaceHoldRequest) -> Result<HoldRequest, Status> {
    let mut check = Check::default();
    let scope = check.take("scope", scope(message.scope.as_ref()));
    let by = check.take("operator", operator(&message.operator));
    let reason = check.take("reason", reason(&message.reason));
    let duration_ms = check.take("duration", message.duration.as_ref().map(hold_ms).transpose());
    let id = check.take("hold_id", optional::<HoldId>(&message.hold_id));
    let request = (|| {
        Some(HoldRequest { scope: scope?, by: by?, reason: reason?, duration_ms: duration_ms?, id: id? })
    })();
    check.end(request)
}

/// The hold that `RenewHold` asks for.
pub(in crate::api) fn renew_request(message: &v1::RenewHoldRequest) -> Result<HoldId, Status> {
    let mut check = Check::default();
    let id = check.take("hold_id", HoldId::new(message.hold_id.as_str()));
    check.end(id)
}

/// What `LiftHold` asks for, and who asks.
pub(in crate::api) fn lift_request(message: &v1::LiftHoldRequest) -> Result<(LiftHold, String), Status> {
    let mut check = Check::default();
    let which = match (message.hold_id.as_str(), &message.scope) {
        ("", scope_of) => check.take("scope", scope(scope_of.as_ref()).map(LiftHold::Scope)),
        (id, None) => check.take("hold_id", HoldId::new(id)).map(LiftHold::Id),
        (_, Some(_)) => check.take("hold_id", Err("name either a hold_id or a scope, not both")),
    };
    let by = check.take("operator", operator(&message.operator));
    let request = (|| Some((which?, by?)))();
    check.end(request)
}

/// The holds that are meant, for people.
pub(in crate::api) fn shown(which: &LiftHold) -> String {
    match which {
        LiftHold::Id(id) => format!("hold {id}"),
        LiftHold::Scope(scope) => scope.to_string(),
    }
}

fn scope(message: Option<&v1::HoldScope>) -> Result<HoldScope, String> {
    use v1::hold_scope::Scope;
    let one = "name one of everything, host, project and target";
    match message.and_then(|message| message.scope.as_ref()) {
        None => Err(format!("it is required: {one}")),
        Some(Scope::Everything(true)) => Ok(HoldScope::Everything),
        Some(Scope::Everything(false)) => Err(format!("everything is true or left out: {one}")),
        Some(Scope::Host(host)) => {
            HostName::new(host.as_str()).map(HoldScope::Host).map_err(|error| error.to_string())
        }
        Some(Scope::Target(target)) => {
            Target::parse(target).map(HoldScope::Target).map_err(|error| error.to_string())
        }
        Some(Scope::Project(text)) => project(text),
    }
}

/// `host/project`: what a target of one service of that project begins with.
fn project(text: &str) -> Result<HoldScope, String> {
    let shape = || format!("project {} is not valid: write it as host/project", excerpt(text));
    let (host, project) = text.split_once('/').ok_or_else(shape)?;
    let host = HostName::new(host).map_err(|error| error.to_string())?;
    if project.contains('/') {
        return Err(shape());
    }
    let target = Target::compose(&host, project, "service", 1).map_err(|_| shape())?;
    let project = target.project().ok_or_else(shape)?.to_owned();
    Ok(HoldScope::Project { host, project })
}

fn hold_ms(duration: &Duration) -> Result<u64, String> {
    let rule = "it is whole milliseconds, more than 0: leave it out for a hold without an end";
    let whole = duration.seconds >= 0 && duration.nanos >= 0 && duration.nanos % 1_000_000 == 0;
    let ms = whole
        .then(|| u64::try_from(duration.seconds).ok()?.checked_mul(1_000))
        .flatten()
        .and_then(|ms| ms.checked_add(u64::try_from(duration.nanos / 1_000_000).ok()?));
    ms.filter(|ms| *ms > 0).ok_or_else(|| rule.to_owned())
}
