//! The Docker Engine API, as relatch needs it: looking at containers, and the one request that restarts or starts.
//!
//! This part reports what an engine said and what the wire showed; it judges nothing, and knows nothing of
//! Raft, ledgers or journals. It imports `model` alone.
//!
//! - A **look** ([`Engine::identify`], [`Engine::list`], [`Engine::inspect`], [`Engine::observe`]) opens one
//!   connection, asks all that it needs over that connection, and drops it. So the engine id and the
//!   container of one [`Inspection`] come from one engine, even if the socket is replaced in between.
//!   What it reads is bounded, and keeps only what relatch looks at (see `session`).
//! - A **restart** or a **start** goes out on a connection of its own ([`Engine::connect`],
//!   [`Connection::restart`], [`Connection::start`]), through a write gate. [`NeverWritten`] is the proof that no byte was written; only a closed
//!   gate, or a connection that never was, can make one (invariant 4a).
//!
//! Nothing here pools, reuses or retries a connection. Nothing here spawns a task: a connection is polled by
//! the task that asked, so dropping that future drops the socket.

mod endpoint;
mod engine;
mod error;
mod events;
mod gate;
mod inspect;
mod list;
mod post;
mod reply;
mod session;
mod time;
mod tls;
mod transport;
mod version;

#[cfg(test)]
#[path = "../../tests/support/certificates.rs"]
mod certificates;
#[cfg(test)]
#[path = "tests/raw.rs"]
mod raw;
#[cfg(test)]
#[path = "tests/sockets.rs"]
mod sockets_tests;

pub use endpoint::{Authority, Endpoint, InvalidEndpoint, SocketPath, TcpOptions};
pub use engine::{Engine, EngineInfo, EngineLimits};
pub use error::EngineError;
pub use events::{EventHint, EventHints};
pub use gate::{NeverWritten, Permit};
pub use inspect::Inspection;
pub use list::{ContainerSummary, ListFilter};
pub use post::{Connection, Sealed, Written};
pub(crate) use reply::harmless;
pub use time::{NotAnInstant, format_instant, parse_instant, parse_started_at};
pub use tls::{InvalidCertificates, TlsPeer};
pub use version::ApiVersion;
