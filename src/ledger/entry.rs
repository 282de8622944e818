//! One entry of the log, as far as a decision may look at it, and what it adds to a history.

use super::moment::Moment;
use super::run::{Event, EventKind, Run};
use crate::model::{ClusterTime, LogIndex, NodeId, Term, WallTime};

/// An entry's place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryPosition {
    /// Its term.
    pub term: Term,
    /// Its index.
    pub index: LogIndex,
}

/// The entry that is being applied, as far as a decision may look at it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) position: EntryPosition,
    pub(super) node: NodeId,
    /// The cluster clock, this entry's own time included.
    pub(super) clock: ClusterTime,
    pub(super) wall: WallTime,
    /// The rules in force.
    pub(super) rules: u32,
}

impl Entry {
    pub(super) fn moment(&self) -> Moment {
        Moment {
            index: self.position.index,
            term: self.position.term,
            node: self.node,
            clock: self.clock,
            wall: self.wall,
        }
    }
}

/// A history of more events than this tells repetitions by their number.
const LONG_HISTORY: usize = 200;

impl Run {
    /// Adds to the history. Attaches in a row are one event: a client that asks every second must not make
    /// a history that nobody can read. In a long history, neither must an engine that comes and goes.
    pub(super) fn record(&mut self, entry: &Entry, kind: EventKind, detail: String) {
        let long = entry.rules >= 2 && self.events.len() > LONG_HISTORY;
        let repeats = match kind {
            EventKind::Attached if !long => self.events.iter().rev().take(1).position(|e| e.kind == kind),
            EventKind::Attached | EventKind::Observed if long => {
                self.events.iter().rev().take(2).position(|event| event.kind == kind)
            }
            _ => None,
        };
        let before = repeats.map(|back| self.events.remove(self.events.len() - 1 - back));
        let times = before.map_or(0, |before| before.times).saturating_add(1);
        self.events.push(Event { kind, at: entry.moment(), detail, times });
    }
}
