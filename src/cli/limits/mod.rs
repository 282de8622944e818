//! `relatch limits`: shows and changes the limits in force.

mod setting;

use anyhow::Context;
use clap::{Args, Subcommand};

use super::address::Address;
use super::client::{self, CallError, Nodes, Retry, RetryFor};
use super::exit::Exit;
use super::output::Output;
use super::table::Table;
use crate::rpc::v1::{GetLimitsRequest, GetLimitsResponse, LimitSet, SetLimitsRequest, SetLimitsResponse};
use setting::{LIMITS, Setting};

/// Show the limits in force: how many restarts, how often, and how long each thing may take.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Limits {
    #[command(subcommand)]
    change: Option<Change>,
}

#[derive(Debug, Subcommand)]
enum Change {
    Set(Set),
}

/// Change limits: all that are named, or none.
///
/// A run keeps the deadlines that it was opened with. Exit codes: 0 changed, 1 error, 2 wrong usage, also where a
/// value breaks a rule.
#[derive(Debug, Args)]
struct Set {
    /// The limits, by the names that `relatch limits` shows, as in margin_ms=30s or attempts=5
    #[arg(value_name = "NAME=VALUE", required = true)]
    settings: Vec<Setting>,
    #[command(flatten)]
    retry: RetryFor,
}

impl Limits {
    pub(super) async fn run(self, addr: Vec<Address>, output: &Output) -> anyhow::Result<Exit> {
        let mut nodes = Nodes::new(addr)?;
        match self.change {
            None => show(&mut nodes, output).await,
            Some(Change::Set(set)) => set.run(&mut nodes, output).await,
        }
    }
}

async fn show(nodes: &mut Nodes, output: &Output) -> anyhow::Result<Exit> {
    let answer = get(Retry::READ, nodes, output).await?;
    let limits = known(answer.limits.as_ref())?;
    output.document("relatch.v1.GetLimitsResponse", &answer, || table(limits, limits))?;
    Ok(Exit::Done)
}

async fn get(retry: Retry, nodes: &mut Nodes, output: &Output) -> anyhow::Result<GetLimitsResponse> {
    let call = async |mut client: client::Limits| client.get_limits(GetLimitsRequest {}).await;
    nodes.call(retry, output, call).await.map_err(CallError::advise)
}

impl Set {
    async fn run(self, nodes: &mut Nodes, output: &Output) -> anyhow::Result<Exit> {
        let limits = setting::all(&self.settings)?;
        let before = get(self.retry.retry(), nodes, output).await?;
        let before = known(before.limits.as_ref())?;
        let request = SetLimitsRequest { limits: Some(limits) };
        let call = async |mut client: client::Limits| client.set_limits(request).await;
        let answered = nodes.call(self.retry.retry(), output, call).await;
        let answer: SetLimitsResponse = answered.map_err(|error| {
            error.advise_change("the limits were changed", "`relatch limits`, or the same command,")
        })?;
        let limits = known(answer.limits.as_ref())?;
        output.document("relatch.v1.SetLimitsResponse", &answer, || changed(before, limits))?;
        Ok(Exit::Done)
    }
}

fn known(limits: Option<&LimitSet>) -> anyhow::Result<&LimitSet> {
    limits.context("the node answered without limits; it is not a relatch node")
}

/// All limits; those that were otherwise before as `OLD → NEW`.
fn table(before: &LimitSet, limits: &LimitSet) -> String {
    let mut table = Table::new(&["NAME", "VALUE"]);
    for limit in LIMITS {
        let Some(value) = limit.value(limits) else { continue };
        let shown = match limit.value(before).filter(|before| *before != value) {
            Some(before) => format!("{} → {}", limit.show(before), limit.show(value)),
            None => limit.show(value),
        };
        table.row([limit.name().to_owned(), shown]);
    }
    table.show()
}

