//! The ledger itself: its state, and the one way to change it.

use std::collections::{BTreeMap, BTreeSet};

use super::attempts::{AttemptKey, Attempts, Refund, attempt_keys};
use super::command::{Command, Stamped};
use super::entry::{Entry, EntryPosition};
use super::hold::Hold;
use super::index::Index;
use super::limits::Limits;
use super::memory::Memory;
use super::outcome::{Outcome, Rejection};
use super::record::{Change, Host, Key, Meta, Record, Remembered};
use super::run::{Interlock, Run};
use crate::model::{ClusterId, ClusterTime, Holes, HostName, LogIndex, RequestId, RunId};

/// The newest rules that this build knows.
pub const RULES_LEVEL: u32 = 4;

/// An entry that this build must not apply. The node stops; it never skips one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Its rules are newer.
    #[error("entry {index} needs rules level {needed}, this build knows {RULES_LEVEL}: upgrade this node")]
    NewerRules {
        /// Which entry.
        index: LogIndex,
        /// The level that it needs.
        needed: u32,
    },
}

/// The answer of one entry, and what it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The answer to the proposer.
    pub outcome: Outcome,
    /// The records that are new, changed or gone; to be stored as one with the entry's position.
    pub changes: Vec<Change>,
}

/// The replicated ledger.
#[derive(Debug, Clone)]
pub struct Ledger {
    meta: Meta,
    hosts: BTreeMap<HostName, Host>,
    /// Boxed: a map of whole runs would hold room for about half as many again.
    runs: BTreeMap<RunId, Box<Run>>,
    memory: Memory,
    attempts: BTreeMap<AttemptKey, Attempts>,
    /// By the entry that placed them.
    holds: BTreeMap<LogIndex, Hold>,
    index: Index,
    touched: BTreeSet<Key>,
    holes: Holes,
}

impl Ledger {
    /// The empty ledger of a cluster.
    #[must_use]
    pub fn new(cluster: ClusterId, holes: Holes) -> Self {
        Self {
            meta: Meta { cluster, clock: ClusterTime::default(), limits: Limits::default(), rules_level: 1 },
            hosts: BTreeMap::new(),
            runs: BTreeMap::new(),
            memory: Memory::default(),
            attempts: BTreeMap::new(),
            holds: BTreeMap::new(),
            index: Index::default(),
            touched: BTreeSet::new(),
            holes,
        }
    }

    /// Applies one entry. The only way in which a ledger changes.
    ///
    /// # Errors
    ///
    /// [`ApplyError`] if this build must not apply the entry; the ledger is unchanged then.
    pub fn apply(&mut self, position: EntryPosition, stamped: Stamped) -> Result<Applied, ApplyError> {
        let needed = stamped.command.level();
        if needed.max(stamped.level) > RULES_LEVEL {
            let needed = needed.max(stamped.level);
            return Err(ApplyError::NewerRules { index: position.index, needed });
        }
        if stamped.clock > self.meta.clock {
            self.meta.clock = stamped.clock;
            self.touched.insert(Key::Meta);
        }
        let entry = Entry {
            position,
            node: stamped.node,
            clock: self.meta.clock,
            wall: stamped.wall,
            rules: self.rules_level(),
        };
        let raises = matches!(stamped.command, Command::RaiseRulesLevel { .. });
        let outcome = if needed > self.rules_level() && !raises {
            Outcome::Rejected(Rejection::RulesTooOld { needed, in_force: self.rules_level() })
        } else {
            self.carry_out(&entry, stamped.command)
        };
        Ok(Applied { outcome, changes: self.take_changes() })
    }

    fn carry_out(&mut self, entry: &Entry, command: Command) -> Outcome {
        match command {
            Command::OpenInterlock(command) => self.open_interlock(entry, &command),
            Command::RefuseRequest(command) => self.refuse_request(entry, *command),
            Command::RecordExchange(command) => self.record_exchange(entry, *command),
            Command::Attest(command) => self.attest(entry, *command),
            Command::Observe(command) => self.observe(entry, *command),
            Command::Verify(command) => self.verify(entry, &command),
            Command::BindHost(command) => self.bind_host(command),
            Command::SetLimits(limits) => self.set_limits(limits),
            Command::ChangeLimits(change) => self.set_limits(self.limits().with(&change)),
            Command::OpenStart(command) => self.open_start(entry, *command),
            Command::Resolve(command) => self.resolve(entry, *command),
            Command::PlaceHold(command) => self.place_hold(entry, *command),
            Command::RenewHold { hold } => self.renew_hold(entry, &hold),
            Command::LiftHold(command) => self.lift_hold(entry, &command),
            Command::EndQuarantine { run } => self.end_quarantine(entry, run),
            Command::RemoveHost { host } => self.remove_host(&host),
            Command::RaiseRulesLevel { level } => self.raise_rules_level(level),
            Command::Prune => self.prune(entry),
            Command::Tick => Outcome::Done,
        }
    }

