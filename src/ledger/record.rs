//! The ledger's state as records, which is how it is stored, sent and read again.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::attempts::{AttemptKey, Attempts};
use super::command::{DispatcherRef, anonymous, is_anonymous};
use super::hold::Hold;
use super::limits::Limits;
use super::moment::Moment;
use super::outcome::Decision;
use super::run::Run;
use crate::model::{ClusterId, ClusterTime, EngineId, HoldId, HostName, RequestId, RunId};

/// One record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// What there is one of.
    Meta(Meta),
    /// A bound host.
    Host(Host),
    /// A run.
    Run(Box<Run>),
    /// A remembered request.
    Request(Remembered),
    /// The attempts of one key.
    Attempts(Attempts),
    /// A hold.
    Hold(Box<Hold>),
}

/// What there is one of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// The cluster.
    pub cluster: ClusterId,
    /// The cluster clock.
    pub clock: ClusterTime,
    /// The limits.
    pub limits: Limits,
    /// The rules in force. Left out of the stored form while they are the first, which knew no others.
    #[serde(default = "first_rules", skip_serializing_if = "are_first_rules")]
    pub rules_level: u32,
}

fn first_rules() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands over a reference
fn are_first_rules(level: &u32) -> bool {
    *level == first_rules()
}

/// A bound host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name.
    pub name: HostName,
    /// Its engine.
    pub engine_id: EngineId,
    /// Who sends to it.
    pub dispatcher: DispatcherRef,
}

/// The stored answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// The caller's id.
    pub id: RequestId,
    /// The caller. Left out of the stored form as in [`Request`](super::Request).
    #[serde(default = "anonymous", skip_serializing_if = "is_anonymous")]
    pub caller: String,
    /// SHA-256 of the request as sent and of its caller, in hex.
    pub digest: String,
    /// The answer.
    pub decision: Decision,
    /// When it was given.
    pub at: Moment,
}

/// A record's key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Of [`Record::Meta`].
    Meta,
    /// Of [`Record::Host`].
    Host(HostName),
    /// Of [`Record::Run`].
    Run(RunId),
    /// Of [`Record::Request`].
    Request(RequestId),
    /// Of [`Record::Attempts`].
    Attempts(AttemptKey),
    /// Of [`Record::Hold`].
    Hold(HoldId),
}

/// A record that is new, changed or gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its key.
    pub key: Key,
    /// Its content; `None` if it is gone.
    pub record: Option<Record>,
}

impl Record {
    /// The key that it is stored under.
    #[must_use]
    pub fn key(&self) -> Key {
        match self {
            Self::Meta(_) => Key::Meta,
            Self::Host(host) => Key::Host(host.name.clone()),
            Self::Run(run) => Key::Run(run.id.clone()),
            Self::Request(remembered) => Key::Request(remembered.id.clone()),
            Self::Attempts(attempts) => Key::Attempts(attempts.key.clone()),
            Self::Hold(hold) => Key::Hold(hold.id.clone()),
        }
    }
}

/// The stored form of a key. Stable.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Meta => f.write_str("meta"),
            Self::Host(name) => write!(f, "host/{name}"),
            Self::Run(id) => write!(f, "run/{id}"),
            Self::Request(id) => write!(f, "request/{id}"),
            Self::Attempts(AttemptKey::Name { engine_id, name }) => {
                write!(f, "attempts/name/{engine_id}/{name}")
            }
            Self::Attempts(AttemptKey::Container(id)) => write!(f, "attempts/container/{id}"),
            Self::Hold(id) => write!(f, "hold/{id}"),
        }
    }
}
