//! `relatch hold`: keeps containers from being restarted, also while a command runs.

mod child;
mod during;
mod guard;
mod place;
mod signals;

use std::ffi::OsString;
use std::time::Duration;

use anyhow::Context;

use super::address::Address;
use super::client::{Nodes, RetryFor};
use super::duration;
use super::exit::{Exit, WrongUsage};
use super::holds;
use super::id_ref::parse_whole;
use super::operator::Operator;
use super::output::Output;
use super::scope::ScopeArgs;
use crate::env::{OsRandomness, hex_id};
use crate::rpc::v1::{Hold as Placed, PlaceHoldRequest, PlaceHoldResponse};
use guard::{LEASE, RENEW_EVERY};
use place::{note, open_runs, place};
use signals::Signals;

/// Keep containers from being restarted: until `relatch unhold`, for a time, or while a command runs.
///
/// While a hold stands, no restart is admitted or sent for what it covers, and no start is approved. A request
/// that is already on its way to the engine is not called back.
///
/// With `-- COMMAND`, the hold stands while the command runs; it is lifted when the command has ended, however
/// it ended. Without the hold the command is not run. SIGINT and SIGTERM end the command (SIGTERM is passed on
/// to it), and relatch after it. relatch renews the hold every minute: where relatch is killed, the command may run on,
/// and the hold ends 10 minutes after it was renewed last. With --for it stands for that time instead, and is not
/// renewed. A hold that ends while the command runs is told of: at once if its time is over, within a minute if
/// somebody lifts one that is renewed.
///
/// Exit codes: 0 placed, 1 error, 2 wrong usage. With `-- COMMAND`: those of the command, 128+N if signal N
/// ended it, 126 if it cannot be run, 127 if it is not found; if it succeeded, 1 if the hold cannot be lifted, and 4 if
/// the hold had ended before the command.
#[derive(Debug, clap::Args)]
pub(super) struct Hold {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Why, for people and for the record
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    operator: Operator,
    /// How long it stands at most, as in 2h [default: until it is lifted, or while the command runs]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_for)]
    stands_for: Option<Duration>,
    /// The id of this hold; the same id means the same hold. A new one is made if left out
    #[arg(long, value_name = "ID", value_parser = parse_whole, conflicts_with = "command")]
    id: Option<String>,
    #[command(flatten)]
    retry: RetryFor,
    /// Hold while this command runs; its output is its own, and relatch prints to stderr alone
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn parse_for(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        Duration::ZERO => Err("a hold that stands for no time holds nothing".into()),
        time => Ok(time),
    }
}

/// A script whose command is empty must not leave behind a hold that has no end. clap reads past a last `--`.
fn refuse_no_command(last_argument: Option<OsString>) -> Result<(), WrongUsage> {
    match last_argument {
        Some(last) if last == "--" => Err(WrongUsage("there is no command after --".into())),
        _ => Ok(()),
    }
}

impl Hold {
    pub(super) async fn run(self, addr: Vec<Address>, output: &Output) -> anyhow::Result<Exit> {
        let mut nodes = Nodes::new(addr)?;
        let request = self.request()?;
        if self.command.is_empty() {
            refuse_no_command(std::env::args_os().next_back())?;
            return self.place(&request, &mut nodes, output).await;
        }
        // From here on: whoever interrupts it while the hold is being placed does not leave it behind.
        let signals = Signals::listen()?;
        let renew_every = self.stands_for.is_none().then_some(RENEW_EVERY);
        let retry = self.retry.retry();
        during::run(&request, &self.command, retry, renew_every, &mut nodes, signals, output).await
    }

    /// How long the node is to keep it without a further word.
    fn time(&self) -> Option<Duration> {
        let lease = Some(LEASE).filter(|_| !self.command.is_empty());
        self.stands_for.or(lease)
    }

    fn request(&self) -> anyhow::Result<PlaceHoldRequest> {
        Ok(PlaceHoldRequest {
            scope: self.scope.scope(),
            operator: self.operator.name()?,
            reason: self.reason.clone(),
            duration: self.time().map(prost_types::Duration::try_from).transpose()?,
            hold_id: match &self.id {
                Some(id) => id.clone(),
                None => hex_id(&OsRandomness)?,
            },
        })
    }

    async fn place(
        &self,
        request: &PlaceHoldRequest,
        nodes: &mut Nodes,
        output: &Output,
    ) -> anyhow::Result<Exit> {
        let placed = place(request, self.retry.retry(), nodes, output).await;
        let answer = placed.map_err(|error| {
            let again = format!("the same command with --id {}", request.hold_id);
            error.advise_change("the hold was placed", &again)
        })?;
        let hold =
            answer.hold.as_ref().context("the node answered without a hold; it is not a relatch node")?;
        output.document("relatch.v1.PlaceHoldResponse", &answer, || table(&answer, hold))?;
        Ok(Exit::Done)
    }
}

fn table(answer: &PlaceHoldResponse, hold: &Placed) -> String {
    let repeated = if answer.repeated_answer { " (this hold was placed before)" } else { "" };
    let open = open_runs(answer);
    let gap = if open.is_empty() { "" } else { "\n" };
    let note = note(answer);
    format!("HELD{repeated}\n\n{}{note}{gap}{open}", holds::detail(hold))
}

