//! Which endpoint a request means.

use super::script::Endpoint;

/// A request's meaning, before any container is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) endpoint: Endpoint,
    /// The id, name or id prefix in the path.
    pub(crate) container: Option<String>,
    /// The version in the path.
    pub(crate) version: Option<ApiVersion>,
}

/// An API version, ordered as versions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ApiVersion {
    major: u32,
    minor: u32,
}

impl ApiVersion {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once('.')?;
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl std::fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Reads method and decoded path. What the engine does not serve is [`Endpoint::Unknown`].
pub(crate) fn route(method: &str, path: &str) -> Route {
    let mut parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let version = parts.first().and_then(|part| part.strip_prefix('v')).and_then(ApiVersion::parse);
    if version.is_some() {
        parts.remove(0);
    }
    let named = |endpoint, name: &str| (endpoint, Some(name.to_owned()));
    let (endpoint, container) = match (method, parts.as_slice()) {
        ("GET" | "HEAD", ["_ping"]) => (Endpoint::Ping, None),
        ("GET", ["version"]) => (Endpoint::Version, None),
        ("GET", ["info"]) => (Endpoint::Info, None),
        ("GET", ["events"]) => (Endpoint::Events, None),
        ("GET", ["containers", "json"]) => (Endpoint::List, None),
        ("GET", ["containers", name, "json"]) => named(Endpoint::Inspect, name),
        ("POST", ["containers", name, "restart"]) => named(Endpoint::Restart, name),
        ("POST", ["containers", name, "start"]) => named(Endpoint::Start, name),
        ("POST", ["containers", name, "stop"]) => named(Endpoint::Stop, name),
        ("POST", ["containers", name, "pause"]) => named(Endpoint::Pause, name),
        ("POST", ["containers", name, "unpause"]) => named(Endpoint::Unpause, name),
        ("POST", ["containers", name, "rename"]) => named(Endpoint::Rename, name),
        ("DELETE", ["containers", name]) => named(Endpoint::Remove, name),
        _ => (Endpoint::Unknown, None),
    };
    Route { endpoint, container, version }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_prefix_is_optional() {
        let plain = route("POST", "/containers/web/restart");
        assert_eq!((plain.endpoint, plain.container.as_deref()), (Endpoint::Restart, Some("web")));
        let versioned = route("POST", "/v1.47/containers/web/restart");
        assert_eq!(versioned.version, ApiVersion::parse("1.47"));
        assert_eq!((versioned.endpoint, versioned.container), (plain.endpoint, plain.container));
    }

    #[test]
    fn what_is_not_served_is_unknown() {
        assert_eq!(route("GET", "/containers/web/restart").endpoint, Endpoint::Unknown);
        assert_eq!(route("GET", "/images/json").endpoint, Endpoint::Unknown);
    }

    #[test]
    fn versions_order_by_number_and_not_by_text() {
        assert!(ApiVersion::parse("1.9") < ApiVersion::parse("1.41"));
    }
}
