//! The script as data: which request is treated how. Everything here can be written in a JSON file.
//!
//! A [`Rule`] belongs to one container or to the whole engine and is consumed by the requests it matches. It has
//! independent parts: what happens in the engine ([`Effect`], [`TimedAction`]), what is said ([`Reply`]), and how
//! much of that reaches the client ([`Delivery`]). A [`ConnectionRule`] acts before a request is whole.

use serde::{Deserialize, Serialize};

use super::wire::{ConnectionRule, CutRequest, Delivery, End, Hold, Reply};

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Endpoint {
    /// Matches every request (in rules only).
    #[default]
    Any,
    /// `GET` or `HEAD /_ping`.
    Ping,
    /// `GET /version`.
    Version,
    /// `GET /info`.
    Info,
    /// `GET /containers/json`.
    List,
    /// `GET /containers/{id}/json`.
    Inspect,
    /// `POST /containers/{id}/restart`.
    Restart,
    /// `POST /containers/{id}/start`.
    Start,
    /// `POST /containers/{id}/stop`.
    Stop,
    /// `POST /containers/{id}/pause`.
    Pause,
    /// `POST /containers/{id}/unpause`.
    Unpause,
    /// `POST /containers/{id}/rename`.
    Rename,
    /// `DELETE /containers/{id}`.
    Remove,
    /// `GET /events`.
    Events,
    /// Anything else: the engine answers 404.
    Unknown,
}

/// What the request does to the container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effect {
    /// What the engine does when nothing is scripted.
    #[default]
    Normal,
    /// Nothing. A normal reply then claims success all the same.
    None,
    /// A restart stops the container and never starts it again.
    StopOnly,
}

/// How one or more requests are treated. The default treats the next request of any kind as usual.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// A name for the log.
    #[serde(default)]
    pub name: Option<String>,
    /// Which requests it matches.
    #[serde(default)]
    pub on: Endpoint,
    /// How many matching requests pass it by first.
    #[serde(default)]
    pub skip: u32,
    /// How many requests it treats before it is spent.
    #[serde(default = "once")]
    pub times: u32,
    /// It is never spent; `times` is ignored.
    #[serde(default)]
    pub forever: bool,
    /// It matches nothing before this long after it was installed.
    #[serde(default)]
    pub after_ms: u64,
    /// The request is cut before it is whole, and has no effect.
    #[serde(default)]
    pub cut_request: Option<CutRequest>,
    /// The effect begins only after this, even if the client has left by then.
    #[serde(default)]
    pub hold_effect: Option<Hold>,
    /// What happens in the engine.
    #[serde(default)]
    pub effect: Effect,
    /// The reply does not wait for the effect. A normal reply then claims success.
    #[serde(default)]
    pub early_reply: bool,
    /// The reply, already decided, is sent only after this.
    #[serde(default)]
    pub hold_reply: Option<Hold>,
    /// What is said.
    #[serde(default)]
    pub reply: Reply,
    /// How much of it arrives.
    #[serde(default)]
    pub delivery: Delivery,
    /// What else happens because of this request.
    #[serde(default)]
    pub then: Vec<TimedAction>,
}

fn once() -> u32 {
    1
}

/// Something that happens in the engine without being asked for by a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Action {
    /// The process dies and Docker's own restart policy starts it again at once: a later `StartedAt`, one more
    /// `RestartCount`.
    MoveStartedAt,
    /// The next inspect shows this text as `StartedAt`, whatever it is; the next start replaces it.
    SetStartedAt {
        /// The text.
        value: String,
    },
    /// The process exits with this code. A restart policy of the container applies.
    Exit {
        /// The exit code.
        code: i64,
    },
    /// Somebody starts the container.
    Start,
    /// Somebody pauses the container.
    Pause,
    /// Somebody lets it go on.
    Unpause,
    /// The container is shown in this state. It is not run or stopped for it.
    SetStatus {
        /// The state.
        status: Status,
    },
    /// The health check gives this from now on, until the next start.
    SetHealth {
        /// `starting`, `healthy` or `unhealthy`.
        status: HealthStatus,
    },
    /// The container is gone.
    Remove,
    /// It has this name from now on.
    Rename {
        /// The new name, without a slash.
        name: String,
    },
    /// A new container takes the name, with a new id and a later `StartedAt`, as Compose does it.
    Replace {
        /// The new id; random if absent.
        #[serde(default)]
        id: Option<String>,
        /// The old container goes on under this name; it is removed if absent.
        #[serde(default)]
        keep_old_as: Option<String>,
        /// The new container's script.
        #[serde(default)]
        rules: Vec<Rule>,
    },
    /// More rules for the container.
    AddRules {
        /// The rules.
        rules: Vec<Rule>,
    },
    /// Engine-wide: more rules for connections.
    AddConnectionRules {
        /// The rules.
        rules: Vec<ConnectionRule>,
    },
    /// Engine-wide: connections on which no byte of a request is outstanding are ended.
    DropIdleConnections {
        /// How.
        #[serde(default)]
        end: End,
    },
    /// Engine-wide: every event stream ends.
    CutEventStreams,
    /// Engine-wide: whether connections are accepted.
    Listen {
        /// From now on.
        mode: ListenMode,
    },
    /// Engine-wide: `/info` gives this id.
    SetEngineId {
        /// The id.
        id: String,
    },
    /// Engine-wide: the engine's clock is this far ahead of the machine's.
    SetClockOffset {
        /// Negative for behind.
        offset_ms: i64,
    },
    /// Engine-wide: a gate is released.
    Release {
        /// Its name.
        name: String,
    },
}

/// An action and when it happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimedAction {
    /// How long after its cause.
    #[serde(default)]
    pub after_ms: u64,
    /// In a rule: the cause is the end of the effect and not the arrival of the request.
    #[serde(default)]
    pub after_effect: bool,
    /// What happens.
    pub action: Action,
}

/// A container's `State.Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Status {
    /// Never started.
    Created,
    /// Running.
    #[default]
    Running,
    /// Running, but frozen.
    Paused,
    /// Between two runs of a restart policy.
    Restarting,
    /// Being removed.
    Removing,
    /// Not running.
    Exited,
    /// Could not be removed whole.
    Dead,
}

/// A health check's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum HealthStatus {
    /// No verdict yet.
    Starting,
    /// The last probe succeeded.
    Healthy,
    /// The probes failed as often as configured.
    Unhealthy,
}

/// What the listeners do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ListenMode {
    /// Accept connections.
    #[default]
    Open,
    /// Listen without accepting: connections wait in the backlog until it is full.
    Deaf,
    /// Refuse connections; a socket file stays.
    Refuse,
    /// Refuse connections, and remove the socket file.
    Unlink,
}

/// The engine-wide script.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EngineScript {
    /// Rules for requests to any container or to none. A container's own rules come first.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Rules for connections.
    #[serde(default)]
    pub connections: Vec<ConnectionRule>,
    /// What happens by itself, counted from the start of the engine.
    #[serde(default)]
    pub timeline: Vec<TimedAction>,
}
