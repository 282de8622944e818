//! Binds the node's own host in the ledger: its name, its engine and its dispatcher, one to one.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::beside::{EngineTaken, Served};
use crate::consensus::Consensus;
use crate::dispatch::Dispatcher;
use crate::docker::EngineInfo;
use crate::ledger::{BindHost, Command, DispatcherRef, Guard, Outcome};
use crate::model::{EngineId, HostName, Term};

/// The pause before an engine that did not answer is asked again.
const RETRY: Duration = Duration::from_secs(1);

/// How often an engine that is bound is asked whether it is still itself.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// How often trouble that goes on is told at most.
const TELL_AGAIN: Duration = Duration::from_secs(600);

/// The longest that a proposal is waited for.
const PROPOSE_MS: u64 = 5_000;

/// What the node wants the ledger to say.
pub(super) struct Binding {
    pub(super) consensus: Consensus,
    pub(super) host: HostName,
    pub(super) dispatcher: Dispatcher,
    /// Told whenever the engine begins to answer, or does not (any more).
    pub(super) heard: watch::Sender<Option<EngineWord>>,
    /// Where this node's data is, for others who come to the same engine.
    pub(super) data_dir: PathBuf,
    /// The engine that this node serves.
    pub(super) served: Option<Served>,
    /// Told if the engine is served by another process: this node is to end then.
    pub(super) taken: watch::Sender<Option<EngineTaken>>,
}

/// Trouble that goes on is told when it begins, and then now and again.
#[derive(Debug, Default)]
struct Trouble {
    /// For how long it has not been told; `None` while there is none.
    untold: Option<Duration>,
}

impl Trouble {
    /// There is trouble, and the next look comes after `pause`. True if it is to be told.
    fn goes_on(&mut self, pause: Duration) -> bool {
        let is_due = self.untold.is_none_or(|untold| untold >= TELL_AGAIN);
        let untold = if is_due { Duration::ZERO } else { self.untold.unwrap_or_default() };
        self.untold = Some(untold + pause);
        is_due
    }

    /// There is none. True if there was.
    fn ends(&mut self) -> bool {
        self.untold.take().is_some()
    }
}

/// What was last heard of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineWord {
    /// It answered, and can be used.
    Answered {
        /// As in `20.10.24+dfsg1`.
        server_version: String,
    },
    /// It did not, or cannot be used. It is asked again.
    Silent {
        /// Why, and what to do next.
        why: String,
    },
}

impl Binding {
    /// Keeps the host bound for as long as this node leads. Until the engine has answered once, requests
    /// for its containers are refused, `host-unknown`.
    pub(super) async fn keep(mut self, mut stop: watch::Receiver<bool>) {
        tokio::select! {
            () = self.bind_in_every_term() => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    async fn bind_in_every_term(&mut self) {
        let mut leadership = self.consensus.leadership();
        let mut pause = RETRY;
        let mut trouble = Trouble::default();
        loop {
            let term = *leadership.borrow_and_update();
            if let Some(term) = term {
                let bound = self.bind(term).await;
                let host = &self.host;
                match bound {
                    // This node ends, and says why.
                    Err(_) if self.taken.borrow().is_some() => return,
                    Err(detail) => {
                        if trouble.goes_on(pause) {
                            tracing::warn!(%host, %detail, "the host could not be bound or looked after; it is tried again");
                        } else {
                            tracing::debug!(%host, %detail, "the host still cannot be bound or looked after");
                        }
                        sleep(pause).await;
                        pause = (pause * 2).min(LOOK_AGAIN);
                        continue;
                    }
                    Ok(()) => {
                        if trouble.ends() {
                            tracing::info!(%host, "the host is bound and looked after again");
                        }
                    }
                }
            }
            pause = RETRY;
            // An engine may come back as another, whose containers then wait for it to be bound.
            if let Ok(Err(_)) = timeout(LOOK_AGAIN, leadership.changed()).await {
                return;
            }
        }
    }

    async fn bind(&mut self, term: Term) -> Result<(), String> {
        let engine = self.identify().await;
        self.hear(match &engine {
            Ok(engine) => EngineWord::Answered { server_version: engine.server_version.clone() },
            Err(why) => EngineWord::Silent { why: why.clone() },
        });
        let engine = engine?;
        self.serve(&engine.engine_id)?;
        let bind = BindHost {
            host: self.host.clone(),
            engine_id: engine.engine_id,
            dispatcher: DispatcherRef { guard: Guard::Agent, journal: self.dispatcher.position() },
        };
        let bound = self.consensus.read(|ledger| {
            ledger.host(&bind.host).is_some_and(|host| {
                host.engine_id == bind.engine_id
                    && host.dispatcher.journal.journal == bind.dispatcher.journal.journal
            })
        });
        if !bound {
            let before =
                self.consensus.read(|ledger| ledger.host(&bind.host).map(|host| host.engine_id.clone()));
            match before.filter(|before| *before != bind.engine_id) {
                None => tracing::info!(host = %bind.host, engine = %bind.engine_id, "binding the host"),
                Some(before) => tracing::warn!(
                    host = %bind.host, engine = %bind.engine_id, %before,
                    "another engine answers for the host than before, and is bound now; was that meant?"
                ),
            }
            self.propose(term, Command::BindHost(bind)).await?;
        }
        Ok(())
    }

    /// No restart is admitted for an engine before it is bound, and none is bound that another process serves.
    fn serve(&mut self, engine: &EngineId) -> Result<(), String> {
        if self.served.as_ref().is_some_and(|served| served.engine == *engine) {
            return Ok(());
        }
        let served = Served::begin(engine, &self.data_dir).inspect_err(|taken| {
            self.taken.send_replace(Some(taken.clone()));
        });
        self.served = Some(served.map_err(|taken| taken.to_string())?);
        Ok(())
    }

    async fn identify(&self) -> Result<EngineInfo, String> {
        let engine = self.dispatcher.engine().identify().await.map_err(|error| error.to_string())?;
        if engine.is_podman {
            return Err("it is Podman, which has no engine id that stays: it cannot be used yet".to_owned());
        }
        Ok(engine)
    }

    /// Passes on a change between answering and not. That the reason for a silence is another now is no news.
    fn hear(&self, word: EngineWord) {
        self.heard.send_if_modified(|heard| {
            let is_news = heard.as_ref().map(std::mem::discriminant) != Some(std::mem::discriminant(&word));
            if is_news {
                *heard = Some(word);
            }
            is_news
        });
    }

    async fn propose(&self, term: Term, command: Command) -> Result<(), String> {
        match self.consensus.propose(term, command, PROPOSE_MS).await {
            Ok((_, Outcome::Rejected(why))) => Err(why.to_string()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_when_it_begins_and_ends_and_every_ten_minutes_between() {
        let mut trouble = Trouble::default();
        assert!(!trouble.ends(), "there was none");
        for _ in 0..2 {
            let told: Vec<bool> = (0..121).map(|_| trouble.goes_on(LOOK_AGAIN)).collect();
            let at: Vec<usize> = told.iter().enumerate().filter(|(_, told)| **told).map(|(n, _)| n).collect();
            assert_eq!(at, [0, 60, 120], "once in 60 looks that lie 10 s apart");
            assert!(trouble.ends() && !trouble.ends(), "its end is told once");
        }
    }
}
