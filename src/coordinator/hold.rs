//! Placing and lifting holds: under the one spelling that the ledger knows a container by.

use std::sync::Arc;

use super::admit::confirm;
use super::ask::unexpected;
use super::near::did_you_mean;
use super::request::{HoldRequest, Placed, RequestError};
use super::resolve::{Resolved, has_project, listed, resolve};
use super::shared::Shared;
use crate::docker::{EngineError, ListFilter};
use crate::ledger::{Baseline, Command, Hold, HoldOwner, HoldScope, LiftHold, Outcome, PlaceHold, Run};
use crate::model::{ContainerId, HoldId, HostName, Target, Term};

/// Places a hold for an operator.
pub(super) async fn place_hold(
    shared: &Arc<Shared>,
    term: Term,
    request: HoldRequest,
) -> Result<Placed, RequestError> {
    let id = request.id.map_or_else(|| shared.mint(HoldId::new), Ok)?;
    let asked = match request.scope {
        HoldScope::Target(spelling) => HoldScope::Target(spelling.first_replica()),
        other => other,
    };
    let (scope, note) = match known_scope(shared, term, &id, &asked).await? {
        Some(scope) => (scope, String::new()),
        None => resolved(shared, &asked).await?,
    };
    let asked_as = Some(asked).filter(|asked| *asked != scope && shared.knows_rules(3));
    let command = PlaceHold {
        id,
        scope,
        asked_as,
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
    Ok(Placed { hold, repeated, open_runs, note })
}

/// The scope of the hold that was asked for so under this id. It stands before any look at the engine: a container
/// may have another name by now, and an engine may be away.
async fn known_scope(
    shared: &Shared,
    term: Term,
    id: &HoldId,
    asked: &HoldScope,
) -> Result<Option<HoldScope>, RequestError> {
    confirm(shared, term).await?;
    Ok(shared.consensus.read(|ledger| {
        let known = ledger.hold(id).filter(|known| known.asked() == asked);
        known.map(|known| known.scope.clone())
    }))
}

/// What a scope covers, under the spelling that the ledger knows it by, and what is to be said of that.
async fn resolved(shared: &Shared, asked: &HoldScope) -> Result<(HoldScope, String), RequestError> {
    match asked {
        HoldScope::Target(spelling) => {
            let found = canonical(shared, spelling.clone()).await?;
            return Ok((HoldScope::Target(found.target), found.note));
        }
        HoldScope::Host(host) if shared.host(host).is_none() => {
            return Err(unknown_host(shared, "scope.host", host.as_str()));
        }
        HoldScope::Project { host, project } => {
            let Some(link) = shared.host(host) else {
                return Err(unknown_host(shared, "scope.project", host.as_str()));
            };
            let note = match link.dispatcher.engine().list(&ListFilter::default()).await {
                Ok(containers) if !has_project(host, project, &containers) => {
                    format!("no container on host {host} is of project {project} now: {LATER}")
                }
                Ok(_) => String::new(),
                Err(error) => unanswered(host, &error),
            };
            return Ok((asked.clone(), note));
        }
        HoldScope::Host(_) | HoldScope::Everything => {}
    }
    Ok((asked.clone(), String::new()))
}

/// What becomes of a hold on something that is not there.
const LATER: &str = "the hold stands all the same, for whatever comes to bear that name";

fn unanswered(host: &HostName, error: &EngineError) -> String {
    format!(
        "the engine of host {host} does not answer, so nobody knows whether anything bears that name: {error}"
    )
}

/// Lets the time of a hold begin anew. None if it does not stand any more.
pub(super) async fn renew_hold(
    shared: &Arc<Shared>,
    term: Term,
    hold: HoldId,
) -> Result<Option<Hold>, RequestError> {
    match shared.ask(term, Command::RenewHold { hold }).await? {
        Outcome::Renewed(hold) => Ok(hold.map(|hold| *hold)),
        other => Err(unexpected(other)),
    }
}

/// Lifts holds; gives those that it lifted. A hold of a target stands under its canonical spelling, or as it was
/// spelled, if no container answered to that when it was placed: both are meant. So is one of the same container under
/// a name that it had, and one that was asked for by this very spelling.
pub(super) async fn lift_holds(
    shared: &Arc<Shared>,
    term: Term,
    which: LiftHold,
    by: &str,
) -> Result<Vec<Hold>, RequestError> {
    let meant = match which {
        LiftHold::Scope(HoldScope::Target(spelling)) => {
            let Canonical { target, id, .. } = canonical(shared, spelling.clone()).await?;
            let spelled = spelling.first_replica();
            confirm(shared, term).await?;
            let former = former(shared, &[&target, &spelled], id.as_ref());
            let spelled = Some(spelled).filter(|spelled| *spelled != target);
            let targets = std::iter::once(target).chain(spelled);
            let by_scope = targets.map(|target| LiftHold::Scope(HoldScope::Target(target)));
            by_scope.chain(former.into_iter().map(LiftHold::Id)).collect()
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

/// The operators' holds of a target that stand under another name by now: they were asked for under one of `names`,
/// or by the id of the container.
fn former(shared: &Shared, names: &[&Target], id: Option<&ContainerId>) -> Vec<HoldId> {
    let now = shared.consensus.cluster_time();
    let is_meant = |hold: &&Hold| {
        let (HoldScope::Target(scope), HoldScope::Target(asked)) = (&hold.scope, hold.asked()) else {
            return false;
        };
        let by_id = id.is_some_and(|id| names[0].host() == asked.host() && id.answers_to(asked.path()));
        hold.owner == HoldOwner::Operator
            && hold.stands(now)
            && !names.contains(&scope)
            && (names.contains(&asked) || by_id)
    };
    shared.consensus.read(|ledger| ledger.holds().filter(is_meant).map(|hold| hold.id.clone()).collect())
}

/// A target as the ledger knows it.
struct Canonical {
    target: Target,
    /// The container that answers to it now.
    id: Option<ContainerId>,
    /// What is to be said of that.
    note: String,
}

/// What no container answers to now, or cannot be found out, stays as it was spelled: a hold must be possible while a
/// container is away.
async fn canonical(shared: &Shared, spelling: Target) -> Result<Canonical, RequestError> {
    let found = |id, target, note| Canonical { target, id, note };
    let Some(host) = shared.host(spelling.host()) else {
        return Err(unknown_host(shared, "scope.target", spelling.host().as_str()));
    };
    let containers = match host.dispatcher.engine().list(&ListFilter::default()).await {
        Ok(containers) => containers,
        Err(error) => {
            let note = unanswered(spelling.host(), &error);
            return Ok(found(None, spelling.first_replica(), note));
        }
    };
    match resolve(&spelling, &containers) {
        Resolved::One(id, target) => Ok(found(Some(id), target, String::new())),
        Resolved::None(there) => {
            let note = format!(
                "no container on host {} answers to {} now: {LATER}; {}there are {}",
                spelling.host(),
                spelling.path(),
                did_you_mean(&spelling, &there),
                listed(&there)
            );
            Ok(found(None, spelling.first_replica(), note))
        }
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
