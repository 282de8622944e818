//! `relatch recover`: asks for one restart of one container.

use anyhow::{Context, bail};

use super::address::Address;
use super::client::{Client, Nodes, RetryFor};
use super::duration;
use super::exit::Exit;
use super::operator::Operator;
use super::output::Output;
use super::text::{plain, word};
use super::view;
use super::wait::{Wait, wait};
use crate::docker::parse_instant;
use crate::env::{OsRandomness, hex_id};
use crate::model::{ContainerId, EngineInstant, RequestId, Target};
use crate::rpc::v1;

/// Ask for one restart of one container.
///
/// The request has an id, and is sent again under the same id while no node answers: it is decided once.
///
/// Exit codes: 0 accepted (or would be, in a dry run), or with --wait: recovered (or applied, where nothing can verify it or
/// --wait=applied); 3 refused; and with --wait: 4 still uncertain when the wait ended, 5 not applied,
/// 6 superseded, 7 applied but not recovered (or not yet), 8 resolved by an operator. 1 is an error, 2 wrong
/// usage.
#[derive(Debug, clap::Args)]
pub(super) struct Recover {
    /// host/container-name, as in local/web, or host/project/service[/N] for a Compose container
    #[arg(value_parser = Target::parse)]
    target: Target,
    /// Why, for people and for the record
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    operator: Operator,
    /// How long the container may take to stop by itself, in whole seconds, as in 10s [default: its label
    /// relatch.grace, else its own stop timeout, else 10s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration::parse_whole_seconds)]
    grace: Option<u32>,
    /// The id of this request; the same id means the same request. A new one is made if left out
    #[arg(long, value_name = "ID")]
    request_id: Option<RequestId>,
    /// The incarnation that is meant; another one is refused
    #[arg(long, value_name = "CONTAINER_ID@STARTED_AT", value_parser = parse_expect)]
    expect: Option<Expect>,
    /// Only if the container's health check says unhealthy, now and right before the restart is sent
    #[arg(long)]
    if_unhealthy: bool,
    /// Say how it would be decided now, and commit nothing: nothing is restarted
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    retry: RetryFor,
}

/// One life of one container, as the caller means it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expect {
    pub(super) container_id: ContainerId,
    pub(super) started_at: EngineInstant,
}

pub(super) fn parse_expect(text: &str) -> Result<Expect, String> {
    let shape = "write it as CONTAINER_ID@STARTED_AT, both as `docker inspect` shows them";
    let (container_id, started_at) = text.split_once('@').ok_or(shape)?;
    let container_id = ContainerId::new(container_id).map_err(|error| format!("{error}; {shape}"))?;
    let started_at = parse_instant(started_at).map_err(|error| format!("{error}; {shape}"))?;
    Ok(Expect { container_id, started_at })
}

impl Recover {
    pub(super) async fn run(self, addr: Vec<Address>, output: &Output) -> anyhow::Result<Exit> {
        let mut nodes = Nodes::new(addr)?;
        let (answer, exit) = self.ask(&mut nodes, output).await?;
        output.document("relatch.v1.RequestRecoveryResponse", &answer, || table(&answer))?;
        Ok(exit)
    }

    /// Asks, and waits if that was wanted; the answer then has the run as it was when the wait ended.
    pub(super) async fn ask(
        &self,
        nodes: &mut Nodes,
        output: &Output,
    ) -> anyhow::Result<(v1::RequestRecoveryResponse, Exit)> {
        let id = match &self.request_id {
            Some(id) => id.clone(),
            None => mint_request_id()?,
        };
        let request = self.request(&id);
        let call = async |mut client: Client| client.request_recovery(request.clone()).await;
        let answered = nodes.call(self.retry.retry(), output, call).await;
        let mut answer = answered.map_err(|error| {
            if self.dry_run {
                return error.advise();
            }
            let again = format!("the same command with --request-id {id}");
            error.advise_change("the request was decided", &again)
        })?;
        let run = answer.run.take().context("the node answered without a run; it is not a relatch node")?;
        if self.dry_run && !answer.dry_run {
            bail!(
                "the node does not know --dry-run, and decided the request: follow it with `relatch runs show {}`",
                plain(&run.run_id)
            );
        }
        let decided = Exit::of_decision(answer.decision())?;
        let (run, exit) = match self.wait.wait.filter(|_| decided == Exit::Done) {
            None => (run, decided),
            Some(wait_for) => {
                let run = wait(nodes, output, run, wait_for, self.wait.wait_timeout).await?;
                let exit = Exit::of_run(&run, wait_for);
                (run, exit)
            }
        };
        answer.run = Some(run);
        Ok((answer, exit))
    }

