//! Every task of the engine has one owner, which can end them all and await their end.

use std::{
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::watch, task::JoinSet};

/// The set of running tasks. Each ends by itself or, at the latest, at [`Tasks::shutdown`].
#[derive(Debug)]
pub(crate) struct Tasks {
    set: Mutex<JoinSet<()>>,
    stop: watch::Sender<bool>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self { set: Mutex::new(JoinSet::new()), stop: watch::Sender::new(false) }
    }
}

impl Tasks {
    fn set(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` until it is done or the engine is shut down.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut stop = self.stop.subscribe();
        let mut set = self.set();
        while set.try_join_next().is_some() {}
        set.spawn(async move {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stopped| *stopped) => {}
                () = work => {}
            }
        });
    }

    /// Tells all tasks to end and waits until they have. Tasks spawned afterwards end at once.
    pub(crate) async fn shutdown(&self) {
        self.stop.send_replace(true);
        loop {
            let mut set = std::mem::take(&mut *self.set());
            if set.is_empty() {
                return;
            }
            while set.join_next().await.is_some() {}
        }
    }
}
