//! What a server's connections share: what is to be done, and the log of what arrived.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use tokio::sync::watch;

use crate::looks;
use crate::script::{Entry, Script};

/// What one connection brought.
#[derive(Clone, Debug, Default)]
pub struct Arrived {
    /// Of a request in plain text, as far as it was read.
    pub bytes: Vec<u8>,
    /// How much of an answer was taken.
    pub answered: usize,
    /// True once nothing more is done to it.
    pub over: bool,
}

/// What all connections share.
pub struct Shared {
    /// False if every connection is a restart's.
    pub looks: bool,
    script: Mutex<Script>,
    entries: Mutex<VecDeque<Entry>>,
    starts: Mutex<BTreeMap<String, u32>>,
    log: watch::Sender<Vec<Arrived>>,
}

impl Shared {
    /// Nothing has arrived; a restart takes effect.
    pub fn new(looks: bool) -> Self {
        Self {
            looks,
            script: Mutex::new(Script::restarts()),
            entries: Mutex::default(),
            starts: Mutex::default(),
            log: watch::Sender::new(Vec::new()),
        }
    }

    pub fn set_script(&self, script: Script) {
        *self.script.lock().unwrap() = script;
    }

    pub fn add_entry(&self, entry: Entry) {
        self.entries.lock().unwrap().push_back(entry);
    }

    pub fn next_entry(&self) -> Option<Entry> {
        self.entries.lock().unwrap().pop_front()
    }

    pub fn arrived(&self) -> Vec<Arrived> {
        self.log.borrow().clone()
    }

    /// What arrived, as it changes.
    pub fn log(&self) -> watch::Receiver<Vec<Arrived>> {
        self.log.subscribe()
    }

    pub fn current_script(&self) -> Script {
        self.script.lock().unwrap().clone()
    }

    /// A further connection; its number.
    pub fn begin(&self) -> usize {
        let mut number = 0;
        self.log.send_modify(|log| {
            number = log.len();
            log.push(Arrived::default());
        });
        number
    }

    pub fn note(&self, number: usize, change: impl FnOnce(&mut Arrived)) {
        self.log.send_modify(|log| change(&mut log[number]));
    }

    pub fn read<T>(&self, number: usize, look: impl FnOnce(&Arrived) -> T) -> T {
        look(&self.log.borrow()[number])
    }

    /// The container begins another life.
    pub fn start_anew(&self, id: &str) {
        *self.starts.lock().unwrap().entry(id.to_owned()).or_default() += 1;
    }

    /// The whole reply to a look.
    pub fn look(&self, path: &str) -> String {
        looks::reply(path, |id| self.starts.lock().unwrap().get(id).copied().unwrap_or_default())
    }
}
