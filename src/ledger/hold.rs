//! Holds: what must not be restarted, for now.
//!
//! One word for every stop. A hold stands in the way of admission, of a dispatch that is not yet on its way,
//! and of an approved start; it never ends a run, and never calls back what was sent.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::moment::Moment;
use super::reason::{Reason, ReasonCode};
use crate::model::{ClusterTime, ContainerId, HoldId, HostName, Target};

/// What a hold covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum HoldScope {
    /// Every container of every host.
    Everything,
    /// Every container of one host.
    Host(HostName),
    /// Every service of one Compose project.
    Project {
        /// On this host.
        host: HostName,
        /// The project.
        project: String,
    },
    /// One container, by its canonical target, or by its name or its id on the host.
    Target(Target),
}

/// Who placed a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HoldOwner {
    /// A person, or a program on its own account.
    Operator,
    /// relatch itself.
    Auto,
}

/// A hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// Its id.
    pub id: HoldId,
    /// What it covers.
    pub scope: HoldScope,
    /// The scope as it was asked for, where that is spelled otherwise: a container may get another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_as: Option<HoldScope>,
    /// Who placed it.
    pub owner: HoldOwner,
    /// Their name.
    pub by: String,
    /// Why.
    pub reason: String,
    /// How long it was asked for; `None` until it is lifted.
    pub duration_ms: Option<u64>,
    /// Where and when it was placed.
    pub placed: Moment,
    /// When its time began anew, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed: Option<ClusterTime>,
}

impl Hold {
    /// The scope as it was asked for.
    #[must_use]
    pub fn asked(&self) -> &HoldScope {
        self.asked_as.as_ref().unwrap_or(&self.scope)
    }

    /// True if one that is asked for under the same id is this one.
    pub(super) fn is_the_same_wish(&self, other: &Self) -> bool {
        let wish = |hold: &Self| (hold.owner, hold.by.clone(), hold.reason.clone(), hold.duration_ms);
        wish(self) == wish(other) && (self.scope == other.scope || self.asked() == other.asked())
    }

    /// When it ends by itself.
    #[must_use]
    pub fn until(&self) -> Option<ClusterTime> {
        let began = self.renewed.unwrap_or(self.placed.clock);
        self.duration_ms.map(|duration_ms| began.after_ms(duration_ms))
    }

    /// True while it is in force.
    #[must_use]
    pub fn stands(&self, clock: ClusterTime) -> bool {
        self.until().is_none_or(|until| clock < until)
    }

    /// True if it covers a container, which has its canonical target, a name on its host and an id.
    #[must_use]
    pub fn covers(&self, target: &Target, name: &str, id: &ContainerId) -> bool {
        match &self.scope {
            HoldScope::Everything => true,
            HoldScope::Host(host) => host == target.host(),
            HoldScope::Project { host, project } => {
                host == target.host() && target.project() == Some(project.as_str())
            }
            HoldScope::Target(held) => {
                let spelled = held.path();
                held == target
                    || (held.host() == target.host() && (spelled == name || id.answers_to(spelled)))
            }
        }
    }

    pub(super) fn reason(&self) -> Reason {
        let detail = format!("{} is held by {}: {} (hold {})", self.scope, self.by, self.reason, self.id);
        Reason { until: self.until(), ..Reason::new(ReasonCode::Held, detail, self.placed.wall) }
    }
}

impl fmt::Display for HoldScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everything => f.write_str("everything"),
            Self::Host(host) => write!(f, "host {host}"),
            Self::Project { host, project } => write!(f, "project {host}/{project}"),
            Self::Target(target) => write!(f, "{target}"),
        }
    }
}
