//! `relatch unhold`: lifts holds.

use anyhow::bail;
use tonic::Code;

use super::address::Address;
use super::client::{self, CallError, Nodes, Retry, RetryFor};
use super::exit::Exit;
use super::holds;
use super::id_ref::IdRef;
use super::operator::Operator;
use super::output::Output;
use super::scope::{GROUP, ScopeArgs};
use crate::rpc::v1::{Hold, LiftHoldRequest, LiftHoldResponse};

/// Lift holds: one by its id, or every operator's hold of exactly this target, host or project, or of everything.
///
/// Exit codes: 0 lifted, 1 error (also: no such hold stands), 2 wrong usage.
#[derive(Debug, clap::Args)]
pub(super) struct Unhold {
    #[command(flatten)]
    scope: ScopeArgs,
    /// One hold, by its id or its first 8 digits or more
    #[arg(long, value_name = "HOLD", group = GROUP)]
    id: Option<IdRef>,
    #[command(flatten)]
    operator: Operator,
    #[command(flatten)]
    retry: RetryFor,
}

impl Unhold {
    pub(super) async fn run(self, addr: Vec<Address>, output: &Output) -> anyhow::Result<Exit> {
        let operator = self.operator.name()?;
        let mut nodes = Nodes::new(addr)?;
        let hold_id = match &self.id {
            Some(id) => whole_id(id, &mut nodes, output).await?,
            None => String::new(),
        };
        let request = LiftHoldRequest { hold_id, scope: self.scope.scope(), operator };
        let lifted = lift(&request, self.retry.retry(), &mut nodes, output).await;
        let lifted = lifted.map_err(|error| error.advise_change("the hold was lifted", "`relatch holds`"))?;
        let answer = match lifted {
            Lifted::Holds(answer) => answer,
            Lifted::Before => {
                output.note("no such hold stands any more: an earlier try, whose answer was lost, lifted it");
                LiftHoldResponse::default()
            }
        };
        output.document("relatch.v1.LiftHoldResponse", &answer, || table(&answer.lifted))?;
        Ok(Exit::Done)
    }
}

/// What a lift came to.
pub(super) enum Lifted {
    /// The holds that it lifted.
    Holds(LiftHoldResponse),
    /// None stands, and an earlier try of the same lift had no answer.
    Before,
}

/// Lifts the holds that are meant, again for as long as `retry` says.
///
/// # Errors
///
/// `NOT_FOUND` if none stood.
pub(super) async fn lift(
    request: &LiftHoldRequest,
    retry: Retry,
    nodes: &mut Nodes,
    output: &Output,
) -> Result<Lifted, CallError> {
    let call = async |mut client: client::Holds| client.lift_hold(request.clone()).await;
    match nodes.call(retry, output, call).await {
        Ok(answer) => Ok(Lifted::Holds(answer)),
        Err(CallError::AnsweredLate(status)) if status.code() == Code::NotFound => Ok(Lifted::Before),
        Err(error) => Err(error),
    }
}

/// The id of the one hold that begins so, among those that stand.
async fn whole_id(id: &IdRef, nodes: &mut Nodes, output: &Output) -> anyhow::Result<String> {
    if id.is_whole() {
        return Ok(id.as_str().to_owned());
    }
    let standing = holds::list(nodes, output).await?.holds;
    let mut begin_so = standing.into_iter().filter(|hold| hold.hold_id.starts_with(id.as_str()));
    match (begin_so.next(), begin_so.next()) {
        (Some(hold), None) => Ok(hold.hold_id),
        (None, _) => bail!("no hold stands whose id begins with {}: see `relatch holds`", id.as_str()),
        (Some(_), Some(_)) => {
            bail!("several holds stand whose ids begin with {}: write more digits", id.as_str())
        }
    }
}

