//! A hold that stands while a command runs.

use std::ffi::OsString;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures::{FutureExt, Stream, StreamExt};
use rustix::process::Signal;
use tonic::Code;

use super::super::client::{CallError, Nodes, Retry};
use super::super::exit::Exit;
use super::super::output::Output;
use super::super::scope;
use super::super::text::plain;
use super::super::unhold::{Lifted, lift};
use super::child;
use super::guard::until_over;
use super::place::{note, open_runs, place};
use super::signals::name;
use crate::rpc::v1::{LiftHoldRequest, PlaceHoldRequest, PlaceHoldResponse};

/// What became of the hold when the command had ended.
enum Hold {
    Lifted,
    /// It had ended before.
    Over,
    /// It could not be lifted.
    MayStand,
}

/// Places the hold, runs the command, and lifts the hold whatever became of the command. Meanwhile the hold is renewed
/// so often, if it is.
///
/// # Errors
///
/// If the hold could not be placed: then the command was not run.
pub(super) async fn run(
    request: &PlaceHoldRequest,
    command: &[OsString],
    retry: Retry,
    renew_every: Option<Duration>,
    nodes: &mut Nodes,
    signals: impl Stream<Item = Signal>,
    output: &Output,
) -> anyhow::Result<Exit> {
    let mut signals = pin!(signals);
    let placed = tokio::select! {
        placed = place_first(request, retry, nodes, output) => Ok(placed?),
        Some(signal) = signals.next() => Err(signal),
    };
    let answer = match (placed, signals.next().now_or_never()) {
        // It came before there was a command that it could have reached.
        (Err(signal), _) | (Ok(_), Some(Some(signal))) => {
            return interrupted(signal, request, nodes, output).await;
        }
        (Ok(answer), _) => answer,
    };
    let hold = answer.hold.clone().unwrap_or_default();
    let what = scope::show(hold.scope.as_ref());
    output.note(format!("holding {what} while the command runs (hold {})", request.hold_id));
    for told in [note(&answer), open_runs(&answer)] {
        if !told.is_empty() {
            output.note(told.trim());
        }
    }
    let mut asked_meanwhile = nodes.clone();
    let mut running = pin!(child::run(command, signals, output));
    let (code, is_over) = tokio::select! {
        // A command that has ended needs no hold any more.
        biased;
        code = &mut running => (code, false),
        why = until_over(&hold, renew_every, &mut asked_meanwhile, output) => {
            output.note(format!(
                "THE HOLD IS OVER, AND THE COMMAND STILL RUNS: hold {} does not stand any more: {why}.\nFrom now on \
                 {what} may be restarted.",
                plain(&request.hold_id)
            ));
            (running.await, true)
        }
    };
    let hold = if is_over { Hold::Over } else { end(request, retry, nodes, output).await };
    Ok(match (code?, hold) {
        (0, Hold::MayStand) => Exit::Error,
        (0, Hold::Over) => {
            output.note("the command succeeded, but not all the time under its hold: exit code 4");
            Exit::Uncertain
        }
        (code, _) => Exit::Command(code),
    })
}

/// Lifts what may have been placed before a signal came. Nobody waits long for that.
async fn interrupted(
    signal: Signal,
    request: &PlaceHoldRequest,
    nodes: &mut Nodes,
    output: &Output,
) -> anyhow::Result<Exit> {
    let told = match lift(&lifting(request), Retry::READ, nodes, output).await {
        Ok(_) => "and its hold was lifted".to_owned(),
        Err(CallError::Answered(status)) if status.code() == Code::NotFound => {
            "and no hold stands".to_owned()
        }
        Err(error) => format!("and if its hold was placed, `{}` lifts it: {error}", unhold(request)),
    };
    output.note(format!("{} came first: the command was not run, {told}", name(signal)));
    Ok(Exit::Command(u8::try_from(128 + signal.as_raw()).unwrap_or(1)))
}

async fn place_first(
    request: &PlaceHoldRequest,
    retry: Retry,
    nodes: &mut Nodes,
    output: &Output,
) -> anyhow::Result<PlaceHoldResponse> {
    let placed = place(request, retry, nodes, output).await;
    let answer = placed.map_err(|error| {
        let again = format!("`relatch holds`, or `{}`,", unhold(request));
        error.advise_change("the hold was placed", &again)
    });
    let answer = answer.context("the command was not run")?;
    ensure!(answer.hold.is_some(), "the node answered without a hold: the command was not run");
    Ok(answer)
}

