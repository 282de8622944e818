//! From a client's spelling to exactly one container.

use std::collections::BTreeMap;

use crate::docker::{ContainerSummary, Engine, EngineError, Inspection, ListFilter};
use crate::model::{ContainerId, HostName, Target, Wire};

/// How many containers are listed at most.
const LISTED: usize = 20;

const PROJECT: &str = "com.docker.compose.project";
const SERVICE: &str = "com.docker.compose.service";
const NUMBER: &str = "com.docker.compose.container-number";

/// What a spelling stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Resolved {
    /// One container, under its canonical target.
    One(ContainerId, Target),
    /// Several; each under a spelling that stands for it alone.
    Several(Vec<(ContainerId, Target)>),
    /// None; these are there instead, each under a spelling that stands for it alone.
    None(Vec<Target>),
}

/// Finds the container that a spelling stands for on an engine. All of its containers are read only where none answers
/// to the spelling as to a name: that takes a busy engine a moment, and is for what may begin an id, or is not there.
pub(super) async fn find(engine: &Engine, spelling: &Target) -> Result<Resolved, EngineError> {
    if let Some(filter) = narrowed(spelling) {
        let some = engine.list(&filter).await?;
        if let Some(found) = by_name(spelling, &some) {
            return Ok(found);
        }
    }
    Ok(resolve(spelling, &engine.list(&ListFilter::default()).await?))
}

/// What all containers pass that answer to the spelling by name: so whatever else is there, [`by_name`] finds the same
/// among those that pass.
fn narrowed(spelling: &Target) -> Option<ListFilter> {
    match spelling.path().split('/').collect::<Vec<_>>()[..] {
        [name] => Some(ListFilter { name: Some(name.to_owned()), ..ListFilter::default() }),
        [project, service] | [project, service, _] => {
            let labels = vec![format!("{PROJECT}={project}"), format!("{SERVICE}={service}")];
            Some(ListFilter { labels, ..ListFilter::default() })
        }
        _ => None,
    }
}

/// Finds the container that a spelling stands for among all of a host's containers.
///
/// A name goes before the beginning of an id, and Compose labels before both.
pub(super) fn resolve(spelling: &Target, containers: &[ContainerSummary]) -> Resolved {
    let by_id = || first_of(spelling, containers, &[&|c| c.id.answers_to(spelling.path())]);
    by_name(spelling, containers).or_else(by_id).unwrap_or_else(|| {
        Resolved::None(told_apart(spelling.host(), &containers.iter().collect::<Vec<_>>()))
    })
}

/// The same by Compose labels and names alone; none if no container answers to the spelling by these.
fn by_name(spelling: &Target, containers: &[ContainerSummary]) -> Option<Resolved> {
    let path = spelling.path();
    first_of(
        spelling,
        containers,
        &[&|c| compose_of(c).is_some_and(|compose| compose.answers_to(path)), &|c| {
            c.names.iter().any(|name| name == path)
        }],
    )
}

/// What the first rule finds that finds anything.
fn first_of(
    spelling: &Target,
    containers: &[ContainerSummary],
    rules: &[&dyn Fn(&ContainerSummary) -> bool],
) -> Option<Resolved> {
    let host = spelling.host();
    rules.iter().find_map(|rule| {
        let found: Vec<&ContainerSummary> = containers.iter().filter(|c| rule(c)).collect();
        match found.as_slice() {
            [] => None,
            [one] => Some(Resolved::One(one.id.clone(), canonical(host, one))),
            several => {
                let ids = several.iter().map(|c| c.id.clone());
                Some(Resolved::Several(ids.zip(told_apart(host, several)).collect()))
            }
        }
    })
}

/// A spelling of each container that stands for it alone: where Compose says the same of several, their names.
fn told_apart(host: &HostName, containers: &[&ContainerSummary]) -> Vec<Target> {
    let targets: Vec<Target> = containers.iter().map(|c| canonical(host, c)).collect();
    let mut times = BTreeMap::new();
    for target in &targets {
        *times.entry(target).or_insert(0) += 1;
    }
    let of_one = |target: &Target| times.get(target) == Some(&1);
    let spelled = containers.iter().zip(&targets);
    spelled.map(|(c, target)| if of_one(target) { target.clone() } else { named(host, c) }).collect()
}

