//! Group commit: many appends, one sync.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::batch::Batch;
use super::database::Database;
use super::error::StorageError;
use crate::env::failpoint;

/// Told once whether what was appended is durable.
type Done = Box<dyn FnOnce(Result<(), StorageError>) + Send>;

/// Makes appended changes durable, many with one sync.
///
/// An append is readable when [`Flusher::append`] returns. One thread takes everything that was appended by
/// then (the high-water mark), syncs once, and tells the appenders in the order in which they came. There is
/// no timer: while one sync runs, the next group gathers by itself.
///
/// It ends, after a last sync of what still waits, when it is dropped.
#[derive(Debug)]
pub struct Flusher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    database: Database,
    queue: Mutex<Queue>,
    more: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<Done>,
    closed: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue({} waiting, closed: {})", self.waiting.len(), self.closed)
    }
}

impl Flusher {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if the system gives no thread.
    pub fn start(database: Database) -> Result<Self, StorageError> {
        let path = database.path().to_owned();
        let shared = Arc::new(Shared { database, queue: Mutex::default(), more: Condvar::new() });
        let thread = std::thread::Builder::new()
            .name("flusher".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.run()
            })
            .map_err(|error| StorageError::failed("starting the flusher of", path, error))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Makes the changes, readable at once, and calls `done` once they are durable or never will be.
    ///
    /// Appends are written in the order of these calls. `done` is called on the flusher's thread, in that
    /// order too, and must not block. `written` names the failpoint that lies between the write and the sync.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if they cannot be written; `done` is not called then.
    pub fn append(
        &self,
        written: &'static str,
        batch: Batch,
        done: impl FnOnce(Result<(), StorageError>) + Send + 'static,
    ) -> Result<(), StorageError> {
        // Written under the lock, so that the order in the file is the order of the callbacks.
        let mut queue = self.shared.queue();
        self.shared.database.write(batch)?;
        failpoint::reach(written);
        queue.waiting.push(Box::new(done));
        drop(queue);
        self.shared.more.notify_one();
        Ok(())
    }

    /// Makes the changes and waits until they are durable, in line with all other appends.
    ///
    /// # Errors
    ///
    /// [`StorageError`] if they cannot be written or synced.
    pub async fn append_and_wait(&self, written: &'static str, batch: Batch) -> Result<(), StorageError> {
        let (tell, told) = tokio::sync::oneshot::channel();
        self.append(written, batch, move |result| drop(tell.send(result)))?;
        if failpoint::loses("sync-awaited") {
            return Ok(());
        }
        told.await.unwrap_or_else(|_| {
            Err(StorageError::failed("syncing", self.shared.database.path(), "the flusher has ended"))
        })
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.shared.more.notify_one();
        let Some(thread) = self.thread.take() else { return };
        // A callback may own the last handle; a thread cannot wait for itself.
        if thread.thread().id() != std::thread::current().id() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        while let Some(group) = self.next_group() {
            let result = self.database.sync("sync-log");
            for done in group {
                done(result.clone());
            }
        }
    }

    /// Waits for appends and takes all there are. `None` once nothing more can come.
    fn next_group(&self) -> Option<Vec<Done>> {
        let queue = self.queue();
        let mut queue = self
            .more
            .wait_while(queue, |queue| queue.waiting.is_empty() && !queue.closed)
            .unwrap_or_else(PoisonError::into_inner);
        let group = std::mem::take(&mut queue.waiting);
        (!group.is_empty()).then_some(group)
    }
}
