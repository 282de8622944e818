//! What is said to be the matter with a container.

use serde::{Deserialize, Serialize};

/// What a restart is decided for, and so what must still be so when it is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Diagnosis {
    /// What the caller's reason says. Left out of stored forms: the first rules knew no other.
    #[default]
    Callers,
    /// Its own health check says unhealthy.
    Unhealthy,
}

impl Diagnosis {
    #[allow(clippy::trivially_copy_pass_by_ref)] // serde hands over a reference
    pub(super) fn is_the_callers(&self) -> bool {
        *self == Self::Callers
    }
}