/// The one spelling that the ledger knows a container by: what Compose says, else its name, else its id.
fn canonical(host: &HostName, container: &ContainerSummary) -> Target {
    let compose = compose_of(container)
        .and_then(|compose| Target::compose(host, compose.project, compose.service, compose.number).ok());
    compose.unwrap_or_else(|| named(host, container))
}

/// By its name, else by its id.
fn named(host: &HostName, container: &ContainerSummary) -> Target {
    let named = container.names.first().and_then(|name| Target::container(host, name).ok());
    named.unwrap_or_else(|| Target::id(host, &container.id))
}

/// True if one of a host's containers is of a Compose project.
pub(super) fn has_project(host: &HostName, project: &str, containers: &[ContainerSummary]) -> bool {
    containers.iter().any(|container| canonical(host, container).project() == Some(project))
}

/// Containers, for people: as many as fit on a line or two.
pub(super) fn listed(targets: &[Target]) -> String {
    if targets.is_empty() {
        return "no containers".to_owned();
    }
    let mut text = targets.iter().take(LISTED).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if targets.len() > LISTED {
        text.push_str(&format!(" and {} more", targets.len() - LISTED));
    }
    text
}

struct Compose<'a> {
    project: &'a str,
    service: &'a str,
    number: u32,
}

impl Compose<'_> {
    /// `project/service/N`, or `project/service` for the first.
    fn answers_to(&self, path: &str) -> bool {
        let mut parts = path.split('/');
        let named = parts.next() == Some(self.project) && parts.next() == Some(self.service);
        let number = parts.next().map_or(Ok(1), str::parse::<u32>);
        named && number == Ok(self.number) && parts.next().is_none()
    }
}

/// What Compose's labels say, if they are whole. One-off containers (`compose run`) keep their own names.
fn compose_of(container: &ContainerSummary) -> Option<Compose<'_>> {
    let label = |key: &str| container.labels.get(key).map(String::as_str).filter(|text| plain(text));
    if container.labels.get("com.docker.compose.oneoff").is_some_and(|text| text.eq_ignore_ascii_case("true"))
    {
        return None;
    }
    Some(Compose { project: label(PROJECT)?, service: label(SERVICE)?, number: label(NUMBER)?.parse().ok()? })
}

/// Labels are free text: only what fits between two slashes of a target is taken for a part of one.
fn plain(text: &str) -> bool {
    !text.is_empty() && text.len() <= 128 && text.bytes().all(|b| b.is_ascii_graphic() && b != b'/')
}