    fn set_limits(&mut self, limits: Limits) -> Outcome {
        // What was stored before a rule came stays in force until it is changed.
        let before = self.limits().broken(self.rules_level());
        let broken = limits.broken(self.rules_level()).into_iter().find(|broken| !before.contains(broken));
        if let Some(broken) = broken {
            return Outcome::Rejected(Rejection::InvalidLimit(broken));
        }
        self.meta.limits = limits;
        self.touched.insert(Key::Meta);
        Outcome::Done
    }

    /// Rules are never taken out of force again.
    fn raise_rules_level(&mut self, level: u32) -> Outcome {
        if level > self.meta.rules_level {
            self.meta.rules_level = level;
            self.touched.insert(Key::Meta);
        }
        Outcome::Done
    }

    fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.touched)
            .into_iter()
            .map(|key| Change { record: self.record(&key), key })
            .collect()
    }

    fn record(&self, key: &Key) -> Option<Record> {
        Some(match key {
            Key::Meta => Record::Meta(self.meta.clone()),
            Key::Host(name) => Record::Host(self.hosts.get(name)?.clone()),
            Key::Run(id) => Record::Run(self.runs.get(id)?.clone()),
            Key::Request(id) => Record::Request(self.memory.get(id)?.clone()),
            Key::Attempts(key) => Record::Attempts(self.attempts.get(key)?.clone()),
            Key::Hold(id) => Record::Hold(Box::new(self.hold(id)?.clone())),
        })
    }
}

/// Reading.
impl Ledger {
    /// The cluster.
    #[must_use]
    pub fn cluster(&self) -> &ClusterId {
        &self.meta.cluster
    }

    /// The cluster clock as of the last entry.
    #[must_use]
    pub fn clock(&self) -> ClusterTime {
        self.meta.clock
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.meta.limits
    }

    /// The rules in force.
    #[must_use]
    pub fn rules_level(&self) -> u32 {
        self.meta.rules_level
    }

    /// Every bound host, by name.
    pub fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.values()
    }

    /// A bound host.
    #[must_use]
    pub fn host(&self, name: &HostName) -> Option<&Host> {
        self.hosts.get(name)
    }

    /// A run.
    #[must_use]
    pub fn run(&self, id: &RunId) -> Option<&Run> {
        self.runs.get(id).map(Box::as_ref)
    }

    /// The runs whose id begins so: their ids in order, two at most.
    #[must_use]
    pub fn runs_beginning(&self, beginning: &str) -> Vec<&RunId> {
        let from = self.runs.keys().skip_while(|id| id.as_str() < beginning);
        from.take_while(|id| id.as_str().starts_with(beginning)).take(2).collect()
    }

    /// Every hold, oldest first; also those that have ended and were not cleared away yet.
    pub fn holds(&self) -> impl Iterator<Item = &Hold> {
        self.holds.values()
    }

    /// Every run whose interlock is in force.
    pub fn open_runs(&self) -> impl Iterator<Item = &Run> {
        self.index.open().filter_map(|id| self.run(id))
    }

    /// The ids of these runs: far quicker than the runs, where most of them are not of interest.
    pub fn open_run_ids(&self) -> impl Iterator<Item = &RunId> {
        self.index.open()
    }

    /// Those of them for which a start was ever approved.
    pub fn open_runs_with_starts(&self) -> impl Iterator<Item = &Run> {
        self.index.open_with_starts().filter_map(|id| self.run(id))
    }

    /// Every applied run whose recovery is still watched.
    pub fn verifying_runs(&self) -> impl Iterator<Item = &Run> {
        self.index.verifying().filter_map(|id| self.run(id))
    }

    /// Every settled run whose target stays closed, by the bound of that.
    pub fn quarantined_runs(&self) -> impl Iterator<Item = &Run> {
        self.index.quarantined().filter_map(|(_, id)| self.run(id))
    }

    /// Every run, newest first.
    pub fn runs_newest_first(&self) -> impl Iterator<Item = &Run> {
        self.index.newest_first().filter_map(|id| self.run(id))
    }

    /// Every run that has an event after `index`, in the order of those.
    pub fn runs_changed_after(&self, index: LogIndex) -> impl Iterator<Item = &Run> {
        self.index.changed_after(index).filter_map(|id| self.run(id))
    }

    /// True while the cluster clock must go on: something is open, closed or held for a time, watched or
    /// charged.
    #[must_use]
    pub fn has_timed_work(&self) -> bool {
        self.index.open().next().is_some()
            || self.index.verifying().next().is_some()
            || self.index.quarantined().next().is_some()
            || self.holds.values().any(|hold| hold.until().is_some() && hold.stands(self.clock()))
            || self.attempts.values().any(|account| account.matters(self.clock(), self.limits()))
    }

    /// Every record, for a snapshot.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let meta = std::iter::once(Record::Meta(self.meta.clone()));
        meta.chain(self.hosts.values().cloned().map(Record::Host))
            .chain(self.runs.values().cloned().map(Record::Run))
            .chain(self.memory.all().cloned().map(Record::Request))
            .chain(self.attempts.values().cloned().map(Record::Attempts))
            .chain(self.holds.values().cloned().map(|hold| Record::Hold(Box::new(hold))))
    }
}