fn changed(before: &LimitSet, limits: &LimitSet) -> String {
    let is_changed = |limit: &&setting::Limit| limit.value(before) != limit.value(limits);
    let names: Vec<&str> = LIMITS.iter().filter(is_changed).map(|limit| limit.name()).collect();
    let told = if names.is_empty() { "nothing: each had that value".to_owned() } else { names.join(", ") };
    format!("changed: {told}\n\n{}", table(before, limits))
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::super::fake::{Fake, Script, ended, not_known, parse};
    use super::super::output::{Format, Printed};
    use super::*;

    async fn limits(fake: &Fake, arguments: &[&str]) -> (anyhow::Result<Exit>, &'static Printed) {
        let (output, printed) = Output::kept(Format::Table);
        let command: Limits = parse(arguments).unwrap();
        (ended(command.run(fake.addr(), &output)).await, printed)
    }

    fn in_force() -> LimitSet {
        LimitSet {
            grace_max_s: Some(300),
            margin_ms: Some(20_000),
            attempts: Some(3),
            ended_runs_ms: Some(7_776_000_000),
            ..LimitSet::default()
        }
    }

    /// These limits are in force.
    fn stand(script: &mut Script, limits: LimitSet) {
        script.get_limits.then(Ok(GetLimitsResponse { limits: Some(limits) }));
    }

    #[tokio::test]
    async fn limits_are_shown_as_people_read_them_and_as_they_are() {
        let fake = Fake::serve(|script| {
            script.get_limits.then(Ok(GetLimitsResponse { limits: Some(in_force()) }));
        });
        let (exit, printed) = limits(&fake.await, &[]).await;
        assert_eq!(exit.unwrap(), Exit::Done);
        let expected = "NAME           VALUE\n\
                        grace_max_s    5m (300)\n\
                        margin_ms      20s (20000)\n\
                        attempts       3\n\
                        ended_runs_ms  2160h (7776000000)\n";
        assert_eq!(printed.stdout(), expected);
    }

    #[tokio::test]
    async fn only_the_limits_that_are_named_are_changed_and_all_are_shown() {
        let fake = Fake::serve(|script| {
            stand(script, LimitSet { margin_ms: Some(30_000), ..in_force() });
            let answer = SetLimitsResponse { limits: Some(in_force()) };
            script.set_limits.then(Err(not_known())).then(Ok(answer));
        });
        let fake = fake.await;
        let (exit, printed) = limits(&fake, &["set", "margin_ms=20s", "attempts=3"]).await;
        assert_eq!(exit.unwrap(), Exit::Done);
        let text = printed.stdout();
        for expected in [
            "changed: margin_ms\n\nNAME",
            "grace_max_s    5m (300)\n",
            "margin_ms      30s (30000) → 20s (20000)\n",
            "attempts       3\n",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
        }
        let named = LimitSet { margin_ms: Some(20_000), attempts: Some(3), ..LimitSet::default() };
        let expected = SetLimitsRequest { limits: Some(named) };
        assert_eq!(fake.script(|script| script.set_limits.asked()), [expected, expected]);
    }

    #[tokio::test]
    async fn a_value_that_breaks_a_rule_is_a_matter_of_usage() {
        let fake = Fake::serve(|script| {
            stand(script, in_force());
            let rule = "limits.margin_ms: at least 15000";
            script.set_limits.then(Err(Status::invalid_argument(rule)));
        });
        let (exit, _) = limits(&fake.await, &["set", "margin_ms=1s"]).await;
        let error = exit.unwrap_err();
        assert!(format!("{error:#}").contains("at least 15000"), "{error:#}");
        assert_eq!(Exit::of_error(&error), Exit::Usage);
    }

    #[tokio::test]
    async fn a_change_without_an_answer_is_told() {
        let fake = Fake::serve(|script| {
            stand(script, in_force());
            script.set_limits.all((0..20).map(|_| Err(not_known())));
        });
        let fake = fake.await;
        let (exit, _) = limits(&fake, &["set", "attempts=3", "--retry-for", "300ms"]).await;
        let error = exit.unwrap_err();
        assert!(format!("{error:#}").contains("not known whether the limits were changed"), "{error:#}");
        assert_eq!(Exit::of_error(&error), Exit::Error);
    }

    #[tokio::test]
    async fn a_limit_that_is_named_twice_is_a_matter_of_usage() {
        let fake = Fake::serve(|_| ()).await;
        let (exit, _) = limits(&fake, &["set", "attempts=3", "attempts=4"]).await;
        assert_eq!(Exit::of_error(&exit.unwrap_err()), Exit::Usage);
        for arguments in [&["set"][..], &["set", "attempts"], &["get"], &["attempts=3"]] {
            assert_eq!(parse::<Limits>(arguments).unwrap_err().exit_code(), 2, "{arguments:?}");
        }
    }
}