/// True if the container is this very process's. A process id says so only of an engine on this machine.
pub(super) fn is_this_process(
    inspection: &Inspection,
    wire: Wire,
    own: Option<&ContainerId>,
    own_pid: u32,
) -> bool {
    own == Some(&inspection.sighting.container_id) || (wire == Wire::Unix && inspection.pid == Some(own_pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ContainerState;

    fn container(digit: &str, name: &str, labels: &[(&str, &str)]) -> ContainerSummary {
        ContainerSummary {
            id: ContainerId::new(digit.repeat(64)).unwrap(),
            names: vec![name.to_owned()],
            image: String::new(),
            labels: labels
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect::<BTreeMap<_, _>>(),
            state: ContainerState::Running,
        }
    }

    fn compose(digit: &str, number: &str) -> ContainerSummary {
        let name = format!("shop-web-{number}");
        container(digit, &name, &[(PROJECT, "shop"), (SERVICE, "web"), (NUMBER, number)])
    }

    fn resolved(spelling: &str, containers: &[ContainerSummary]) -> Resolved {
        resolve(&Target::parse(spelling).unwrap(), containers)
    }

    #[test]
    fn every_spelling_of_a_compose_container_ends_in_one_target() {
        let containers = [compose("a", "1"), compose("b", "2"), container("c", "web", &[])];
        let expected = Resolved::One(containers[0].id.clone(), Target::parse("local/shop/web/1").unwrap());
        for spelling in ["local/shop/web", "local/shop/web/1", "local/shop-web-1", "local/aaaaaaaaaaaa"] {
            assert_eq!(resolved(spelling, &containers), expected, "{spelling}");
        }
        assert!(
            matches!(resolved("local/web", &containers), Resolved::One(_, target) if target.path() == "web")
        );
    }

    #[test]
    fn a_name_that_looks_like_the_beginning_of_an_id_is_a_name() {
        let containers = [container("a", "bbbbbbbbbbbb", &[]), container("b", "other", &[])];
        assert_eq!(
            resolved("local/bbbbbbbbbbbb", &containers),
            Resolved::One(containers[0].id.clone(), Target::parse("local/bbbbbbbbbbbb").unwrap())
        );
    }

    #[test]
    fn a_container_whose_name_does_not_fit_into_a_target_goes_by_its_id() {
        let containers = [container("a", &"n".repeat(600), &[]), container("b", "b c", &[])];
        for (digit, at) in [("a", 0), ("b", 1)] {
            let Resolved::One(id, target) = resolved(&format!("local/{}", digit.repeat(12)), &containers)
            else {
                panic!("{digit} was not found")
            };
            assert_eq!((&id, target.path()), (&containers[at].id, containers[at].id.as_str()));
            assert_eq!(Target::parse(&target.to_string()).unwrap(), target);
        }
    }

    #[test]
    fn two_containers_for_one_spelling_are_never_one_and_each_is_listed_as_it_can_be_asked_for() {
        let copy = container("b", "copy", &[(PROJECT, "shop"), (SERVICE, "web"), (NUMBER, "1")]);
        let containers = [compose("a", "1"), copy];
        let Resolved::Several(found) = resolved("local/shop/web", &containers) else {
            panic!("{:?}", resolved("local/shop/web", &containers))
        };
        let spelled: Vec<String> = found.iter().map(|(_, target)| target.to_string()).collect();
        assert_eq!(spelled, ["local/shop-web-1", "local/copy"]);
        for (spelling, container) in spelled.iter().zip(&containers) {
            assert!(
                matches!(resolved(spelling, &containers), Resolved::One(id, _) if id == container.id),
                "{spelling}"
            );
        }
    }

    #[test]
    fn a_target_that_is_not_there_answers_with_what_is() {
        let containers = [container("a", "api", &[])];
        let api = Target::parse("local/api").unwrap();
        assert_eq!(resolved("local/web", &containers), Resolved::None(vec![api]));
    }

    /// As engines do: every label as named; for a name, some let others pass that have it in their own.
    fn pass(filter: &ListFilter, containers: &[ContainerSummary], exactly: bool) -> Vec<ContainerSummary> {
        let has_name =
            |name: &String, wanted: &str| if exactly { name == wanted } else { name.contains(wanted) };
        let passes = |c: &&ContainerSummary| {
            let labelled = |label: &String| {
                let (key, value) = label.split_once('=').unwrap();
                c.labels.get(key).is_some_and(|found| found == value)
            };
            let named = |wanted: &String| c.names.iter().any(|name| has_name(name, wanted));
            filter.labels.iter().all(labelled) && filter.name.as_ref().is_none_or(named)
        };
        containers.iter().filter(passes).cloned().collect()
    }

    #[test]
    fn what_is_found_among_some_is_what_is_found_among_all() {
        let one_off =
            [(PROJECT, "shop"), (SERVICE, "web"), (NUMBER, "1"), ("com.docker.compose.oneoff", "True")];
        let mut containers = vec![
            compose("a", "1"),
            compose("b", "2"),
            container("c", "web", &[]),
            container("d", "shop-web-run", &one_off),
            container("e", "shop-web-10", &[(PROJECT, "shop"), (SERVICE, "web"), (NUMBER, "ten")]),
            container("f", "aaaaaaaaaaaa", &[]),
        ];
        let spellings = [
            "shop/web",
            "shop/web/1",
            "shop/web/01",
            "shop/web/2",
            "shop/web/3",
            "shop/db",
            "shop-web-1",
            "shop-web-10",
            "shop-web",
            "web",
            "we",
            "aaaaaaaaaaaa",
            "bbbbbbbbbbbb",
            "shop-web-run",
        ];
        for copies in 0..2 {
            if copies > 0 {
                containers.push(container(
                    "1",
                    "copy",
                    &[(PROJECT, "shop"), (SERVICE, "web"), (NUMBER, "1")],
                ));
            }
            let mut found = 0;
            for spelling in spellings {
                let Ok(target) = Target::parse(&format!("local/{spelling}")) else { panic!("{spelling}") };
                let filter = narrowed(&target).unwrap();
                let whole = by_name(&target, &containers);
                for exactly in [true, false] {
                    let some = pass(&filter, &containers, exactly);
                    assert_eq!(by_name(&target, &some), whole, "{spelling} among {some:?}");
                }
                found += usize::from(whole.is_some());
            }
            assert!(found > 6, "{found} of {} are found by name", spellings.len());
        }
    }
}
