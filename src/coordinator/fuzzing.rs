//! Ways into this module for `tests/fuzz` alone.

use std::collections::BTreeMap;

use super::resolve::{Resolved, resolve};
use crate::docker::ContainerSummary;
use crate::ledger::{Limits, ReasonCode};
use crate::model::{ContainerId, Grace, Target};

/// The grace of a restart that names none.
///
/// # Errors
///
/// Why there is none.
pub fn grace(
    labels: &BTreeMap<String, String>,
    stop_timeout_s: Option<i64>,
    limits: &Limits,
) -> Result<Grace, (ReasonCode, String)> {
    super::grace::grace(None, labels, stop_timeout_s, limits)
}

/// The container that a spelling stands for alone, and its canonical target.
#[must_use]
pub fn resolved(spelling: &Target, containers: &[ContainerSummary]) -> Option<(ContainerId, Target)> {
    match resolve(spelling, containers) {
        Resolved::One(id, target) => Some((id, target)),
        Resolved::Several(_) | Resolved::None(_) => None,
    }
}
