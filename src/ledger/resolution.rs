//! How an operator ended a run.

use serde::{Deserialize, Serialize};

/// How an operator ended a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolution {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// What they say happened. It stands beside the run as an assertion, never as an observation.
    pub assertion: Option<Assertion>,
    /// True if the dispatcher had not acknowledged that it sends nothing more.
    pub accepted_late_post: bool,
}

/// What an operator says about a run's effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assertion {
    /// The container was restarted.
    Applied,
    /// It was not.
    NotApplied,
}
