//! Why a look at an engine failed.

use super::version::ApiVersion;
use crate::model::EngineId;

/// Why a look at an engine failed. Each text says what was asked, of whom, and what to do next.
///
/// None of these says anything about a container, except [`EngineError::NoSuchContainer`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// No connection. The detail has the operating system's own words, and a hint.
    #[error("{detail}")]
    Unreachable {
        /// As in `connecting to unix:///run/docker.sock: permission denied …`.
        detail: String,
    },
    /// No whole answer within the limit, the connection included.
    #[error("{doing}: no whole answer within {limit_ms} ms; the engine, or what was asked for, hangs")]
    TimedOut {
        /// What was asked, of whom.
        doing: String,
        /// The limit.
        limit_ms: u64,
    },
    /// The connection broke before the answer was whole. Nothing is asked again over another one.
    #[error("{doing}: the connection broke before the answer was whole: {detail}; is the engine restarting?")]
    Lost {
        /// What was asked, of whom.
        doing: String,
        /// How.
        detail: String,
    },
    /// What listens there does not answer like an engine.
    #[error(
        "{doing}: GET /_ping was answered without an Api-Version; is it a Docker engine, and does a proxy before \
         it pass that header on?"
    )]
    NotAnEngine {
        /// What was asked, of whom.
        doing: String,
    },
    /// The engine is older than relatch can use.
    #[error(
        "{doing}: the engine speaks API {found} at most, relatch needs {oldest} or newer (Docker 19.03); \
         update the engine",
        oldest = ApiVersion::OLDEST
    )]
    TooOld {
        /// What was asked, of whom.
        doing: String,
        /// The newest version that the engine speaks.
        found: ApiVersion,
    },
    /// The engine, or something before it, answered with a status that is no answer.
    #[error("{doing}: the answer was status {status}: {message}")]
    Status {
        /// What was asked, of whom.
        doing: String,
        /// The HTTP status.
        status: u16,
        /// Its text, bounded and harmless.
        message: String,
    },
    /// The engine itself, proven to be one by its headers, has no container of that id or name.
    #[error("inspecting container {reference} on engine {engine_id}: {message}")]
    NoSuchContainer {
        /// The engine that answered, asked over the same connection.
        engine_id: EngineId,
        /// The id or name that was asked for.
        reference: String,
        /// The engine's text.
        message: String,
    },
    /// More came than is read. What came is not looked at.
    #[error("{doing}: the answer is longer than the {} MiB that are read; {advice}", .longest_bytes >> 20)]
    TooLong {
        /// What was asked, of whom.
        doing: String,
        /// How much is read.
        longest_bytes: usize,
        /// What to do next.
        advice: &'static str,
    },
    /// An answer that could not be understood.
    #[error("{doing}: the answer could not be read: {detail}")]
    Unreadable {
        /// What was asked, of whom.
        doing: String,
        /// Why.
        detail: String,
    },
    /// A text that can be neither the id nor the name of a container; nothing was asked.
    #[error("{0:?} is no id or name of a container: letters, digits, '_', '.' and '-' alone are")]
    InvalidReference(String),
}
