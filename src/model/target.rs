//! What a client asks to recover, in one canonical spelling.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ids::{ContainerId, HostName, InvalidId, excerpt};

/// `host/project/service/N` for a Compose container, else `host/container-name`.
///
/// The canonical spelling is made from what the engine says of the container, never from what a client
/// typed: a client's spelling is resolved to a container first, so every alias ends in one `Target`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Target {
    host: HostName,
    path: String,
}

/// A text that is not a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    /// There is no slash, or nothing on one side of it.
    #[error("target {} is not valid: write it as host/container-name, such as local/web, or host/project/service", excerpt(.0))]
    Shape(String),
    /// The part before the first slash is no host name.
    #[error("target {}: {source}", excerpt(target))]
    Host {
        /// The whole text.
        target: String,
        /// What is wrong with its host.
        source: InvalidId,
    },
}

impl Target {
    /// A container that Compose made: its replica number is always part of the spelling.
    ///
    /// # Errors
    ///
    /// [`InvalidTarget`] if project or service do not fit into a target.
    pub fn compose(
        host: &HostName,
        project: &str,
        service: &str,
        number: u32,
    ) -> Result<Self, InvalidTarget> {
        Self::parse(&format!("{host}/{project}/{service}/{number}"))
    }

    /// Any other container, by its name without the leading slash.
    ///
    /// # Errors
    ///
    /// [`InvalidTarget`] if the name does not fit into a target. Engines take names of any length.
    pub fn container(host: &HostName, name: &str) -> Result<Self, InvalidTarget> {
        Self::parse(&format!("{host}/{name}"))
    }

    /// A container whose name does not fit, by its full id.
    #[must_use]
    pub fn id(host: &HostName, id: &ContainerId) -> Self {
        Self { host: host.clone(), path: id.to_string() }
    }

    /// Reads `host/…`: one, two or three parts after the host, none of them empty.
    ///
    /// # Errors
    ///
    /// [`InvalidTarget`] says how a target is written.
    pub fn parse(text: &str) -> Result<Self, InvalidTarget> {
        let shape = || InvalidTarget::Shape(text.to_owned());
        let (host, path) = text.split_once('/').ok_or_else(shape)?;
        let parts: Vec<&str> = path.split('/').collect();
        let plain = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_graphic());
        if parts.len() > 3 || path.len() > 512 || !parts.iter().all(plain) {
            return Err(shape());
        }
        let host =
            HostName::new(host).map_err(|source| InvalidTarget::Host { target: text.to_owned(), source })?;
        Ok(Self { host, path: path.to_owned() })
    }

    /// The host that it is on.
    #[must_use]
    pub fn host(&self) -> &HostName {
        &self.host
    }

    /// The Compose project, of a target that names one.
    #[must_use]
    pub fn project(&self) -> Option<&str> {
        let (project, service) = self.path.split_once('/')?;
        service.contains('/').then_some(project)
    }

    /// `host/project/service` as `host/project/service/1`, which it stands for; any other target as it is, and
    /// one that leaves no room for the number: no container has that for its canonical target.
    #[must_use]
    pub fn first_replica(self) -> Self {
        let parts = self.path.split('/').count();
        if parts == 2 { Self::parse(&format!("{self}/1")).unwrap_or(self) } else { self }
    }

    /// What follows the host: `container-name`, or `project/service/N`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.path)
    }
}

impl TryFrom<String> for Target {
    type Error = InvalidTarget;
    fn try_from(text: String) -> Result<Self, InvalidTarget> {
        Self::parse(&text)
    }
}

impl From<Target> for String {
    fn from(target: Target) -> String {
        target.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_spellings_read_back_as_themselves() {
        let host = HostName::new("local").unwrap();
        let id = ContainerId::new("a".repeat(64)).unwrap();
        let compose = Target::compose(&host, "shop", "web", 2).unwrap();
        for target in [compose, Target::container(&host, "web").unwrap(), Target::id(&host, &id)] {
            assert_eq!(Target::parse(&target.to_string()).unwrap(), target);
        }
    }

    #[test]
    fn no_name_makes_a_target_that_cannot_be_read_back() {
        let host = HostName::new("local").unwrap();
        for name in ["", "a b", "ä", &"n".repeat(513)] {
            assert!(Target::container(&host, name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn the_longest_spelling_without_a_number_reads_back_from_the_log_too() {
        for service in [254, 255, 256] {
            let text = format!("local/{}/{}", "p".repeat(255), "s".repeat(service));
            let first = Target::parse(&text).unwrap().first_replica();
            let stored = serde_json::to_string(&first).unwrap();
            assert_eq!(serde_json::from_str::<Target>(&stored).unwrap(), first, "{service}");
        }
    }

    #[test]
    fn a_target_without_a_host_or_with_an_empty_part_is_refused() {
        for bad in ["", "web", "/web", "local/", "local//web", "local/a/b/c/d", "Local/web", "local/we b"] {
            assert!(Target::parse(bad).is_err(), "{bad:?} was accepted");
        }
    }
}
