//! Which containers an engine has.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::engine::Engine;
use super::error::EngineError;
use super::inspect::{container_state, null_as_default};
use super::session::query_value;
use crate::model::{ContainerId, ContainerState};

/// Which containers to list. The default lists all of them, running or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Leave out those that do not run.
    pub running_only: bool,
    /// Each as `key` or `key=value`; a container needs all of them.
    pub labels: Vec<String>,
}

/// A container as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerSummary {
    /// Its full id.
    pub id: ContainerId,
    /// Its own names, without the slash. Aliases of legacy links, which have a second slash, are left out.
    pub names: Vec<String>,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// What it is doing.
    pub state: ContainerState,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawSummary {
    id: String,
    #[serde(default, deserialize_with = "null_as_default")]
    names: Vec<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    labels: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "null_as_default")]
    state: String,
}

impl Engine {
    /// Lists containers, over one connection, within the list limit.
    ///
    /// # Errors
    ///
    /// [`EngineError`]. A list is whole or an error, never a part.
    pub async fn list(&self, filter: &ListFilter) -> Result<Vec<ContainerSummary>, EngineError> {
        let path = filter.path();
        self.look("listing containers".to_owned(), self.limits().list_ms, |mut session| async move {
            let raw: Vec<RawSummary> = session.get_json(&path).await?;
            raw.into_iter()
                .map(|raw| raw.summary().map_err(|error| session.unreadable(error.to_string())))
                .collect()
        })
        .await
    }
}

impl ListFilter {
    fn path(&self) -> String {
        let all = if self.running_only { "0" } else { "1" };
        if self.labels.is_empty() {
            return format!("/containers/json?all={all}");
        }
        let filters = serde_json::json!({ "label": self.labels }).to_string();
        format!("/containers/json?all={all}&filters={}", query_value(&filters))
    }
}

impl RawSummary {
    fn summary(self) -> Result<ContainerSummary, crate::model::InvalidId> {
        let own_name = |name: String| {
            let name = name.strip_prefix('/').unwrap_or(&name);
            (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
        };
        Ok(ContainerSummary {
            id: ContainerId::new(self.id)?,
            names: self.names.into_iter().filter_map(own_name).collect(),
            labels: self.labels,
            state: container_state(&self.state),
        })
    }
}
