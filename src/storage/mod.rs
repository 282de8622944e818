//! The data directory: who may use it, what it is, and how bytes become durable in it.
//!
//! * [`DataDir`] is locked to one process, refuses network file systems, and carries the [`Identity`].
//! * [`Database`] is a RocksDB opened in the one recovery mode that never drops an acknowledged write. It
//!   knows nothing of what it holds: the Raft log and a dispatcher's journal use it alike.
//! * [`Flusher`] makes many appends durable with one sync.
//! * The first failed write or sync is *latched*: from then on every call fails, because a later sync that
//!   "succeeds" may have lost the pages of the earlier one. [`Database::failed`] lets the process see it and end.

mod batch;
mod data_dir;
mod database;
mod decoded;
mod error;
mod file_system;
mod files;
mod flusher;
#[cfg(feature = "failpoints")]
#[doc(hidden)]
pub mod fuzzing;
mod identity;
mod latch;
mod options;
mod sync;
mod sync_speed;
mod wal;

pub use batch::Batch;
pub use data_dir::DataDir;
pub use database::{Database, Gone, View};
pub use error::StorageError;
pub use file_system::FileSystem;
pub(crate) use files::rename;
pub use files::{read_file, replace_file};
pub use flusher::Flusher;
pub use identity::Identity;
pub(crate) use sync::{make_folder, sync_file};
pub use sync_speed::SyncSpeed;

#[cfg(test)]
mod tests;
