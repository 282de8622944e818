//! `relatch recover`: asks for one restart of one container.

use std::time::Duration;

use anyhow::Context;

use super::address::Address;
use super::client::{CallError, Client, Nodes, Retry};
use super::duration;
use super::exit::Exit;
use super::output::Output;
use super::text::word;
use super::view;
use super::wait::{WaitFor, wait};
use crate::docker::parse_instant;
use crate::env::{OsRandomness, hex_id};
use crate::model::{ContainerId, EngineInstant, RequestId, Target};
use crate::rpc::v1;

/// Ask for one restart of one container.
///
/// The request has an id, and is sent again under the same id while no node answers: it is decided once.
///
/// Exit codes: 0 accepted, or with --wait: recovered (or applied, where nothing can verify it or
/// --wait=applied); 3 refused; and with --wait: 4 still uncertain when the wait ended, 5 not applied,
/// 6 superseded, 7 applied but not recovered (or not yet), 8 resolved by an operator. 1 is an error, 2 wrong
/// usage.
#[derive(Debug, clap::Args)]
pub(super) struct Recover {
    /// host/container-name, or host/project/service[/N] for a Compose container
    #[arg(value_parser = Target::parse)]
    target: Target,
    /// Why, for people and for the record
    #[arg(long, value_name = "TEXT")]
    reason: String,
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
    /// Wait until the effect is known (applied), or whether the container became well (recovered)
    #[arg(
        long,
        value_enum,
        value_name = "UNTIL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "recovered"
    )]
    wait: Option<WaitFor>,
    /// How long to wait
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration::parse)]
    wait_timeout: Duration,
    /// How long the request is sent again while no node answers
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration::parse)]
    retry_for: Duration,
}

/// One life of one container, as the caller means it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expect {
    container_id: ContainerId,
    started_at: EngineInstant,
}

fn parse_expect(text: &str) -> Result<Expect, String> {
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
        let retry = Retry { within: self.retry_for, unreachable: true };
        let answered = nodes.call(retry, output, call).await;
        let mut answer = answered.map_err(|error| not_decided(error, &id))?;
        let run = answer.run.take().context("the node answered without a run; it is not a relatch node")?;
        let (run, exit) = match (answer.decision(), self.wait) {
            (v1::Decision::Refused, _) => (run, Exit::Refused),
            (_, None) => (run, Exit::Done),
            (_, Some(wait_for)) => {
                let run = wait(nodes, output, run, wait_for, self.wait_timeout).await?;
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
            dry_run: false,
        }
    }
}

/// Says under which id the request can be sent again, where it is not known what became of it.
fn not_decided(error: CallError, id: &RequestId) -> anyhow::Error {
    match error {
        CallError::Nobody { tried, all_unreachable: false } => anyhow::anyhow!(
            "{tried}; it is not known whether the request was decided: the same command with --request-id {id} \
             finds out, and asks for nothing twice"
        ),
        error => error.advise(),
    }
}

fn mint_request_id() -> anyhow::Result<RequestId> {
    Ok(RequestId::new(hex_id(&OsRandomness)?)?)
}

fn table(answer: &v1::RequestRecoveryResponse) -> String {
    let decision = word(answer.decision().as_str_name(), "DECISION_");
    let repeated = if answer.repeated_answer { " (this request was answered before)" } else { "" };
    let mut text = format!("{decision}{repeated}\n\n");
    if let Some(run) = &answer.run {
        text += &view::run(run);
    }
    for line in &answer.ignored {
        text += &format!("\nignored: {}\n", super::text::plain(line));
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        recover: Recover,
    }

    fn parse(arguments: &[&str]) -> Result<Recover, clap::Error> {
        let all = ["recover", "local/web", "--reason", "stuck"].iter().chain(arguments);
        Alone::try_parse_from(all).map(|alone| alone.recover)
    }

    #[test]
    fn a_bare_wait_is_for_recovery() {
        assert_eq!(parse(&[]).unwrap().wait, None);
        assert_eq!(parse(&["--wait"]).unwrap().wait, Some(WaitFor::Recovered));
        assert_eq!(parse(&["--wait=applied"]).unwrap().wait, Some(WaitFor::Applied));
        assert_eq!(parse(&["--wait-timeout", "1m"]).unwrap().wait_timeout, Duration::from_secs(60));
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
            &["--wait=soon"],
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
        let expect = request.expect.unwrap();
        assert_eq!(expect.container_id, id);
        assert_eq!(
            expect.started_at.unwrap(),
            prost_types::Timestamp { seconds: 1_714_558_830, nanos: 500_000_000 }
        );
    }
}
