//! Which containers an engine has.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use super::engine::Engine;
use super::error::EngineError;
use super::inspect::container_state;
use super::session::Extent;
use crate::model::{ContainerId, ContainerState};

/// Which containers to list. The default lists all of them, running or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Leave out those that do not run.
    pub running_only: bool,
    /// Each as `key` or `key=value`; a container needs all of them.
    pub labels: Vec<String>,
    /// Only the container of this own name, and perhaps others: engines differ in what they take for a part of a name,
    /// so whoever asks compares. Letters, digits, `_`, `.` and `-` alone; anything else is not asked for.
    pub name: Option<String>,
}

/// A container as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerSummary {
    /// Its full id.
    pub id: ContainerId,
    /// Its own names, without the slash. Aliases of legacy links, which have a second slash, are left out.
    pub names: Vec<String>,
    /// The image, as whoever made the container named it.
    pub image: String,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// What it is doing.
    pub state: ContainerState,
}

impl Engine {
    /// Lists containers, over one connection, within the list limit.
    ///
    /// # Errors
    ///
    /// [`EngineError`]. A list is whole or an error, never a part.
    pub async fn list(&self, filter: &ListFilter) -> Result<Vec<ContainerSummary>, EngineError> {
        let path = filter.path();
        let doing = "listing containers".to_owned();
        self.look(doing, self.limits().list_ms, Extent::Many, |session| async move {
            let listed: Vec<Shown> = session.ask(&path).await?;
            Ok(listed.into_iter().map(Shown::summary).collect())
        })
        .await
    }
}

impl ListFilter {
    fn path(&self) -> String {
        let mut path = format!("/containers/json?all={}", !self.running_only);
        let mut filters = serde_json::Map::new();
        if !self.labels.is_empty() {
            filters.insert("label".to_owned(), self.labels.as_slice().into());
        }
        if let Some(name) = self.name.as_ref().filter(|name| is_plain(name)) {
            // An expression, in which a point stands for any character.
            filters.insert("name".to_owned(), vec![format!("^/{name}$")].into());
        }
        if !filters.is_empty() {
            path.push_str("&filters=");
            for byte in serde_json::Value::Object(filters).to_string().bytes() {
                match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                        path.push(byte.into())
                    }
                    // Writing to a text cannot fail.
                    _ => drop(write!(path, "%{byte:02X}")),
                }
            }
        }
        path
    }
}

fn is_plain(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

/// What is read of one container. An entry has a full id, or the list is refused: so none is read that is shorter.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", expecting = "a container")]
struct Shown {
    id: ContainerId,
    names: Option<Vec<String>>,
    image: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    /// A word that is not known spoils nothing beside it.
    state: Option<String>,
}

impl Shown {
    fn summary(self) -> ContainerSummary {
        let own_name = |name: String| {
            let name = name.strip_prefix('/').unwrap_or(&name);
            (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
        };
        ContainerSummary {
            id: self.id,
            names: self.names.unwrap_or_default().into_iter().filter_map(own_name).collect(),
            image: self.image.unwrap_or_default(),
            labels: self.labels.unwrap_or_default(),
            state: self.state.map_or(ContainerState::Unknown, |word| container_state(&word)),
        }
    }
}
