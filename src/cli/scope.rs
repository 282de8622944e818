//! What a hold covers, as it is typed and shown.

use super::text::plain;
use crate::model::{HostName, Target};
use crate::rpc::v1::HoldScope;
use crate::rpc::v1::hold_scope::Scope;

/// The group of arguments of which one is given.
pub(super) const GROUP: &str = "covered";

/// What is covered: one of these.
#[derive(Debug, Clone, clap::Args)]
#[group(id = GROUP, required = true, multiple = false)]
pub(super) struct ScopeArgs {
    /// One container: host/container-name, or host/project/service[/N]
    #[arg(value_parser = Target::parse)]
    target: Option<Target>,
    /// Every container of one host
    #[arg(long, value_name = "HOST")]
    host: Option<HostName>,
    /// Every container of one Compose project
    #[arg(long, value_name = "HOST/PROJECT", value_parser = parse_project)]
    project: Option<String>,
    /// Every container of every host
    #[arg(long)]
    everything: bool,
}

impl ScopeArgs {
    /// What was typed. `None` if another argument of the group was.
    pub(super) fn scope(&self) -> Option<HoldScope> {
        let target = || self.target.as_ref().map(|target| Scope::Target(target.to_string()));
        let host = || self.host.as_ref().map(|host| Scope::Host(host.to_string()));
        let project = || self.project.clone().map(Scope::Project);
        let everything = || self.everything.then_some(Scope::Everything(true));
        let scope = target().or_else(host).or_else(project).or_else(everything)?;
        Some(HoldScope { scope: Some(scope) })
    }
}

/// What a hold covers, in words.
pub(super) fn show(scope: Option<&HoldScope>) -> String {
    match scope.and_then(|scope| scope.scope.as_ref()) {
        Some(Scope::Everything(_)) => "everything".into(),
        Some(Scope::Host(host)) => format!("host {}", plain(host)),
        Some(Scope::Project(project)) => format!("project {}", plain(project)),
        Some(Scope::Target(target)) => plain(target),
        None => "?".into(),
    }
}

fn parse_project(text: &str) -> Result<String, String> {
    // A project stands where a container's name does in a target.
    match Target::parse(text) {
        Ok(target) if !target.path().contains('/') => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is no project of a host: write it as host/project")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::parse;
    use super::*;

    #[test]
    fn one_thing_is_covered() {
        for (arguments, scope, shown) in [
            (&["local/web"][..], Scope::Target("local/web".into()), "local/web"),
            (&["--host", "local"], Scope::Host("local".into()), "host local"),
            (&["--project", "local/shop"], Scope::Project("local/shop".into()), "project local/shop"),
            (&["--everything"], Scope::Everything(true), "everything"),
        ] {
            let typed = parse::<ScopeArgs>(arguments).unwrap().scope().unwrap();
            assert_eq!(typed.scope, Some(scope));
            assert_eq!(show(Some(&typed)), shown);
        }
    }

    #[test]
    fn nothing_or_two_things_or_what_has_no_shape_is_a_matter_of_usage() {
        for arguments in [
            &[][..],
            &["web"],
            &["local/web", "--everything"],
            &["--host", "local", "--project", "local/shop"],
            &["--host", "Local"],
            &["--project", "shop"],
            &["--project", "local/shop/web"],
        ] {
            assert_eq!(parse::<ScopeArgs>(arguments).unwrap_err().exit_code(), 2, "{arguments:?}");
        }
    }
}
