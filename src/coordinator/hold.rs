//! Placing holds: under the one spelling that the ledger knows a container by.

use std::sync::Arc;

use super::ask::unexpected;
use super::request::{HoldRequest, Placed, RequestError};
use super::resolve::{Resolved, resolve};
use super::shared::Shared;
use crate::docker::ListFilter;
use crate::ledger::{Command, HoldOwner, HoldScope, Outcome, PlaceHold, Run};
use crate::model::{HoldId, Target, Term};

/// Places a hold for an operator.
pub(super) async fn place_hold(
    shared: &Arc<Shared>,
    term: Term,
    request: HoldRequest,
) -> Result<Placed, RequestError> {
    let scope = match request.scope {
        HoldScope::Target(spelling) => HoldScope::Target(canonical(shared, spelling).await?),
        HoldScope::Host(host) if shared.host(&host).is_none() => {
            return Err(unknown_host(shared, "scope.host", host.as_str()));
        }
        HoldScope::Project { host, .. } if shared.host(&host).is_none() => {
            return Err(unknown_host(shared, "scope.project", host.as_str()));
        }
        other => other,
    };
    let command = PlaceHold {
        id: request.id.map_or_else(|| shared.mint(HoldId::new), Ok)?,
        scope,
        owner: HoldOwner::Operator,
        by: request.by,
        reason: request.reason,
        duration_ms: request.duration_ms,
    };
    let (hold, repeated) = match shared.ask(term, Command::PlaceHold(Box::new(command))).await? {
        Outcome::Held { hold, repeated } => (*hold, repeated),
        other => return Err(unexpected(other)),
    };
    tracing::info!(hold = %hold.id, scope = %hold.scope, by = %hold.by, "a hold stands: {}", hold.reason);
    let covered =
        |run: &&Run| run.baseline.as_ref().is_some_and(|baseline| hold.covers(&run.target, &baseline.name));
    let open_runs = shared
        .consensus
        .read(|ledger| ledger.open_runs().filter(covered).map(|run| run.id.clone()).collect());
    Ok(Placed { hold, repeated, open_runs })
}

/// The target as the ledger knows it. What no container answers to now, or cannot be found out, stays as it was
/// spelled: a hold must be possible while a container is away.
pub(super) async fn canonical(shared: &Shared, spelling: Target) -> Result<Target, RequestError> {
    let Some(host) = shared.host(spelling.host()) else {
        return Err(unknown_host(shared, "scope.target", spelling.host().as_str()));
    };
    let Ok(containers) = host.dispatcher.engine().list(&ListFilter::default()).await else {
        return Ok(spelling.first_replica());
    };
    match resolve(&spelling, &containers) {
        Resolved::One(_, target) => Ok(target),
        Resolved::None(_) => Ok(spelling.first_replica()),
        Resolved::Several(found) => Err(RequestError::Invalid {
            field: "scope.target".to_owned(),
            rule: format!(
                "it may be any of {}: name one",
                found.iter().map(|(_, target)| target.to_string()).collect::<Vec<_>>().join(", ")
            ),
        }),
    }
}

fn unknown_host(shared: &Shared, field: &str, host: &str) -> RequestError {
    let known = shared.hosts.keys().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    RequestError::Invalid {
        field: field.to_owned(),
        rule: format!("host {host} is not known here; the hosts are: {known}"),
    }
}