/// Writing, for the rules beside this file.
impl Ledger {
    pub(super) fn holes(&self) -> Holes {
        self.holes
    }

    pub(super) fn index(&self) -> &Index {
        &self.index
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// True if the rules of this level are in force.
    pub(super) fn rules(&self, level: u32) -> bool {
        self.meta.rules_level >= level
    }

    pub(super) fn runs_longest_unchanged_first(&self) -> impl Iterator<Item = &Run> {
        self.index.longest_unchanged_first().filter_map(|id| self.run(id))
    }

    pub(super) fn ended_runs_count(&self) -> usize {
        self.runs.len().saturating_sub(self.index.not_ended_count())
    }

    pub(super) fn put_meta(&mut self, meta: Meta) {
        self.touched.insert(Key::Meta);
        self.meta = meta;
    }

    pub(super) fn put_attempts(&mut self, account: Attempts) {
        self.touched.insert(Key::Attempts(account.key.clone()));
        self.attempts.insert(account.key.clone(), account);
    }

    /// A stored record is there, and is no change. Said of each at once: there may be hundreds of thousands.
    pub(super) fn is_as_stored(&mut self) {
        self.touched.clear();
    }

    /// Every stored record is there.
    pub(super) fn is_loaded(&mut self) {
        let runs = &self.runs;
        self.memory.find_orphans(|run| runs.contains_key(run));
    }

    pub(super) fn put_host(&mut self, host: Host) {
        self.touched.insert(Key::Host(host.name.clone()));
        self.hosts.insert(host.name.clone(), host);
    }

    pub(super) fn forget_host(&mut self, name: &HostName) {
        self.touched.insert(Key::Host(name.clone()));
        self.hosts.remove(name);
    }

    pub(super) fn put_hold(&mut self, hold: Hold) {
        self.touched.insert(Key::Hold(hold.id.clone()));
        self.holds.insert(hold.placed.index, hold);
    }

    pub(super) fn remove_hold(&mut self, hold: &Hold) {
        self.touched.insert(Key::Hold(hold.id.clone()));
        self.holds.remove(&hold.placed.index);
    }

    pub(super) fn with_interlock(&self, id: &RunId) -> Option<(Run, Interlock)> {
        let run = self.run(id)?.clone();
        let interlock = run.interlock.clone()?;
        Some((run, interlock))
    }

    pub(super) fn put_run(&mut self, run: Run) {
        self.put_boxed_run(Box::new(run));
    }

    pub(super) fn put_boxed_run(&mut self, run: Box<Run>) {
        let before = self.runs.get(&run.id).map(|known| known.changed());
        self.index.note(&run, before);
        self.memory.note_run(&run);
        self.touched.insert(Key::Run(run.id.clone()));
        self.runs.insert(run.id.clone(), run);
    }

    pub(super) fn remove_run(&mut self, id: &RunId) {
        let Some(run) = self.runs.remove(id) else { return };
        self.index.forget(&run);
        self.memory.forget_run(&run);
        self.touched.insert(Key::Run(run.id));
    }

    pub(super) fn put_request(&mut self, remembered: Remembered) {
        self.touched.insert(Key::Request(remembered.id.clone()));
        self.memory.put(remembered);
    }

    pub(super) fn remove_request(&mut self, id: &RequestId) {
        self.memory.remove(id);
        self.touched.insert(Key::Request(id.clone()));
    }

    pub(super) fn attempt_accounts(&self) -> impl Iterator<Item = &Attempts> {
        self.attempts.values()
    }

    pub(super) fn remove_attempts(&mut self, key: &AttemptKey) {
        self.attempts.remove(key);
        self.touched.insert(Key::Attempts(key.clone()));
    }

    pub(super) fn attempts(&self, key: &AttemptKey) -> Option<&Attempts> {
        self.attempts.get(key)
    }

    pub(super) fn charge(&mut self, key: AttemptKey, run: &RunId, now: ClusterTime) {
        let limits = self.meta.limits.clone();
        let account = self.attempts.entry(key.clone()).or_insert_with(|| Attempts::new(key.clone()));
        account.charge(run, now, &limits);
        self.touched.insert(Key::Attempts(key));
    }

    pub(super) fn give_back(&mut self, run: &Run, refund: Refund) {
        let Some(baseline) = &run.baseline else { return };
        for key in attempt_keys(&run.target, baseline) {
            let Some(account) = self.attempts.get_mut(&key) else { continue };
            account.give_back(&run.id, refund);
            if account.charges.is_empty() {
                self.attempts.remove(&key);
            }
            self.touched.insert(Key::Attempts(key));
        }
    }
}
