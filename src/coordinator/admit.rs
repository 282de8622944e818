//! From a request to a decision (steps 0 to 3 of a restart).

use std::sync::Arc;

use tracing::{Instrument, debug_span};

use super::ask::unexpected;
use super::grace::grace;
use super::near::did_you_mean;
use super::request::{Answer, RecoveryRequest, RequestError};
use super::resolve::{Resolved, find, is_this_process, listed};
use super::shared::{AUTHORITY_MS, HostLink, Shared};
use crate::docker::Inspection;
use crate::env::failpoint;
use crate::ledger::{
    Baseline, Command, Decision, DecisionKind, Diagnosis, DispatcherRef, OpenInterlock, Outcome, Reason,
    ReasonCode, RefuseRequest, Request, Run, Weighed,
};
#[cfg(feature = "failpoints")]
use crate::model::Hole;
use crate::model::{ContainerId, Grace, HostName, Incarnation, RunId, Target, Term, WallTime};

/// Decides a request in `term`.
pub(super) async fn decide(
    shared: &Arc<Shared>,
    term: Term,
    request: RecoveryRequest,
) -> Result<Answer, RequestError> {
    if let Some(answer) = remembered(shared, term, &request).await? {
        return Ok(answer);
    }
    let host = bound_host(shared, request.spelling.host()).await?;
    let run = shared.mint(RunId::new)?;
    let looking = debug_span!(target: "relatch::step", "look", %run);
    let command = match look(shared, host, &request).instrument(looking).await {
        Ok(found) => {
            Command::OpenInterlock(Box::new(proposal(shared, term, host, run.clone(), &request, found)))
        }
        Err(refusal) => Command::RefuseRequest(Box::new(RefuseRequest {
            run: run.clone(),
            request: as_sent(shared, &request),
            target: refusal.target,
            reasons: vec![refusal.reason],
            diagnosis: if shared.knows_rules(3) { request.diagnosis } else { Diagnosis::Callers },
        })),
    };
    if request.dry_run {
        weigh(shared, term, &request.caller, &command).await
    } else {
        propose(shared, term, &run, command).await
    }
}

/// A host that is known here and bound in the cluster.
pub(super) async fn bound_host<'a>(
    shared: &'a Shared,
    name: &HostName,
) -> Result<&'a HostLink, RequestError> {
    let host = shared.host(name).ok_or_else(|| RequestError::Invalid {
        field: "target".to_owned(),
        rule: format!(
            "host {name} is not known here; the hosts are: {}",
            shared.hosts.keys().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        ),
    })?;
    // Not a refusal, which would be final: the engine has only not answered for the first time yet.
    if shared.consensus.read(|ledger| ledger.host(name).is_none()) {
        let why = match host.dispatcher.engine().identify().await {
            Ok(engine) if engine.is_podman => "it is Podman, which cannot be used yet".to_owned(),
            Ok(_) => "that is under way".to_owned(),
            Err(error) => error.to_string(),
        };
        let detail = format!("host {name} is not bound to its engine yet: {why}");
        return Err(RequestError::Unavailable { detail });
    }
    Ok(host)
}

/// What is proposed for a request whose container was found.
pub(super) fn proposal(
    shared: &Shared,
    term: Term,
    host: &HostLink,
    run: RunId,
    request: &RecoveryRequest,
    found: Found,
) -> OpenInterlock {
    OpenInterlock {
        run,
        request: as_sent(shared, request),
        target: found.target,
        baseline: found.baseline,
        expect: request.expect.clone(),
        grace: found.grace,
        diagnosis: request.diagnosis,
        proposer: shared.proposer.clone(),
        dispatcher: DispatcherRef { guard: host.guard, journal: host.dispatcher.position() },
        term,
    }
}

