//! `relatch approve-start`: approves one start of a container that a restart left down.

use anyhow::{Context, anyhow};
use tonic::Code;

use super::address::Address;
use super::client::{CallError, Client, Nodes, RetryFor};
use super::exit::Exit;
use super::id_ref::{IdRef, parse_whole};
use super::operator::Operator;
use super::output::Output;
use super::text::word;
use super::view;
use super::wait::{Wait, wait};
use crate::env::{OsRandomness, hex_id};
use crate::rpc::v1::{ApproveStartRequest, ApproveStartResponse, Decision};

/// Approve one start of a container that a restart left down.
///
/// A start discards nothing: a container that runs already stays as it is. It has an id, and is sent again
/// under the same id while no node answers: it is decided once.
///
/// Exit codes: 0 approved, 3 refused; with --wait, those of `recover --wait`. 1 is an error, 2 wrong usage.
#[derive(Debug, clap::Args)]
pub(super) struct ApproveStart {
    /// The run's id, or its first 8 digits or more
    run: IdRef,
    /// Why, for people and for the record
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    operator: Operator,
    /// The id of this start; the same id means the same start. A new one is made if left out
    #[arg(long, value_name = "ID", value_parser = parse_whole)]
    start_id: Option<String>,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    retry: RetryFor,
}

impl ApproveStart {
    pub(super) async fn run(self, addr: Vec<Address>, output: &Output) -> anyhow::Result<Exit> {
        let request = ApproveStartRequest {
            run_id: self.run.as_str().to_owned(),
            operator: self.operator.name()?,
            reason: self.reason.clone(),
            start_id: match &self.start_id {
                Some(id) => id.clone(),
                None => hex_id(&OsRandomness)?,
            },
        };
        let mut nodes = Nodes::new(addr)?;
        let call = async |mut client: Client| client.approve_start(request.clone()).await;
        let answered = nodes.call(self.retry.retry(), output, call).await;
        let mut answer = answered.map_err(|error| not_approved(error, &request))?;
        let run = answer.run.take().context("the node answered without a run; it is not a relatch node")?;
        let decided = Exit::of_decision(answer.decision())?;
        let (run, exit) = match self.wait.wait.filter(|_| decided == Exit::Done) {
            None => (run, decided),
            Some(wait_for) => {
                let run = wait(&mut nodes, output, run, wait_for, self.wait.wait_timeout).await?;
                let exit = Exit::of_run(&run, wait_for);
                (run, exit)
            }
        };
        answer.run = Some(run);
        output.document("relatch.v1.ApproveStartResponse", &answer, || table(&answer))?;
        Ok(exit)
    }
}

fn not_approved(error: CallError, request: &ApproveStartRequest) -> anyhow::Error {
    let ApproveStartRequest { run_id, start_id, .. } = request;
    match &error {
        CallError::Answered(status) if status.code() == Code::FailedPrecondition => {
            anyhow!("{error}; `relatch runs show {run_id}` shows where the run stands")
        }
        _ => {
            let again = format!("the same command with --start-id {start_id}");
            error.advise_change("the start was approved", &again)
        }
    }
}

