//! Whose data it is.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::StorageError;
use super::files::{read_file, replace_file};
use crate::env::{Randomness, RandomnessError, hex_id};
use crate::model::{ClusterId, NodeId};

/// The newest form of the data directory that this build knows.
const FORMAT: u32 = 1;

/// Whose data a directory holds. It is minted once, and never changes under the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The form of the directory.
    pub format: u32,
    /// The cluster.
    pub cluster: ClusterId,
    /// The node within it.
    pub node: NodeId,
}

/// What every format has.
#[derive(Deserialize)]
struct Numbered {
    format: u32,
}

impl Identity {
    /// The identity of the first node of a new cluster.
    ///
    /// # Errors
    ///
    /// [`RandomnessError`] if there is nothing to mint it from.
    ///
    /// # Panics
    ///
    /// Never: a minted id has the form of a cluster id.
    pub fn mint(randomness: &dyn Randomness, node: NodeId) -> Result<Self, RandomnessError> {
        let cluster = ClusterId::new(hex_id(randomness)?).expect("32 hex digits are a cluster id");
        Ok(Self::of(cluster, node))
    }

    /// The identity of a node of a cluster that exists.
    #[must_use]
    pub fn of(cluster: ClusterId, node: NodeId) -> Self {
        Self { format: FORMAT, cluster, node }
    }

    /// Reads what is stored at `path`; `None` if nothing is.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, StorageError> {
        let Some(content) = read_file(path)? else { return Ok(None) };
        let malformed = |error: serde_json::Error| StorageError::Malformed {
            path: path.to_owned(),
            detail: error.to_string(),
        };
        // Another format may have any other field, so its number comes first.
        let Numbered { format } = serde_json::from_slice(&content).map_err(malformed)?;
        if format != FORMAT {
            return Err(StorageError::OtherFormat {
                path: path.to_owned(),
                found: format!("format {format}"),
                known: format!("format {FORMAT}"),
            });
        }
        let identity = serde_json::from_slice(&content).map_err(malformed)?;
        Ok(Some(identity))
    }

    pub(super) fn store(&self, path: &Path) -> Result<(), StorageError> {
        let mut text =
            serde_json::to_vec_pretty(self).map_err(|error| StorageError::failed("writing", path, error))?;
        text.push(b'\n');
        replace_file(path, &text)
    }
}
