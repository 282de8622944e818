//! How long the engine lets a container stop by itself.

use serde::{Deserialize, Serialize};

/// The `t` of `POST …/restart?t=N`: whole seconds between SIGTERM and SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grace {
    /// Whole seconds.
    pub seconds: u32,
    /// Who asked for it.
    pub source: GraceSource,
}

/// Where a grace comes from, in the order in which they are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GraceSource {
    /// The request named it.
    Request,
    /// A label of the container: `relatch.grace`, or `autoheal.stop.timeout`.
    Label,
    /// The container's own `StopTimeout`.
    StopTimeout,
    /// The cluster's default.
    Policy,
}

impl Grace {
    /// The deadline for the whole exchange: the grace and a margin for what the engine does besides.
    #[must_use]
    pub fn client_deadline_ms(self, margin_ms: u64) -> u64 {
        (u64::from(self.seconds) * 1000).saturating_add(margin_ms)
    }
}
