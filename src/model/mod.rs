//! What every part of relatch speaks of: identities, targets, incarnations, fences, clocks, and what
//! the wire and the engine showed. Plain data: no I/O, no clock, nothing that decides.
//!
//! The words are those of the protocol and of Docker; see `ARCHITECTURE.md` for the map.

mod exchange;
mod fence;
mod grace;
mod hex;
mod hole;
mod ids;
mod incarnation;
mod journal;
mod observation;
mod target;
mod time;

pub use exchange::{EngineProof, Exchange, LostReply, NotWritten, NotWrittenCause, Reply, Wire};
pub use fence::{Fence, LogIndex, Term};
pub use grace::{Grace, GraceSource};
pub use hex::hex;
pub use hole::{Hole, Holes, UnknownHole};
pub use ids::{
    ClusterId, ContainerId, EngineId, HoldId, HostName, InvalidId, JournalId, NodeId, ProcessNonce,
    RequestId, RunId, excerpt,
};
pub use incarnation::{EngineInstant, Incarnation, InvalidInstant, StartedAt};
pub use journal::{JournalPosition, JournalWord};
pub use observation::{ContainerState, Health, HealthCheck, Observation, Sighting};
pub use target::{InvalidTarget, Target};
pub use time::{ClusterTime, WallTime};