/// What would be decided, by the same rules over the state as of now; nothing is committed.
async fn weigh(shared: &Shared, term: Term, caller: &str, command: &Command) -> Result<Answer, RequestError> {
    confirm(shared, term).await?;
    let (clock, wall) = (shared.consensus.cluster_time(), WallTime(shared.clock.wall_ms()));
    let node = shared.proposer.node;
    let weighed = shared.consensus.read(|ledger| match command {
        Command::OpenInterlock(open) => Some(ledger.weigh(clock, wall, node, open)),
        Command::RefuseRequest(refuse) => Some(ledger.weigh_refusal(clock, wall, node, refuse)),
        _ => None,
    });
    let weighed =
        weighed.ok_or_else(|| RequestError::Unavailable { detail: "nothing to decide".to_owned() })?;
    let Weighed { kind, run, ignored, exhausted, .. } = weighed;
    if let Some(full) = exhausted {
        return Err(shared.exhausted(caller, &full));
    }
    let decision = Decision { kind, run: run.id.clone(), ignored, repeated: false };
    Ok(Answer { decision, run, dry_run: true })
}

/// The stored answer, if the request's id is known. Looked up at the leader, as of now.
async fn remembered(
    shared: &Shared,
    term: Term,
    request: &RecoveryRequest,
) -> Result<Option<Answer>, RequestError> {
    let Some(id) = &request.id else { return Ok(None) };
    confirm(shared, term).await?;
    shared.consensus.read(|ledger| match ledger.remembered(id) {
        None => Ok(None),
        Some(known) if known.digest != request.digest => {
            Err(RequestError::RequestIdReused { run: known.decision.run.clone() })
        }
        Some(known) => {
            let run = ledger.run(&known.decision.run).cloned();
            let decision = Decision { repeated: true, ..known.decision.clone() };
            Ok(run.map(|run| Answer { decision, run, dry_run: request.dry_run }))
        }
    })
}

/// Makes what [`Shared::consensus`] shows linearizable.
pub(super) async fn confirm(shared: &Shared, term: Term) -> Result<(), RequestError> {
    let confirmed = shared.consensus.confirm_authority(term, AUTHORITY_MS).await;
    confirmed.map(|_| ()).map_err(|lost| shared.unavailable(lost.to_string()))
}

/// The one container that a request is about.
pub(super) struct Found {
    pub(super) target: Target,
    pub(super) baseline: Baseline,
    pub(super) grace: Grace,
}

/// Why a request is refused before it is proposed.
pub(super) struct Refusal {
    pub(super) target: Target,
    pub(super) reason: Reason,
}

/// Steps 1 and 2: exactly one container, and how it is now. Where the container cannot be found or read, a run that
/// is open for it is named: it is what the caller may want to know of.
pub(super) async fn look(
    shared: &Shared,
    host: &HostLink,
    request: &RecoveryRequest,
) -> Result<Found, Refusal> {
    look_at_it(shared, host, request).await.map_err(|mut refusal| {
        let about = match refusal.reason.code {
            ReasonCode::BaselineUnreadable => "it",
            ReasonCode::TargetNotFound => "a container that had this name",
            _ => return refusal,
        };
        if let Some(run) = open_for(shared, &refusal.target) {
            let word = run.status.word();
            refusal.reason.detail += &format!("; run {} is open for {about}, and is {word}", run.id);
        }
        refusal
    })
}

/// The open run that a spelling is about, also if its container cannot be asked for by it now: by the run's target,
/// or by the name or the id of its container as they were.
pub(super) fn open_for(shared: &Shared, spelling: &Target) -> Option<Run> {
    let target = spelling.clone().first_replica();
    let path = spelling.path();
    let is_about = |run: &&Run| {
        let known =
            |baseline: &Baseline| baseline.name == path || baseline.incarnation.container_id.answers_to(path);
        run.target.host() == spelling.host()
            && (run.target == target || run.baseline.as_ref().is_some_and(known))
    };
    shared.consensus.read(|ledger| ledger.open_runs().find(is_about).cloned())
}

