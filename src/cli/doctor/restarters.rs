//! Others that restart containers by themselves.

use super::check::Check;
use crate::docker::ContainerSummary;

const NAME: &str = "other-restarters";

/// What is found in the names of the images of tools that restart or replace containers.
const TOOLS: &[&str] = &["autoheal", "deunhealth", "watchtower", "ouroboros"];

/// Labels by which a container is handed to such a tool.
const LABELS: &[(&str, &str)] = &[("autoheal", "true"), ("deunhealth.restart.on.unhealthy", "true")];

/// Judges the containers that run.
pub(super) fn look(running: &[ContainerSummary]) -> Check {
    let tools = named(running, |container| {
        let image = repository(&container.image).to_lowercase();
        TOOLS.iter().any(|tool| image.contains(tool))
    });
    let marked = named(running, |container| {
        LABELS.iter().any(|(key, value)| container.labels.get(*key).is_some_and(|found| found == value))
    });
    let tools_seen = format!("at work: {}", tools.join(", "));
    let marked_seen = format!("marked for one (autoheal=true or the like): {}", marked.join(", "));
    match (tools.is_empty(), marked.is_empty()) {
        (true, true) => Check::ok(NAME, format!("none among {} running containers", running.len())),
        (true, false) => Check::warn(
            NAME,
            marked_seen,
            "if something on this machine acts on that label, end it: it and relatch would restart the same \
             containers",
        ),
        (false, no_marked) => Check::warn(
            NAME,
            if no_marked { tools_seen } else { format!("{tools_seen}; {marked_seen}") },
            "end it before relatch restarts what it restarts: what one of the two does, the other does not know \
             of, and takes for a container's own doing",
        ),
    }
}

/// As `web (image nginx)`.
fn named(running: &[ContainerSummary], is_wanted: impl Fn(&ContainerSummary) -> bool) -> Vec<String> {
    let name = |container: &ContainerSummary| {
        container.names.first().cloned().unwrap_or_else(|| container.id.to_string())
    };
    let wanted = running.iter().filter(|container| is_wanted(container));
    wanted.map(|container| format!("{} (image {})", name(container), container.image)).collect()
}

/// An image's name without its tag and digest. A registry's port is not a tag.
fn repository(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or(image);
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => image,
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Status;
    use super::*;
    use crate::model::{ContainerId, ContainerState};

    fn container(name: &str, image: &str, labels: &[(&str, &str)]) -> ContainerSummary {
        ContainerSummary {
            id: ContainerId::new("a".repeat(64)).unwrap(),
            names: vec![name.to_owned()],
            image: image.to_owned(),
            labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            state: ContainerState::Running,
        }
    }

    #[test]
    fn a_tool_is_known_by_its_image_wherever_that_comes_from() {
        for image in [
            "willfarrell/autoheal",
            "willfarrell/autoheal:1.2.0",
            "registry.example:5000/mirror/Docker-Autoheal@sha256:0123",
            "qmcgaw/deunhealth:latest",
            "containrrr/watchtower",
            "ghcr.io/nicholas-fedor/watchtower:1",
            "pyouroboros/ouroboros",
        ] {
            let check = look(&[container("healer", image, &[]), container("web", "nginx", &[])]);
            assert_eq!(check.status, Status::Warn, "{image}");
            assert!(check.seen.contains("healer") && !check.seen.contains("web"), "{}", check.seen);
        }
    }

    #[test]
    fn what_only_has_the_word_in_its_tag_is_no_tool() {
        let check = look(&[container("web", "nginx:no-autoheal", &[("autoheal", "false")])]);
        assert_eq!(check.status, Status::Ok, "{check:?}");
        assert_eq!(repository("localhost:5000/web"), "localhost:5000/web");
    }

    #[test]
    fn containers_that_are_marked_for_a_tool_are_named_with_and_without_it() {
        let marked = container("web", "nginx", &[("autoheal", "true")]);
        let alone = look(std::slice::from_ref(&marked));
        assert_eq!(alone.status, Status::Warn);
        assert!(alone.seen.contains("web (image nginx)"), "{}", alone.seen);
        let both = look(&[marked, container("healer", "willfarrell/autoheal", &[])]);
        assert!(both.seen.contains("healer") && both.seen.contains("web"), "{}", both.seen);
    }
}
