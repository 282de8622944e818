//! Placing and lifting holds: under the one spelling that the ledger knows a container by.

use std::sync::Arc;

use super::ask::unexpected;
use super::request::{HoldRequest, Placed, RequestError};
use super::resolve::{Resolved, resolve};
use super::shared::Shared;
use crate::docker::ListFilter;
use crate::ledger::{Baseline, Command, Hold, HoldOwner, HoldScope, LiftHold, Outcome, PlaceHold, Run};
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
    let covered = |run: &&Run| {
        let covers =
            |known: &Baseline| hold.covers(&run.target, &known.name, &known.incarnation.container_id);
        run.baseline.as_ref().is_some_and(covers)
    };
    let open_runs = shared
        .consensus
        .read(|ledger| ledger.open_runs().filter(covered).map(|run| run.id.clone()).collect());
    Ok(Placed { hold, repeated, open_runs })
}

/// Lifts holds; gives those that it lifted. A hold of a target stands under its canonical spelling, or as it was
/// spelled, if no container answered to that when it was placed: both are meant.
pub(super) async fn lift_holds(
    shared: &Arc<Shared>,
    term: Term,
    which: LiftHold,
    by: &str,
) -> Result<Vec<Hold>, RequestError> {
    let meant = match which {
        LiftHold::Scope(HoldScope::Target(spelling)) => {
            let canonical = canonical(shared, spelling.clone()).await?;
            let spelled = Some(spelling.first_replica()).filter(|spelled| *spelled != canonical);
            let targets = std::iter::once(canonical).chain(spelled);
            targets.map(|target| LiftHold::Scope(HoldScope::Target(target))).collect()
        }
        other => vec![other],
    };
    let mut all = Vec::new();
    for which in meant {
        match shared.ask(term, Command::LiftHold(which)).await? {
            Outcome::Lifted(lifted) => all.extend(lifted),
            other => return Err(unexpected(other)),
        }
    }
    for hold in &all {
        tracing::info!(hold = %hold.id, scope = %hold.scope, %by, "a hold was lifted");
    }
    Ok(all)
}

/// The target as the ledger knows it. What no container answers to now, or cannot be found out, stays as it was
/// spelled: a hold must be possible while a container is away.
async fn canonical(shared: &Shared, spelling: Target) -> Result<Target, RequestError> {
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
                "name one of those that it may be: {}",
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
