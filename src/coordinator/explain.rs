//! Every check that a request would meet now, without a request.

use std::sync::Arc;

use super::admit::{Refusal, bound_host, confirm, look, open_for, proposal};
use super::request::{Checked, Explanation, RecoveryRequest, RequestError};
use super::shared::Shared;
use crate::ledger::{CheckName, DecisionKind, ReasonCode, Weighed};
use crate::model::{RunId, Term, WallTime};

/// The checks that are made before anything is proposed, in order, and the refusals of each.
const BEFORE: &[(&str, &[ReasonCode])] = &[
    ("engine", &[ReasonCode::BaselineUnreadable]),
    ("target", &[ReasonCode::TargetNotFound, ReasonCode::TargetAmbiguous]),
    ("started", &[ReasonCode::TargetNotRunning]),
    ("swarm", &[ReasonCode::TargetSwarmTask]),
    ("relatch", &[ReasonCode::TargetIsRelatch]),
    ("grace-source", &[ReasonCode::LabelInvalid, ReasonCode::GraceAboveLimit]),
];

/// What each check before the proposal found, if it found nothing against the request.
const PASSED: &[&str] = &[
    "the engine answered",
    "exactly one container answers to it",
    "it was started, and its StartedAt can be read",
    "it is no Swarm task",
    "it is not relatch itself",
    "the grace can be read",
];

pub(super) async fn explain(
    shared: &Arc<Shared>,
    term: Term,
    request: RecoveryRequest,
) -> Result<Explanation, RequestError> {
    let host = bound_host(shared, request.spelling.host()).await?;
    confirm(shared, term).await?;
    match look(shared, host, &request).await {
        Err(refusal) => Ok(Explanation {
            checks: stopped_by(&refusal),
            kind: DecisionKind::Refused,
            found: None,
            guard: host.guard,
            standing: open_for(shared, &refusal.target).or_else(|| {
                shared.consensus.read(|ledger| ledger.standing_for_target(&refusal.target).cloned())
            }),
            target: refusal.target,
        }),
        Ok(found) => {
            let (target, shown) = (found.target.clone(), (found.baseline.clone(), found.grace));
            let open = proposal(shared, term, host, shared.mint(RunId::new)?, &request, found);
            let (clock, wall) = (shared.consensus.cluster_time(), WallTime(shared.clock.wall_ms()));
            let node = shared.proposer.node;
            let (weighed, standing) = shared.consensus.read(|ledger| {
                let weighed = ledger.weigh(clock, wall, node, &open);
                let standing = weighed.standing.as_ref().and_then(|id| ledger.run(id)).cloned();
                (weighed, standing)
            });
            let Weighed { kind, checks, .. } = weighed;
            let before = BEFORE.iter().zip(PASSED).map(|((name, _), detail)| (*name, passed(detail)));
            let made = checks.into_iter().map(|check| {
                (check.name.as_str(), Some(Checked { detail: check.detail, reasons: check.reasons }))
            });
            let checks = before.chain(made).collect();
            Ok(Explanation { target, kind, checks, found: Some(shown), guard: host.guard, standing })
        }
    }
}

fn passed(detail: &str) -> Option<Checked> {
    Some(Checked { detail: detail.to_owned(), reasons: Vec::new() })
}

/// The checks up to the one that blocks; those after it were not made.
fn stopped_by(refusal: &Refusal) -> Vec<(&'static str, Option<Checked>)> {
    let blocks = |codes: &[ReasonCode]| codes.contains(&refusal.reason.code);
    let at = BEFORE.iter().position(|(_, codes)| blocks(codes)).unwrap_or(0);
    let before = BEFORE.iter().zip(PASSED).enumerate().map(|(n, ((name, _), detail))| {
        let checked = match n.cmp(&at) {
            std::cmp::Ordering::Less => passed(detail),
            std::cmp::Ordering::Equal => {
                Some(Checked { detail: refusal.reason.detail.clone(), reasons: vec![refusal.reason.clone()] })
            }
            std::cmp::Ordering::Greater => None,
        };
        (*name, checked)
    });
    before.chain(CheckName::ALL.iter().map(|name| (name.as_str(), None))).collect()
}