async fn look_at_it(shared: &Shared, host: &HostLink, request: &RecoveryRequest) -> Result<Found, Refusal> {
    let engine = host.dispatcher.engine();
    let now = WallTime(shared.clock.wall_ms());
    let refuse = |target: &Target, code, detail: String| Refusal {
        target: target.clone(),
        reason: Reason::new(code, detail, now),
    };
    let unresolved = |code, detail| refuse(&request.spelling, code, detail);

    let found = find(engine, &request.spelling)
        .await
        .map_err(|error| unresolved(ReasonCode::BaselineUnreadable, error.to_string()))?;
    let (id, target) = match found {
        Resolved::One(id, target) => (id, target),
        Resolved::Several(found) => {
            let found: Vec<Target> = found.into_iter().map(|(_, target)| target).collect();
            return Err(unresolved(
                ReasonCode::TargetAmbiguous,
                format!("it may be any of {}", listed(&found)),
            ));
        }
        Resolved::None(there) => {
            let meant = did_you_mean(&request.spelling, &there);
            return Err(unresolved(
                ReasonCode::TargetNotFound,
                format!("{meant}there are {}", listed(&there)),
            ));
        }
    };
    let inspection = engine
        .inspect(id.as_str())
        .await
        .map_err(|error| refuse(&target, ReasonCode::BaselineUnreadable, error.to_string()))?;
    let baseline = baseline(&inspection, &id).map_err(|(code, detail)| refuse(&target, code, detail))?;
    if inspection.is_swarm_task {
        return Err(refuse(
            &target,
            ReasonCode::TargetSwarmTask,
            format!("{} is a Swarm task", baseline.name),
        ));
    }
    if is_this_process(
        &inspection,
        engine.endpoint().wire(),
        shared.own_container.as_ref(),
        std::process::id(),
    ) {
        return Err(refuse(
            &target,
            ReasonCode::TargetIsRelatch,
            format!("{} is this process", baseline.name),
        ));
    }
    let limits = shared.consensus.read(|ledger| ledger.limits().clone());
    let grace = grace(request.grace_s, &inspection.labels, inspection.stop_timeout_s, &limits)
        .map_err(|(code, detail)| refuse(&target, code, detail))?;
    Ok(Found { target, baseline, grace })
}

fn baseline(inspection: &Inspection, id: &ContainerId) -> Result<Baseline, (ReasonCode, String)> {
    let seen = &inspection.sighting;
    if seen.container_id != *id {
        let detail = format!("asked for {id}, the engine showed {}", seen.container_id);
        return Err((ReasonCode::BaselineUnreadable, detail));
    }
    let Some(started_at) = seen.started_at.instant() else {
        let detail = format!("{} was never started, or its StartedAt cannot be read", seen.name);
        return Err((ReasonCode::TargetNotRunning, detail));
    };
    Ok(Baseline {
        incarnation: Incarnation {
            engine_id: seen.engine_id.clone(),
            container_id: seen.container_id.clone(),
            started_at,
        },
        name: seen.name.clone(),
        state: seen.state,
        health: seen.health,
        health_check: inspection.health_check,
    })
}

/// Step 3. The pledge to dispatch stands before the proposal, and ends with it unless it was applied.
async fn propose(
    shared: &Arc<Shared>,
    term: Term,
    run: &RunId,
    command: Command,
) -> Result<Answer, RequestError> {
    #[cfg(feature = "failpoints")]
    if shared.holes.open(Hole::DispatchBeforeCommit)
        && let Command::OpenInterlock(proposal) = &command
    {
        super::send::send_uncommitted(shared, proposal).await;
    }
    shared.pledges.make(run, term);
    failpoint::reach("coordinator-before-propose");
    let proposing = debug_span!(target: "relatch::step", "propose", %run);
    let proposed = shared.ask(term, command).instrument(proposing).await;
    failpoint::reach("coordinator-after-propose");
    let decision = match proposed {
        Ok(Outcome::Decided(decision)) => decision,
        other => {
            // From here on it is not dispatched, even if it commits later.
            shared.pledges.take(run, term);
            return Err(other.map_or_else(|error| error, unexpected));
        }
    };
    if decision.run != *run || decision.kind != DecisionKind::Opened {
        shared.pledges.take(run, term);
    }
    let run = shared.run(&decision.run).ok_or_else(|| RequestError::Unavailable {
        detail: format!("run {} was pruned meanwhile", decision.run),
    })?;
    Ok(Answer { decision, run, dry_run: false })
}

fn as_sent(shared: &Shared, request: &RecoveryRequest) -> Request {
    Request {
        id: request.id.clone(),
        caller: request.caller.clone(),
        by: request.by.clone().filter(|_| shared.knows_rules(4)),
        digest: request.digest.clone(),
        reason: request.reason.clone(),
        spelling: request.spelling.to_string(),
    }
}