fn table(answer: &ApproveStartResponse) -> String {
    let decision = match answer.decision() {
        Decision::Opened => "APPROVED",
        other => word(other.as_str_name(), "DECISION_"),
    };
    let repeated = if answer.repeated_answer { " (this start was answered before)" } else { "" };
    let run = answer.run.as_ref().map(view::run).unwrap_or_default();
    let refused = view::reasons(&answer.reasons);
    let refused = if refused.is_empty() { refused } else { format!("{}\n\n", refused.trim()) };
    format!("{decision}{repeated}\n\n{refused}{run}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tonic::Status;

    use super::super::fake::{self, Fake, change, ended, not_admitting, not_known, run};
    use super::super::output::{Format, Printed};
    use super::super::wait::WaitFor;
    use super::*;
    use crate::rpc::v1::{Reason, RunStatus, Verification};

    fn parse(arguments: &[&str]) -> Result<ApproveStart, clap::Error> {
        fake::parse(&[&["abababab", "--reason", "it is down", "--by", "kim"], arguments].concat())
    }

    async fn approve(fake: &Fake, arguments: &[&str]) -> (anyhow::Result<Exit>, &'static Printed) {
        let (output, printed) = Output::kept(Format::Table);
        (ended(parse(arguments).unwrap().run(fake.addr(), &output)).await, printed)
    }

    fn answer(decision: Decision) -> ApproveStartResponse {
        ApproveStartResponse {
            decision: decision.into(),
            run: Some(run(RunStatus::Unresolved, Verification::Unspecified)),
            ..ApproveStartResponse::default()
        }
    }

    #[tokio::test]
    async fn a_start_without_an_answer_is_sent_again_under_the_same_id() {
        let fake = Fake::serve(|script| {
            script
                .approve
                .then(Err(not_admitting()))
                .then(Err(not_known()))
                .then(Ok(answer(Decision::Opened)));
        });
        let fake = fake.await;
        let (exit, printed) = approve(&fake, &[]).await;
        assert_eq!(exit.unwrap(), Exit::Done);
        assert!(printed.stdout().starts_with("APPROVED\n\nrun "), "{}", printed.stdout());
        let asked = fake.script(|script| script.approve.asked());
        assert_eq!(asked.len(), 3);
        assert!(asked[0].start_id.len() == 32 && asked.iter().all(|one| *one == asked[0]), "{asked:?}");
        let ApproveStartRequest { run_id, operator, reason, .. } = &asked[0];
        assert_eq!([run_id, operator, reason], ["abababab", "kim", "it is down"]);
    }

    #[tokio::test]
    async fn a_refusal_says_why_and_is_not_waited_for() {
        let reason = Reason { code: "held".into(), detail: "by kim".into(), ..Reason::default() };
        let fake = Fake::serve(|script| {
            let refused = ApproveStartResponse { reasons: vec![reason], ..answer(Decision::Refused) };
            script.approve.then(Ok(refused));
        });
        let (exit, printed) = approve(&fake.await, &["--wait"]).await;
        assert_eq!(exit.unwrap().code(), 3);
        assert!(printed.stdout().starts_with("REFUSED\n\nheld: by kim\n  since "), "{}", printed.stdout());
    }

    #[tokio::test]
    async fn a_wait_ends_with_the_codes_of_recover() {
        use RunStatus as S;
        use Verification as V;
        for (wait, status, verification, code) in [
            ("--wait", S::Applied, V::Recovered, 0),
            ("--wait", S::Applied, V::NotRecovered, 7),
            ("--wait=applied", S::Applied, V::Pending, 0),
            ("--wait", S::Superseded, V::Unspecified, 6),
            ("--wait", S::NotApplied, V::Unspecified, 5),
            ("--wait", S::OperatorResolved, V::Unspecified, 8),
            ("--wait", S::Unresolved, V::Unspecified, 4),
        ] {
            let fake = Fake::serve(|script| {
                script.approve.then(Ok(answer(Decision::Opened)));
                script.watch.then(Ok(vec![change(5, run(status, verification))]));
            });
            let (exit, _) = approve(&fake.await, &[wait, "--wait-timeout", "500ms"]).await;
            assert_eq!(exit.unwrap().code(), code, "{wait} {status:?} {verification:?}");
        }
    }

    #[tokio::test]
    async fn an_unknown_decision_is_told_with_the_id_that_finds_out() {
        let id = "cd".repeat(16);
        let arguments = ["--start-id", &id, "--retry-for", "300ms"];
        for (error, said) in [
            (
                not_known(),
                format!("not known whether the start was approved: the same command with --start-id {id}"),
            ),
            (not_admitting(), "nothing was decided".to_owned()),
        ] {
            let fake = Fake::serve(|script| script.approve.all(vec![Err(error); 20])).await;
            let (exit, _) = approve(&fake, &arguments).await;
            let error = exit.unwrap_err();
            assert!(format!("{error:#}").contains(&said), "{error:#}");
            assert_eq!(Exit::of_error(&error), Exit::Error);
        }
    }

    #[tokio::test]
    async fn a_settled_run_is_told_with_where_to_look() {
        let fake = Fake::serve(|script| {
            script.approve.then(Err(Status::failed_precondition("the run is settled")));
        });
        let fake = fake.await;
        let (exit, _) = approve(&fake, &[]).await;
        assert!(format!("{:#}", exit.unwrap_err()).contains("relatch runs show abababab"));
        assert_eq!(fake.script(|script| script.approve.asked().len()), 1);
    }

    #[test]
    fn what_breaks_a_rule_is_a_matter_of_usage() {
        let command = parse(&["--wait=applied", "--wait-timeout", "5s"]).unwrap();
        assert_eq!(command.wait.wait, Some(WaitFor::Applied));
        assert_eq!(command.wait.wait_timeout, Some(Duration::from_secs(5)));
        for arguments in [&["--start-id", "short"][..], &["--wait=soon"], &["--dry-run"]] {
            assert_eq!(parse(arguments).unwrap_err().exit_code(), 2, "{arguments:?}");
        }
        assert_eq!(fake::parse::<ApproveStart>(&["abababab"]).unwrap_err().exit_code(), 2);
    }
}
