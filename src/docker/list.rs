//! Which containers an engine has.

use std::collections::{BTreeMap, HashMap};

use bollard::models::ContainerSummary as Shown;
use bollard::query_parameters::{ListContainersOptions, ListContainersOptionsBuilder};

use super::engine::Engine;
use super::error::EngineError;
use super::inspect::container_state;
use super::lenient::read_at_all;
use crate::model::{ContainerId, ContainerState, InvalidId};

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
        let options = filter.options();
        self.look("listing containers".to_owned(), self.limits().list_ms, |session| async move {
            let listed = read_at_all(session.docker.list_containers(Some(options)).await);
            let listed = listed.map_err(|error| session.failed(&error))?.into_iter().map(summary);
            listed.collect::<Result<_, _>>().map_err(|error| session.unreadable(error.to_string()))
        })
        .await
    }
}

impl ListFilter {
    fn options(&self) -> ListContainersOptions {
        let options = ListContainersOptionsBuilder::new().all(!self.running_only);
        if self.labels.is_empty() {
            return options.build();
        }
        options.filters(&HashMap::from([("label", self.labels.clone())])).build()
    }
}

fn summary(shown: Shown) -> Result<ContainerSummary, InvalidId> {
    let own_name = |name: String| {
        let name = name.strip_prefix('/').unwrap_or(&name);
        (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
    };
    Ok(ContainerSummary {
        id: ContainerId::new(shown.id.unwrap_or_default())?,
        names: shown.names.unwrap_or_default().into_iter().filter_map(own_name).collect(),
        image: shown.image.unwrap_or_default(),
        labels: shown.labels.unwrap_or_default().into_iter().collect(),
        state: shown.state.map_or(ContainerState::Unknown, |word| container_state(word.as_ref())),
    })
}