#[cfg(test)]
mod tests {
    use super::super::fake::{self, Fake, ended, not_admitting, not_known};
    use super::super::output::{Format, Printed};
    use super::*;
    use crate::rpc::v1::HoldScope;
    use crate::rpc::v1::hold_scope::Scope;

    fn parse(arguments: &[&str]) -> Result<Hold, clap::Error> {
        fake::parse(&[&["--reason", "upgrade", "--by", "kim"], arguments].concat())
    }

    async fn hold(fake: &Fake, arguments: &[&str]) -> (anyhow::Result<Exit>, &'static Printed) {
        let (output, printed) = Output::kept(Format::Table);
        (ended(parse(arguments).unwrap().run(fake.addr(), &output)).await, printed)
    }

    fn placed() -> PlaceHoldResponse {
        let hold = Placed { hold_id: "cd".repeat(16), operator: "kim".into(), ..Placed::default() };
        PlaceHoldResponse { hold: Some(hold), open_run_ids: vec!["ab".repeat(16)], ..Default::default() }
    }

    #[tokio::test]
    async fn a_hold_without_an_answer_is_placed_again_under_the_same_id() {
        let fake = Fake::serve(|script| {
            script.place.then(Err(not_admitting())).then(Err(not_known())).then(Ok(placed()));
        });
        let fake = fake.await;
        let (exit, printed) = hold(&fake, &["--host", "local", "--for", "1m30s"]).await;
        assert_eq!(exit.unwrap(), Exit::Done);
        let text = printed.stdout();
        assert!(text.starts_with("HELD\n\nhold ") && text.contains(&"cd".repeat(16)), "{text}");
        assert!(text.contains("on their way:\n  abab"), "{text}");
        let asked = fake.script(|script| script.place.asked());
        assert_eq!(asked.len(), 3);
        assert!(asked[0].hold_id.len() == 32 && asked.iter().all(|one| *one == asked[0]), "{asked:?}");
        let expected = PlaceHoldRequest {
            scope: Some(HoldScope { scope: Some(Scope::Host("local".into())) }),
            operator: "kim".into(),
            reason: "upgrade".into(),
            duration: Some(prost_types::Duration { seconds: 90, nanos: 0 }),
            hold_id: asked[0].hold_id.clone(),
        };
        assert_eq!(asked[0], expected);
    }

    #[tokio::test]
    async fn a_hold_on_what_is_not_there_says_so_and_stands() {
        let fake = Fake::serve(|script| {
            let note = "no container on host local answers to tpyo now".into();
            script.place.then(Ok(PlaceHoldResponse { note, ..placed() }));
        });
        let (exit, printed) = hold(&fake.await, &["local/tpyo"]).await;
        assert_eq!(exit.unwrap(), Exit::Done);
        let text = printed.stdout();
        assert!(text.contains("\nnote: no container on host local answers to tpyo now\n"), "{text}");
    }

    #[tokio::test]
    async fn a_hold_of_which_nothing_is_known_is_told_with_the_id_that_finds_out() {
        let id = "cd".repeat(16);
        let fake = Fake::serve(|script| script.place.all((0..20).map(|_| Err(not_known())))).await;
        let (exit, _) = hold(&fake, &["--everything", "--id", &id, "--retry-for", "300ms"]).await;
        let error = exit.unwrap_err();
        assert!(format!("{error:#}").contains(&format!("the same command with --id {id}")), "{error:#}");
        assert_eq!(Exit::of_error(&error), Exit::Error);
        assert!(fake.script(|script| script.place.asked()).iter().all(|one| one.hold_id == id));
    }

    #[test]
    fn the_hold_of_a_command_has_an_end_unless_it_is_renewed() {
        let time = |arguments: &[&str]| parse(arguments).unwrap().time();
        assert_eq!(time(&["local/web"]), None);
        assert_eq!(time(&["local/web", "--", "true"]), Some(LEASE));
        assert_eq!(time(&["local/web", "--for", "2h", "--", "true"]), Some(Duration::from_secs(7_200)));
        assert!(LEASE > 3 * RENEW_EVERY, "a renewal may fail now and then");
    }

    #[test]
    fn what_breaks_a_rule_is_a_matter_of_usage() {
        let id = "cd".repeat(16);
        for arguments in [
            &[][..],
            &["--everything", "--for", "0s"],
            &["--everything", "--for", "soon"],
            &["--everything", "--id", "short"],
            &["--everything", "--id", &id, "--", "true"],
            &["local/web", "true"],
        ] {
            assert_eq!(parse(arguments).unwrap_err().exit_code(), 2, "{arguments:?}");
        }
        assert_eq!(fake::parse::<Hold>(&["local/web"]).unwrap_err().exit_code(), 2, "no reason");
        assert!(refuse_no_command(Some("--".into())).is_err() && refuse_no_command(Some("x".into())).is_ok());
        let command = parse(&["local/web", "--", "echo", "--reason", "x"]).unwrap().command;
        assert_eq!(command, ["echo", "--reason", "x"]);
    }
}