    fn request(&self, id: &RequestId) -> v1::RequestRecoveryRequest {
        let duration = |seconds: u32| prost_types::Duration { seconds: seconds.into(), nanos: 0 };
        let expect = self.expect.as_ref().map(|expect| v1::Incarnation {
            engine_id: String::new(),
            container_id: expect.container_id.to_string(),
            started_at: Some(prost_types::Timestamp {
                seconds: expect.started_at.unix_s(),
                nanos: i32::try_from(expect.started_at.nanos()).unwrap_or(0),
            }),
        });
        v1::RequestRecoveryRequest {
            target: self.target.to_string(),
            reason: self.reason.clone(),
            request_id: id.to_string(),
            grace: self.grace.map(duration),
            expect,
            dry_run: self.dry_run,
            if_unhealthy: self.if_unhealthy,
            requested_by: self.operator.name_if_known().unwrap_or_default(),
        }
    }
}

fn mint_request_id() -> anyhow::Result<RequestId> {
    Ok(RequestId::new(hex_id(&OsRandomness)?)?)
}

fn table(answer: &v1::RequestRecoveryResponse) -> String {
    let decision = word(answer.decision().as_str_name(), "DECISION_");
    let repeated = if answer.repeated_answer { " (this request was answered before)" } else { "" };
    let dry_run = if answer.dry_run { " (a dry run: nothing was committed)" } else { "" };
    let joins = match answer.decision() {
        v1::Decision::Attached => ": it joins the run below, and causes no restart of its own",
        _ => "",
    };
    let mut text = format!("{decision}{joins}{repeated}{dry_run}\n\n");
    if let Some(run) = &answer.run {
        // Nothing was begun or refused that there would be a run of.
        let is_proposal = answer.dry_run && answer.decision() != v1::Decision::Attached;
        text += &if is_proposal { view::proposal(run) } else { view::run(run) };
    }
    for line in &answer.ignored {
        text += &format!("\nignored: {}\n", plain(line));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::fake::{self, Fake, change, ended, nobody, not_admitting, not_known, run};
    use super::super::output::Format;
    use super::*;
    use crate::rpc::v1::{Decision, RunStatus, Verification};

    fn parse(arguments: &[&str]) -> Result<Recover, clap::Error> {
        fake::parse(&[&["local/web", "--reason", "stuck"], arguments].concat())
    }

    /// `relatch recover local/web --reason stuck …` at these nodes.
    async fn recover(
        addr: Vec<Address>,
        arguments: &[&str],
    ) -> anyhow::Result<(v1::RequestRecoveryResponse, Exit)> {
        let (output, _) = Output::kept(Format::Json);
        let mut nodes = Nodes::new(addr).unwrap();
        ended(parse(arguments).unwrap().ask(&mut nodes, &output)).await
    }

    fn open() -> v1::Run {
        run(RunStatus::Interlocked, Verification::Unspecified)
    }

    fn answer(decision: Decision, run: v1::Run) -> v1::RequestRecoveryResponse {
        v1::RequestRecoveryResponse { decision: decision.into(), run: Some(run), ..Default::default() }
    }

    fn ids(fake: &Fake) -> Vec<String> {
        fake.script(|script| script.request.asked().into_iter().map(|request| request.request_id).collect())
    }

    fn afters(fake: &Fake) -> Vec<u64> {
        fake.script(|script| script.watch.asked().iter().map(|request| request.after_index).collect())
    }

    #[test]
    fn what_breaks_a_rule_is_a_matter_of_usage() {
        let id = "ab".repeat(32);
        for arguments in [
            &["--grace", "1500ms"][..],
            &["--grace", "-1s"],
            &["--request-id", "with space"],
            &["--expect", &id],
            &["--expect", &format!("{}@2024-05-01T10:20:30Z", &id[..12])],
            &["--expect", &format!("{id}@yesterday")],
            &["--retry-for", "soon"],
            &["--dry-run", "--wait"],
            &["--dry-run", "--wait=applied"],
        ] {
            assert_eq!(parse(arguments).unwrap_err().exit_code(), 2, "{arguments:?}");
        }
    }

    #[test]
    fn the_request_says_what_was_typed() {
        let id = "ab".repeat(32);
        let expect = format!("{id}@2024-05-01T10:20:30.5Z");
        let recover = parse(&["--grace", "10s", "--expect", &expect]).unwrap();
        let request = recover.request(&mint_request_id().unwrap());
        assert_eq!(request.request_id.len(), 32);
        assert_eq!(request.grace, Some(prost_types::Duration { seconds: 10, nanos: 0 }));
        assert!(!request.dry_run && !request.if_unhealthy);
        let recover = parse(&["--by", "kim"]).unwrap();
        assert_eq!(recover.request(&mint_request_id().unwrap()).requested_by, "kim");
        let recover = parse(&["--if-unhealthy"]).unwrap();
        assert!(recover.request(&mint_request_id().unwrap()).if_unhealthy);
        let expect = request.expect.unwrap();
        assert_eq!(expect.container_id, id);
        assert_eq!(
            expect.started_at.unwrap(),
            prost_types::Timestamp { seconds: 1_714_558_830, nanos: 500_000_000 }
        );
    }

    #[tokio::test]
    async fn a_request_without_an_answer_is_sent_again_under_the_same_id() {
        let fake = Fake::serve(|script| {
            let opened = Ok(answer(Decision::Opened, open()));
            script.request.then(Err(not_admitting())).then(Err(not_known())).then(opened);
        });
        let fake = fake.await;
        let (_, exit) = recover(fake.addr(), &[]).await.unwrap();
        assert_eq!(exit, Exit::Done);
        let ids = ids(&fake);
        assert_eq!(ids.len(), 3);
        assert!(ids[0].len() == 32 && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }

    #[tokio::test]
    async fn an_error_that_stands_is_not_asked_for_twice() {
        let fake = Fake::serve(|script| {
            script.request.then(Err(tonic::Status::invalid_argument("target: no host of that name")));
        });
        let fake = fake.await;
        let error = recover(fake.addr(), &[]).await.unwrap_err();
        assert_eq!(Exit::of_error(&error), Exit::Usage);
        assert_eq!(ids(&fake).len(), 1);
    }

    #[tokio::test]
    async fn a_full_share_and_an_unmet_condition_are_errors_that_are_not_asked_for_twice() {
        for error in
            [tonic::Status::resource_exhausted("full"), tonic::Status::failed_precondition("not yet")]
        {
            let fake = Fake::serve(|script| {
                script.request.then(Err(error));
            });
            let fake = fake.await;
            let error = recover(fake.addr(), &[]).await.unwrap_err();
            assert_eq!((Exit::of_error(&error), ids(&fake).len()), (Exit::Error, 1), "{error:#}");
        }
    }

    #[tokio::test]
    async fn an_unknown_decision_is_told_with_the_id_that_finds_out() {
        let arguments = ["--request-id", "r-7", "--retry-for", "300ms"];
        for answers in [
            vec![not_known(); 20],
            [vec![not_known()], vec![not_admitting(); 20]].concat(),
            vec![not_known(), tonic::Status::internal("the disk is gone")],
        ] {
            let fake = Fake::serve(|script| script.request.all(answers.into_iter().map(Err))).await;
            let error = recover(fake.addr(), &arguments).await.unwrap_err();
            let text = format!("{error:#}");
            assert!(text.contains("not known whether") && text.contains("--request-id r-7"), "{text}");
            assert_eq!(Exit::of_error(&error), Exit::Error);
        }
    }

    #[tokio::test]
    async fn where_no_node_can_decide_nothing_was_decided() {
        let fake = Fake::serve(|script| script.request.all((0..20).map(|_| Err(not_admitting())))).await;
        let addr = [vec![nobody()], fake.addr()].concat();
        let error = recover(addr, &["--retry-for", "300ms"]).await.unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("nothing was decided") && !text.contains("not known whether"), "{text}");
        assert_eq!(Exit::of_error(&error), Exit::Error);
    }

    #[tokio::test]
    async fn the_next_node_is_asked_where_one_is_down() {
        let fake = Fake::serve(|script| {
            script.request.then(Ok(answer(Decision::Attached, open())));
        });
        let fake = fake.await;
        let addr = [vec![nobody()], fake.addr()].concat();
        let (answer, exit) = recover(addr, &[]).await.unwrap();
        assert_eq!((answer.decision(), exit), (Decision::Attached, Exit::Done));
        assert_eq!(ids(&fake).len(), 1);
    }

    #[tokio::test]
    async fn a_refusal_is_not_waited_for() {
        let refused = run(RunStatus::Refused, Verification::Unspecified);
        let fake = Fake::serve(|script| {
            script.request.then(Ok(answer(Decision::Refused, refused)));
        });
        let fake = fake.await;
        let (_, exit) = recover(fake.addr(), &["--wait"]).await.unwrap();
        assert_eq!((exit, afters(&fake).len()), (Exit::Refused, 0));
    }

    #[tokio::test]
    async fn a_wait_goes_on_after_a_broken_stream_where_it_was() {
        let fake = Fake::serve(|script| {
            script.request.then(Ok(answer(Decision::Opened, open())));
            let unresolved = run(RunStatus::Unresolved, Verification::Unspecified);
            let shut_down = Err(tonic::Status::unavailable("this node is shutting down"));
            script
                .watch
                .then(Ok(vec![change(5, unresolved), shut_down]))
                .then(Ok(vec![change(7, run(RunStatus::Applied, Verification::Pending))]))
                .then(Ok(vec![change(9, run(RunStatus::Applied, Verification::Recovered))]));
        });
        let fake = fake.await;
        let (answer, exit) = recover(fake.addr(), &["--wait"]).await.unwrap();
        assert_eq!(exit, Exit::Done);
        assert_eq!(answer.run.unwrap().verification(), Verification::Recovered);
        assert_eq!(afters(&fake), [0, 5, 7]);
    }

    #[tokio::test]
    async fn a_wait_that_is_over_tells_what_is_still_uncertain() {
        let fake = Fake::serve(|script| {
            script.request.then(Ok(answer(Decision::Opened, open())));
            script.watch.then(Ok(vec![change(5, run(RunStatus::Unresolved, Verification::Unspecified))]));
        });
        let fake = fake.await;
        let (answer, exit) = recover(fake.addr(), &["--wait", "--wait-timeout", "500ms"]).await.unwrap();
        assert_eq!(exit, Exit::Uncertain);
        assert_eq!(answer.run.unwrap().status(), RunStatus::Unresolved);
    }

    #[tokio::test]
    async fn a_node_that_answers_nonsense_is_not_believed() {
        for (nonsense, said) in [
            (v1::RequestRecoveryResponse::default(), "without a run"),
            (answer(Decision::Unspecified, open()), "without a decision"),
        ] {
            let fake = Fake::serve(|script| {
                script.request.then(Ok(nonsense));
            });
            let error = recover(fake.await.addr(), &[]).await.unwrap_err();
            assert!(error.to_string().contains(said), "{error:#}");
            assert_eq!(Exit::of_error(&error), Exit::Error);
        }
    }

    #[tokio::test]
    async fn a_dry_run_says_that_nothing_was_committed() {
        for (decision, exit) in [
            (Decision::Opened, Exit::Done),
            (Decision::Attached, Exit::Done),
            (Decision::Refused, Exit::Refused),
        ] {
            let mut would_be = open();
            if decision == Decision::Refused {
                let held =
                    v1::Reason { code: "held".into(), detail: "by kim".into(), ..v1::Reason::default() };
                would_be.reasons = vec![held];
            }
            let mut answer = answer(decision, would_be);
            answer.dry_run = true;
            let fake = Fake::serve(|script| {
                script.request.then(Ok(answer));
            });
            let fake = fake.await;
            let (output, printed) = Output::kept(Format::Table);
            let command = parse(&["--dry-run"]).unwrap();
            assert_eq!(ended(command.run(fake.addr(), &output)).await.unwrap(), exit);
            let text = printed.stdout();
            assert!(text.contains("(a dry run: nothing was committed)\n"), "{text}");
            // The run that it would attach to is there; the one that it would open is not, nor one that is refused.
            let attached = decision == Decision::Attached;
            assert_eq!(text.contains("INTERLOCKED"), attached, "{text}");
            assert_eq!(text.starts_with("ATTACHED: it joins the run below, and causes no restart"), attached);
            assert_eq!(text.contains("\nheld: by kim\n"), decision == Decision::Refused, "{text}");
            assert!(fake.script(|script| script.request.asked()[0].dry_run));
        }
    }

    #[tokio::test]
    async fn a_dry_run_without_an_answer_leaves_nothing_open() {
        let fake = Fake::serve(|script| script.request.all((0..20).map(|_| Err(not_known())))).await;
        let error = recover(fake.addr(), &["--dry-run", "--retry-for", "300ms"]).await.unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("try again") && !text.contains("--request-id"), "{text}");
    }

    #[tokio::test]
    async fn a_node_that_decides_a_dry_run_is_told_of_loudly() {
        let fake = Fake::serve(|script| {
            script.request.then(Ok(answer(Decision::Opened, open())));
        });
        let error = recover(fake.await.addr(), &["--dry-run"]).await.unwrap_err();
        assert!(error.to_string().contains(&format!("relatch runs show {}", open().run_id)), "{error:#}");
        assert_eq!(Exit::of_error(&error), Exit::Error);
    }
}
