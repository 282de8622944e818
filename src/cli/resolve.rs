//! `relatch resolve`: ends an open run by an operator's word.

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use tonic::Code;
use tonic_types::StatusExt;

use super::address::Address;
use super::client::{CallError, Client, Nodes, RetryFor};
use super::exit::Exit;
use super::id_ref::IdRef;
use super::operator::Operator;
use super::output::Output;
use super::view;
use super::wait::WaitFor;
use crate::rpc::v1::{Assertion, ResolveRunRequest, ResolveRunResponse, Run, RunStatus};

/// End an open run by your word: it is then OPERATOR_RESOLVED, and what it did stays uncertain.
///
/// First the dispatcher is told never to send the restart, and asked what it knows; its word may settle the
/// run instead. If it cannot be asked, nothing is resolved unless you give --accept-late-post.
///
/// Exit codes: 0 resolved. If the dispatcher's word settled the run instead, the codes that the run has in
/// `recover --wait=applied`: 0 applied, 5 not applied, 6 superseded; a note says so. 4 it is still open, 1 error
/// (also: not resolved, since the dispatcher cannot be asked, or the run was settled already), 2 wrong usage.
#[derive(Debug, clap::Args)]
pub(super) struct Resolve {
    /// The run's id, or its first 8 digits or more
    run: IdRef,
    /// Why, for people and for the record
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    operator: Operator,
    /// What you found; it is recorded as your word, and changes no claim
    #[arg(long = "as", value_enum, value_name = "EFFECT")]
    found: Option<Found>,
    /// Resolve also without the dispatcher's word: the restart may still land, so the target stays closed for a
    /// while
    #[arg(long)]
    accept_late_post: bool,
    #[command(flatten)]
    retry: RetryFor,
}

/// What an operator found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Found {
    /// The container was restarted
    Applied,
    /// It was not
    NotApplied,
}

impl Resolve {
    pub(super) async fn run(self, addr: Vec<Address>, output: &Output) -> anyhow::Result<Exit> {
        let request = ResolveRunRequest {
            run_id: self.run.as_str().to_owned(),
            operator: self.operator.name()?,
            reason: self.reason.clone(),
            assertion: match self.found {
                None => Assertion::Unspecified,
                Some(Found::Applied) => Assertion::Applied,
                Some(Found::NotApplied) => Assertion::NotApplied,
            }
            .into(),
            accept_late_post: self.accept_late_post,
        };
        let mut nodes = Nodes::new(addr)?;
        let call = async |mut client: Client| client.resolve_run(request.clone()).await;
        let answered = nodes.call(self.retry.retry(), output, call).await;
        let answer = answered.map_err(|error| self.not_resolved(error))?;
        let run = answer.run.as_ref().context("the node answered without a run; it is not a relatch node")?;
        output.document("relatch.v1.ResolveRunResponse", &answer, || table(&answer, run))?;
        let exit = match run.status() {
            RunStatus::OperatorResolved => Exit::Done,
            _ => Exit::of_run(run, WaitFor::Applied),
        };
        match exit {
            Exit::Uncertain => output.note("the run is not resolved: it is still open"),
            _ if run.status() != RunStatus::OperatorResolved => {
                output.note(format!("the dispatcher's own word settled the run as {}", view::status(run)));
            }
            _ => {}
        }
        Ok(exit)
    }

    fn not_resolved(&self, error: CallError) -> anyhow::Error {
        match &error {
            CallError::Answered(status) if status.code() == Code::FailedPrecondition => {
                let may_land = status.get_details_precondition_failure().is_some_and(|failure| {
                    failure.violations.iter().any(|violation| violation.r#type == "MAY_STILL_LAND")
                });
                let further = if self.accept_late_post || !may_land {
                    ""
                } else {
                    ", and --accept-late-post resolves it also where its dispatcher cannot be asked"
                };
                anyhow!("{error}; `relatch runs show {}` shows where it stands{further}", self.run.as_str())
            }
            _ => error.advise_change("the run was resolved", "the same command"),
        }
    }
}

fn table(answer: &ResolveRunResponse, run: &Run) -> String {
    let repeated = if answer.repeated_answer { " (it was resolved so before)" } else { "" };
    format!("{}{repeated}\n\n{}", view::status(run), view::run(run))
}

#[cfg(test)]
mod tests {
    use tonic::Status;
    use tonic_types::{ErrorDetails, PreconditionViolation, StatusExt as _};

    use super::super::fake::{self, Fake, ended, not_known, run};
    use super::super::output::{Format, Printed};
    use super::*;
    use crate::rpc::v1::Verification;

    fn parse(arguments: &[&str]) -> Result<Resolve, clap::Error> {
        fake::parse(&[&["abababab", "--reason", "host is gone", "--by", "kim"], arguments].concat())
    }