fn table(lifted: &[Hold]) -> String {
    let lines: Vec<String> = lifted.iter().map(holds::detail).collect();
    format!("LIFTED\n\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::super::fake::{self, Fake, Script, ended, not_admitting, not_known};
    use super::super::output::{Format, Printed};
    use super::*;
    use crate::rpc::v1::hold_scope::Scope;
    use crate::rpc::v1::{HoldScope, ListHoldsResponse};

    async fn unhold(fake: &Fake, arguments: &[&str]) -> (anyhow::Result<Exit>, &'static Printed) {
        let (output, printed) = Output::kept(Format::Table);
        let command: Unhold = fake::parse(&[&["--by", "kim"], arguments].concat()).unwrap();
        (ended(command.run(fake.addr(), &output)).await, printed)
    }

    fn hold(digits: &str) -> Hold {
        Hold { hold_id: digits.repeat(16), ..Hold::default() }
    }

    fn asked(fake: &Fake) -> Vec<LiftHoldRequest> {
        fake.script(|script| script.lift.asked())
    }

    fn lifts(script: &mut Script) {
        script.lift.then(Ok(LiftHoldResponse { lifted: vec![hold("cd")] }));
    }

    #[tokio::test]
    async fn what_is_named_is_lifted() {
        for (arguments, scope) in [
            (&["local/web"][..], Scope::Target("local/web".into())),
            (&["--host", "local"], Scope::Host("local".into())),
            (&["--project", "local/shop"], Scope::Project("local/shop".into())),
            (&["--everything"], Scope::Everything(true)),
        ] {
            let fake = Fake::serve(lifts).await;
            let (exit, printed) = unhold(&fake, arguments).await;
            assert_eq!(exit.unwrap(), Exit::Done);
            assert!(printed.stdout().starts_with("LIFTED\n\nhold "), "{}", printed.stdout());
            let scope = Some(HoldScope { scope: Some(scope) });
            let expected = LiftHoldRequest { hold_id: String::new(), scope, operator: "kim".into() };
            assert_eq!(asked(&fake), [expected]);
        }
    }

    #[tokio::test]
    async fn a_hold_is_found_by_the_beginning_of_its_id() {
        let id = "cd".repeat(16);
        for (standing, typed, found) in [
            (vec![], &id[..], true),
            (vec![hold("ab"), hold("cd")], &id[..8], true),
            (vec![hold("ab")], &id[..8], false),
            (vec![hold("cd"), hold("cd")], &id[..31], false),
        ] {
            let fake = Fake::serve(|script| {
                script.list_holds.then(Ok(ListHoldsResponse { holds: standing }));
                lifts(script);
            });
            let fake = fake.await;
            let (exit, _) = unhold(&fake, &["--id", typed]).await;
            let ids: Vec<String> = asked(&fake).into_iter().map(|request| request.hold_id).collect();
            if found {
                assert_eq!((exit.unwrap(), ids), (Exit::Done, vec![id.clone()]));
            } else {
                assert_eq!(Exit::of_error(&exit.unwrap_err()), Exit::Error);
                assert!(ids.is_empty(), "{ids:?}");
            }
        }
    }

    #[tokio::test]
    async fn a_hold_that_does_not_stand_is_an_error_unless_a_lost_try_lifted_it() {
        let none = || Err(Status::not_found("no such hold stands"));
        let fake = Fake::serve(|script| {
            script.lift.then(Err(not_admitting())).then(none());
        });
        let (exit, _) = unhold(&fake.await, &["local/web"]).await;
        assert_eq!(Exit::of_error(&exit.unwrap_err()), Exit::Error);

        let fake = Fake::serve(|script| {
            script.lift.then(Err(not_known())).then(none());
        });
        let (exit, printed) = unhold(&fake.await, &["local/web"]).await;
        assert_eq!(exit.unwrap(), Exit::Done);
        assert!(printed.stderr().contains("an earlier try"), "{}", printed.stderr());
    }

    #[tokio::test]
    async fn a_lift_without_an_answer_is_told() {
        let fake = Fake::serve(|script| script.lift.all((0..20).map(|_| Err(not_known())))).await;
        let (exit, _) = unhold(&fake, &["local/web", "--retry-for", "300ms"]).await;
        let error = exit.unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("not known whether the hold was lifted: `relatch holds`"), "{text}");
        assert_eq!(Exit::of_error(&error), Exit::Error);
    }

    #[test]
    fn one_thing_is_lifted() {
        let id = "cd".repeat(16);
        for arguments in
            [&[][..], &["local/web", "--id", &id], &["--id", &id, "--everything"], &["--id", "cd"]]
        {
            assert_eq!(fake::parse::<Unhold>(arguments).unwrap_err().exit_code(), 2, "{arguments:?}");
        }
    }
}
