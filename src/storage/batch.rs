//! Changes that are made as one.

/// Changes to a database that take place together or not at all, in the order in which they were added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    pub(super) changes: Vec<Change>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Put { family: &'static str, key: String, value: Vec<u8> },
    Delete { family: &'static str, key: String },
    DeleteRange { family: &'static str, from: String, to: String },
}

impl Batch {
    /// No change.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores `value` under `key`.
    pub fn put(&mut self, family: &'static str, key: impl Into<String>, value: impl Into<Vec<u8>>) {
        self.changes.push(Change::Put { family, key: key.into(), value: value.into() });
    }

    /// Removes `key`, if it is there.
    pub fn delete(&mut self, family: &'static str, key: impl Into<String>) {
        self.changes.push(Change::Delete { family, key: key.into() });
    }

    /// Removes every key from `from` on and before `to`.
    pub fn delete_range(&mut self, family: &'static str, from: impl Into<String>, to: impl Into<String>) {
        self.changes.push(Change::DeleteRange { family, from: from.into(), to: to.into() });
    }

    /// True if it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}