    async fn resolve(fake: &Fake, arguments: &[&str]) -> (anyhow::Result<Exit>, &'static Printed) {
        let (output, printed) = Output::kept(Format::Table);
        (ended(parse(arguments).unwrap().run(fake.addr(), &output)).await, printed)
    }

    fn resolved(status: RunStatus) -> ResolveRunResponse {
        ResolveRunResponse { run: Some(run(status, Verification::Unspecified)), repeated_answer: false }
    }

    #[tokio::test]
    async fn a_resolved_run_ends_with_0_and_a_settled_one_with_its_own_code_and_a_note() {
        for (status, code, note) in [
            (RunStatus::OperatorResolved, 0, ""),
            (RunStatus::Applied, 0, "the dispatcher's own word settled the run as APPLIED\n"),
            (RunStatus::NotApplied, 5, "the dispatcher's own word settled the run as NOT_APPLIED\n"),
            (RunStatus::Superseded, 6, "the dispatcher's own word settled the run as SUPERSEDED\n"),
            (RunStatus::Unresolved, 4, "the run is not resolved: it is still open\n"),
        ] {
            let fake = Fake::serve(|script| {
                script.resolve.then(Ok(resolved(status)));
            });
            let (exit, printed) = resolve(&fake.await, &[]).await;
            assert_eq!((exit.unwrap().code(), printed.stderr().as_str()), (code, note), "{status:?}");
            let word = status.as_str_name().trim_start_matches("RUN_STATUS_");
            assert!(printed.stdout().starts_with(&format!("{word}\n")), "{}", printed.stdout());
        }
    }

    #[tokio::test]
    async fn the_request_says_what_was_typed() {
        for (arguments, assertion, accept_late_post) in [
            (&[][..], Assertion::Unspecified, false),
            (&["--as", "applied"], Assertion::Applied, false),
            (&["--as", "not-applied", "--accept-late-post"], Assertion::NotApplied, true),
        ] {
            let mut answer = resolved(RunStatus::OperatorResolved);
            answer.repeated_answer = true;
            let fake = Fake::serve(|script| {
                script.resolve.then(Ok(answer));
            });
            let fake = fake.await;
            let (_, printed) = resolve(&fake, arguments).await;
            assert!(printed.stdout().contains("(it was resolved so before)"), "{}", printed.stdout());
            let expected = ResolveRunRequest {
                run_id: "abababab".into(),
                operator: "kim".into(),
                reason: "host is gone".into(),
                assertion: assertion.into(),
                accept_late_post,
            };
            assert_eq!(fake.script(|script| script.resolve.asked()), [expected]);
        }
    }

    #[tokio::test]
    async fn without_the_dispatchers_word_it_says_what_would_resolve_the_run() {
        let fake = Fake::serve(|script| {
            let violation =
                PreconditionViolation::new("MAY_STILL_LAND", "run", "its dispatcher has not acknowledged");
            let details = ErrorDetails::with_precondition_failure(vec![violation]);
            script.resolve.then(Err(Status::with_error_details(Code::FailedPrecondition, "", details)));
        });
        let fake = fake.await;
        let (exit, _) = resolve(&fake, &[]).await;
        let error = exit.unwrap_err();
        let text = format!("{error:#}");
        for expected in ["its dispatcher has not acknowledged", "runs show abababab", "--accept-late-post"] {
            assert!(text.contains(expected), "{expected:?} is not in: {text}");
        }
        assert_eq!(Exit::of_error(&error), Exit::Error);
        assert_eq!(fake.script(|script| script.resolve.asked().len()), 1);
    }

    #[tokio::test]
    async fn a_lost_answer_is_asked_for_again_and_its_loss_is_told() {
        let fake = Fake::serve(|script| {
            script.resolve.then(Err(not_known())).then(Ok(resolved(RunStatus::OperatorResolved)));
        });
        let (exit, _) = resolve(&fake.await, &[]).await;
        assert_eq!(exit.unwrap(), Exit::Done);

        let fake = Fake::serve(|script| script.resolve.all((0..20).map(|_| Err(not_known())))).await;
        let (exit, _) = resolve(&fake, &["--retry-for", "300ms"]).await;
        let text = format!("{:#}", exit.unwrap_err());
        assert!(text.contains("not known whether the run was resolved: the same command"), "{text}");
    }

    #[test]
    fn what_breaks_a_rule_is_a_matter_of_usage() {
        for arguments in [&["--as", "uncertain"][..], &["--as"]] {
            assert_eq!(parse(arguments).unwrap_err().exit_code(), 2, "{arguments:?}");
        }
        for arguments in [&["abababab"][..], &["--reason", "x"], &["ab", "--reason", "x"]] {
            assert_eq!(fake::parse::<Resolve>(arguments).unwrap_err().exit_code(), 2, "{arguments:?}");
        }
    }
}
