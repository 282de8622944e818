//! The way back from stored records. What no history could have led to is refused: a ledger in which a run is not
//! found, or two stand for one container, would decide wrongly without a word.

use std::collections::BTreeSet;

use super::apply::{Ledger, RULES_LEVEL};
use super::limits::InvalidLimits;
use super::record::{Key, Meta, Record};
use super::run::Run;
use super::status::{Status, Verification};
use crate::model::{ClusterId, Holes, LogIndex};

/// Stored records that are no ledger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A record stands under another record's key.
    #[error("the record under key {key:?} says of itself that it is {own:?}")]
    Misplaced {
        /// Where it stood.
        key: String,
        /// Where it belongs.
        own: String,
    },
    /// The state is another cluster's.
    #[error("the state is of cluster {found}, this data directory of cluster {expected}")]
    OtherCluster {
        /// Of the state.
        found: ClusterId,
        /// Of the data directory.
        expected: ClusterId,
    },
    /// Rules are in force there that this build does not know.
    #[error("the state has rules level {needed} in force, this build knows {RULES_LEVEL}: upgrade this node")]
    NewerRules {
        /// The level in force.
        needed: u32,
    },
    /// Limits are in force there that break a rule.
    #[error("the state has limits in force that break a rule: {0}")]
    Limits(InvalidLimits),
    /// A record contradicts itself or another one: whatever wrote it was no ledger.
    #[error("the record under key {key:?} is not sound: {detail}; let this node begin anew as another node")]
    Unsound {
        /// Where it stands.
        key: String,
        /// What it contradicts.
        detail: String,
    },
}

/// Places in the log that belong to one record each.
#[derive(Default)]
struct Places {
    opened: BTreeSet<LogIndex>,
    changed: BTreeSet<LogIndex>,
    answered: BTreeSet<LogIndex>,
    held: BTreeSet<LogIndex>,
}

/// A ledger that is being read, record by record.
pub struct Loading {
    ledger: Ledger,
    places: Places,
}

impl Loading {
    /// Nothing was read yet.
    #[must_use]
    pub fn begin(cluster: ClusterId, holes: Holes) -> Self {
        Self { ledger: Ledger::new(cluster, holes), places: Places::default() }
    }

    /// Takes in the next record, which stood under `key`.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if it is not this cluster's, not in its place, of newer rules, or contradicts itself or one before.
    pub fn put(&mut self, key: String, record: Record) -> Result<(), LoadError> {
        let Self { ledger, places } = self;
        let own = record.key().to_string();
        if own != key {
            return Err(LoadError::Misplaced { key, own });
        }
        ledger.check(&record, places).map_err(|detail| LoadError::Unsound { key, detail })?;
        match record {
            Record::Meta(meta) => ledger.load_meta(meta)?,
            Record::Host(host) => ledger.put_host(host),
            Record::Run(run) => ledger.put_boxed_run(run),
            Record::Request(remembered) => ledger.put_request(remembered),
            Record::Attempts(account) => ledger.put_attempts(account),
            Record::Hold(hold) => ledger.put_hold(*hold),
        }
        ledger.is_as_stored();
        Ok(())
    }

    /// The ledger, once every record was taken in.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if two records contradict each other.
    pub fn end(self) -> Result<Ledger, LoadError> {
        let mut ledger = self.ledger;
        ledger.is_loaded();
        ledger.check_standing()?;
        Ok(ledger)
    }
}

impl Ledger {
    /// The ledger that the stored records are.
    ///
    /// # Errors
    ///
    /// [`LoadError`] as of [`Loading`].
    pub fn load(
        cluster: ClusterId,
        holes: Holes,
        records: impl IntoIterator<Item = (String, Record)>,
    ) -> Result<Self, LoadError> {
        let mut loading = Loading::begin(cluster, holes);
        for (key, record) in records {
            loading.put(key, record)?;
        }
        loading.end()
    }

    fn load_meta(&mut self, meta: Meta) -> Result<(), LoadError> {
        if meta.cluster != *self.cluster() {
            return Err(LoadError::OtherCluster { found: meta.cluster, expected: self.cluster().clone() });
        }
        if meta.rules_level > RULES_LEVEL {
            return Err(LoadError::NewerRules { needed: meta.rules_level });
        }
        // What was put in force before a later rule came stays in force.
        meta.limits.broken(1).into_iter().next().map_or(Ok(()), Err).map_err(LoadError::Limits)?;
        self.put_meta(meta);
        Ok(())
    }

    /// Whether a record agrees with itself, and claims no place that another one has.
    fn check(&self, record: &Record, places: &mut Places) -> Result<(), String> {
        let only = |places: &mut BTreeSet<LogIndex>, index: LogIndex, what: &str| {
            if places.insert(index) { Ok(()) } else { Err(format!("entry {index} {what} another one too")) }
        };
        match record {
            Record::Run(run) => {
                agrees_with_itself(run)?;
                only(&mut places.opened, run.opened.index, "opened")?;
                only(&mut places.changed, run.changed(), "was the last to change")?;
                let taken = run.starts.iter().find(|start| self.index().run_of_start(&start.id).is_some());
                taken.map_or(Ok(()), |start| Err(format!("start {} is another run's too", start.id)))
            }
            Record::Request(known) => only(&mut places.answered, known.at.index, "answered"),
            Record::Hold(hold) => only(&mut places.held, hold.placed.index, "placed"),
            Record::Meta(_) | Record::Host(_) | Record::Attempts(_) => Ok(()),
        }
    }

    /// Invariant 3: each run that is open or quarantined is the one that stands for its target and its container.
    fn check_standing(&self) -> Result<(), LoadError> {
        let clock = self.clock();
        for run in self.runs_newest_first().filter(|run| run.is_open() || run.is_quarantined(clock)) {
            let incarnation = run.baseline.as_ref().map(|baseline| &baseline.incarnation);
            let by_container =
                incarnation.and_then(|of| self.index().for_container(&of.engine_id, &of.container_id));
            let others = [self.index().for_target(&run.target), by_container];
            if let Some(other) = others.into_iter().find(|found| *found != Some(&run.id)) {
                let other = other.map_or("none", |id| id.as_str());
                let detail = format!("it stands for {}, and so does {other}", run.target);
                return Err(LoadError::Unsound { key: Key::Run(run.id.clone()).to_string(), detail });
            }
        }
        Ok(())
    }
}

/// What a run's status needs is there, and nothing that its status excludes.
fn agrees_with_itself(run: &Run) -> Result<(), String> {
    let word = run.status.word();
    let refused = matches!(run.status, Status::Refused { .. });
    if refused == run.interlock.is_some() {
        return Err(format!("it is {word}, and {} an interlock", if refused { "has" } else { "lacks" }));
    }
    if run.interlock.is_some() && run.baseline.is_none() {
        return Err("it has an interlock, and lacks the container as it was".to_owned());
    }
    if run.quarantine.is_some() && (refused || run.is_open()) {
        return Err(format!("it is {word}, and in quarantine"));
    }
    let watched = matches!(run.verification, Verification::Pending { .. });
    if watched && !matches!(run.status, Status::Applied { .. }) {
        return Err(format!("it is {word}, and its recovery is watched"));
    }
    Ok(())
}