/// Lifts the hold, and says what became of it.
async fn end(request: &PlaceHoldRequest, retry: Retry, nodes: &mut Nodes, output: &Output) -> Hold {
    let id = &request.hold_id;
    match lift(&lifting(request), retry, nodes, output).await {
        Ok(Lifted::Holds(_)) => {
            output.note(format!("lifted hold {id}"));
            Hold::Lifted
        }
        Ok(Lifted::Before) => Hold::Lifted,
        Err(CallError::Answered(status)) if status.code() == Code::NotFound => {
            output.note(format!(
                "hold {id} had ended before the command: it was lifted, or its time was over, and the command went \
                 on without it"
            ));
            Hold::Over
        }
        Err(error) => {
            output.note(format!(
                "THE HOLD STILL STANDS, as far as is known: {error}\nNo restart is admitted for what it covers. \
                 Lift it with:\n\n  {}\n",
                unhold(request)
            ));
            Hold::MayStand
        }
    }
}

fn lifting(request: &PlaceHoldRequest) -> LiftHoldRequest {
    let PlaceHoldRequest { hold_id, operator, .. } = request.clone();
    LiftHoldRequest { hold_id, scope: None, operator }
}

/// What lifts the hold, as it is typed.
fn unhold(request: &PlaceHoldRequest) -> String {
    format!("relatch unhold --id {}", plain(&request.hold_id))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use futures::channel::mpsc;
    use tonic::Status;

    use super::super::super::client::Nodes;
    use super::super::super::fake::{Fake, Script, ended, not_admitting, not_known};
    use super::super::super::output::{Format, Printed};
    use super::*;
    use crate::rpc::v1::{self, LiftHoldResponse, ListHoldsResponse, RenewHoldResponse};

    const ID: &str = "cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd";

    fn request() -> PlaceHoldRequest {
        PlaceHoldRequest { hold_id: ID.into(), operator: "kim".into(), ..PlaceHoldRequest::default() }
    }

    fn standing(ends_in_ms: Option<i32>) -> v1::Hold {
        let ends_in = ends_in_ms.map(|ms| prost_types::Duration { seconds: 0, nanos: ms * 1_000_000 });
        v1::Hold { hold_id: ID.into(), ends_in, ..v1::Hold::default() }
    }

    fn holds(script: &mut Script) {
        let hold = standing(None);
        script.place.then(Ok(PlaceHoldResponse { hold: Some(hold), ..PlaceHoldResponse::default() }));
    }

    fn lifts(script: &mut Script) {
        script.lift.then(Ok(LiftHoldResponse { lifted: vec![v1::Hold::default()] }));
    }

    /// A command under a hold, and the signals that reach relatch.
    struct Under<'a> {
        fake: &'a Fake,
        command: Vec<OsString>,
        renew_every: Option<Duration>,
        signals: mpsc::UnboundedReceiver<Signal>,
        send: mpsc::UnboundedSender<Signal>,
        output: Output,
        printed: &'static Printed,
    }

    fn under<'a>(fake: &'a Fake, command: &[&str]) -> Under<'a> {
        let command = command.iter().map(OsString::from).collect();
        let (send, signals) = mpsc::unbounded();
        let (output, printed) = Output::kept(Format::Json);
        Under { fake, command, renew_every: None, signals, send, output, printed }
    }

    impl Under<'_> {
        async fn run(self) -> anyhow::Result<u8> {
            let mut nodes = Nodes::new(self.fake.addr()).unwrap();
            let retry = Retry { within: Duration::from_millis(300), unreachable: true };
            let request = request();
            let (renew_every, signals) = (self.renew_every, self.signals);
            let run = run(&request, &self.command, retry, renew_every, &mut nodes, signals, &self.output);
            let exit = ended(run).await;
            assert_eq!(self.printed.stdout(), "", "the command's stdout is its own");
            exit.map(Exit::code)
        }
    }

    fn lifted(fake: &Fake) -> Vec<LiftHoldRequest> {
        fake.script(|script| script.lift.asked())
    }

    /// A shell that does this; `$0` is a folder of the test.
    fn shell<'a>(folder: &'a Path, script: &'a str) -> [&'a str; 4] {
        ["sh", "-c", script, folder.to_str().unwrap()]
    }

    async fn exists(path: &Path) {
        let exists = async {
            while !path.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), exists).await.expect("the command makes its file");
    }

    #[tokio::test]
    async fn the_hold_stands_until_the_command_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        let fake = Fake::serve(|script| {
            holds(script);
            lifts(script);
        });
        let fake = fake.await;
        let script = ": > $0/begun; while [ ! -e $0/go ]; do sleep 0.02; done; exit 7";
        let held = under(&fake, &shell(folder.path(), script));
        let printed = held.printed;
        let look = async {
            exists(&folder.path().join("begun")).await;
            assert_eq!(fake.script(|script| script.place.asked()), [request()]);
            assert_eq!(lifted(&fake), [], "it was lifted while the command ran");
            std::fs::write(folder.path().join("go"), "").unwrap();
        };
        let (code, ()) = tokio::join!(held.run(), look);
        assert_eq!(code.unwrap(), 7);
        let expected = LiftHoldRequest { hold_id: ID.into(), scope: None, operator: "kim".into() };
        assert_eq!(lifted(&fake), [expected]);
        assert!(printed.stderr().contains(&format!("lifted hold {ID}")), "{}", printed.stderr());
    }

    #[tokio::test]
    async fn a_command_ends_with_the_code_that_a_shell_gives_it_and_the_hold_is_lifted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "no program").unwrap();
        let absent = folder.path().join("absent");
        for (command, code) in [
            (&["true"][..], 0),
            (&["sh", "-c", "exit 3"], 3),
            (&["sh", "-c", "kill -KILL $$"], 137),
            (&[absent.to_str().unwrap()], 127),
            (&[file.to_str().unwrap()], 126),
        ] {
            let fake = Fake::serve(|script| {
                holds(script);
                lifts(script);
            });
            let fake = fake.await;
            assert_eq!(under(&fake, command).run().await.unwrap(), code, "{command:?}");
            assert_eq!(lifted(&fake).len(), 1, "{command:?}");
        }
    }

    #[tokio::test]
    async fn without_the_hold_the_command_is_not_run() {
        for (error, code, said) in [
            (not_known(), Exit::Error, "relatch unhold --id"),
            (not_admitting(), Exit::Error, "nothing was decided"),
            (Status::invalid_argument("scope: no host of that name"), Exit::Usage, "no host of that name"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let fake = Fake::serve(|script| script.place.all(vec![Err(error); 20])).await;
            let error = under(&fake, &shell(folder.path(), ": > $0/begun")).run().await.unwrap_err();
            let text = format!("{error:#}");
            assert!(text.contains("the command was not run") && text.contains(said), "{text}");
            assert_eq!(Exit::of_error(&error), code, "{text}");
            assert!(!folder.path().join("begun").exists());
        }
    }

    #[tokio::test]
    async fn a_hold_that_cannot_be_lifted_is_told_of_loudly() {
        for (script, code) in [("exit 0", 1), ("exit 7", 7)] {
            let fake = Fake::serve(|script| {
                holds(script);
                script.lift.all((0..20).map(|_| Err(not_admitting())));
            });
            let fake = fake.await;
            let held = under(&fake, &["sh", "-c", script]);
            let printed = held.printed;
            assert_eq!(held.run().await.unwrap(), code);
            let text = printed.stderr();
            assert!(text.contains("THE HOLD STILL STANDS"), "{text}");
            assert!(text.contains(&format!("\n  relatch unhold --id {ID}\n")), "{text}");
        }
    }

    #[tokio::test]
    async fn a_hold_that_had_ended_before_the_command_takes_its_success_away() {
        for (script, code) in [("exit 0", 4), ("exit 7", 7)] {
            let fake = Fake::serve(|script| {
                holds(script);
                script.lift.then(Err(Status::not_found("no such hold stands")));
            });
            let fake = fake.await;
            let held = under(&fake, &["sh", "-c", script]);
            let printed = held.printed;
            assert_eq!(held.run().await.unwrap(), code);
            assert!(printed.stderr().contains("had ended before"), "{}", printed.stderr());
        }
    }

    /// A command that ends once relatch has said that its hold is over.
    async fn outlives_its_hold(held: Under<'_>, folder: &Path) -> String {
        let printed = held.printed;
        let told = async {
            while !printed.stderr().contains("THE HOLD IS OVER, AND THE COMMAND STILL RUNS") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            std::fs::write(folder.join("go"), "").unwrap();
        };
        let (code, ()) = tokio::join!(held.run(), told);
        assert_eq!(code.unwrap(), 4);
        printed.stderr()
    }

    const UNTIL_GO: &str = "while [ ! -e $0/go ]; do sleep 0.02; done";

    #[tokio::test]
    async fn a_hold_whose_time_ends_while_the_command_runs_is_told_of_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fake = Fake::serve(|script| {
            let placed = PlaceHoldResponse { hold: Some(standing(Some(20))), ..PlaceHoldResponse::default() };
            script.place.then(Ok(placed));
            // The cluster's clock is behind; then its word counts.
            script.list_holds.then(Ok(ListHoldsResponse { holds: vec![standing(Some(10))] }));
            script.list_holds.then(Ok(ListHoldsResponse::default()));
        });
        let fake = fake.await;
        let said = outlives_its_hold(under(&fake, &shell(folder.path(), UNTIL_GO)), folder.path()).await;
        assert!(said.contains("its time (--for) is over") && said.contains("exit code 4"), "{said}");
        assert_eq!(lifted(&fake), [], "there is nothing to lift");
    }

    #[tokio::test]
    async fn a_hold_is_renewed_while_the_command_runs_also_after_a_renewal_that_failed() {
        let folder = tempfile::tempdir().unwrap();
        let fake = Fake::serve(|script| {
            holds(script);
            let renewed = || Ok(RenewHoldResponse { hold: Some(standing(None)) });
            let failed = Err(Status::internal("the disk is full"));
            script.renew.then(renewed()).then(failed).then(renewed());
            script.renew.then(Err(Status::not_found("no such hold stands")));
        });
        let fake = fake.await;
        let held = under(&fake, &shell(folder.path(), UNTIL_GO));
        let held = Under { renew_every: Some(Duration::from_millis(10)), ..held };
        let said = outlives_its_hold(held, folder.path()).await;
        for expected in ["the disk is full", "is renewed again; it stood", "it was not renewed in time"] {
            assert!(said.contains(expected), "{expected}: {said}");
        }
        let asked = fake.script(|script| script.renew.asked());
        assert!(asked.len() == 4 && asked.iter().all(|one| one.hold_id == ID), "{asked:?}");
    }

    #[tokio::test]
    async fn an_interrupt_is_left_to_the_terminal_and_a_termination_is_passed_on() {
        let folder = tempfile::tempdir().unwrap();
        let fake = Fake::serve(|script| {
            holds(script);
            lifts(script);
        });
        let fake = fake.await;
        let script = "trap 'exit 9' INT; trap 'exit 7' TERM; : > $0/begun; while :; do sleep 0.02; done";
        let held = under(&fake, &shell(folder.path(), script));
        let send = held.send.clone();
        let signals = async {
            exists(&folder.path().join("begun")).await;
            send.unbounded_send(Signal::INT).unwrap();
            send.unbounded_send(Signal::TERM).unwrap();
        };
        let (code, ()) = tokio::join!(held.run(), signals);
        assert_eq!(code.unwrap(), 7, "the command ends by SIGTERM alone, and relatch after it");
        assert_eq!(lifted(&fake).len(), 1);
    }

    #[tokio::test]
    async fn an_interrupt_before_the_hold_stands_runs_nothing_and_leaves_no_hold() {
        let folder = tempfile::tempdir().unwrap();
        for (answer, said) in [
            (Ok(LiftHoldResponse::default()), "its hold was lifted".to_owned()),
            (Err(Status::not_found("no such hold stands")), "no hold stands".to_owned()),
            (Err(Status::internal("the disk is gone")), format!("`relatch unhold --id {ID}` lifts it")),
        ] {
            let fake = Fake::serve(|script| {
                script.place.all((0..20).map(|_| Err(not_known())));
                script.lift.then(answer);
            });
            let fake = fake.await;
            let held = under(&fake, &shell(folder.path(), ": > $0/begun"));
            let printed = held.printed;
            held.send.unbounded_send(Signal::INT).unwrap();
            assert_eq!(held.run().await.unwrap(), 130);
            let text = printed.stderr();
            assert!(text.contains("SIGINT came first") && text.contains(&said), "{text}");
            assert!(!folder.path().join("begun").exists());
            assert_eq!(lifted(&fake).len(), 1);
        }
    }
}
