//! `relatch explain`: what stands in the way of a restart.

use super::address::Address;
use super::client::{CallError, Client, Nodes, Retry};
use super::duration;
use super::exit::Exit;
use super::id_ref::short;
use super::output::Output;
use super::table::{Fields, Table};
use super::text::{plain, word};
use super::view;
use crate::model::Target;
use crate::rpc::v1::{Check, Decision, ExplainRequest, ExplainResponse, Run, Verdict};

/// Say what stands in the way of a restart: every check that a request would meet now.
///
/// It looks at the container, and changes nothing.
///
/// Exit codes: 0 a request would be accepted, 3 it would be refused, 1 error, 2 wrong usage.
#[derive(Debug, clap::Args)]
pub(super) struct Explain {
    /// host/container-name, as in local/web, or host/project/service[/N] for a Compose container
    #[arg(value_parser = Target::parse)]
    target: Target,
    /// The grace that the request would ask for, in whole seconds, as in 10s
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration::parse_whole_seconds)]
    grace: Option<u32>,
}

impl Explain {
    pub(super) async fn run(self, addr: Vec<Address>, output: &Output) -> anyhow::Result<Exit> {
        let mut nodes = Nodes::new(addr)?;
        let grace = self.grace.map(|seconds| prost_types::Duration { seconds: seconds.into(), nanos: 0 });
        let request = ExplainRequest { target: self.target.to_string(), grace };
        let call = async |mut client: Client| client.explain(request.clone()).await;
        let answer = nodes.call(Retry::READ, output, call).await.map_err(CallError::advise)?;
        let exit = Exit::of_decision(answer.decision())?;
        output.document("relatch.v1.ExplainResponse", &answer, || table(&answer))?;
        Ok(exit)
    }
}

/// Stands before the reasons where a request would be accepted all the same, since a run is open.
const OF_ANOTHER: &str = "\nIt asks for no restart of its own. One would be refused now:\n";

fn table(answer: &ExplainResponse) -> String {
    let mut fields = Fields::new();
    fields.add("target", answer.target.as_str());
    fields.add("container", answer.incarnation.as_ref().map(view::incarnation).unwrap_or_default());
    fields.add("state", answer.state.as_str());
    fields.add("health", answer.health.as_str());
    if let Some(grace) = &answer.grace {
        fields.add("grace", format!("{} (from {})", view::length(grace), answer.grace_source));
    }
    fields.add("guard", view::guard(answer.guard()));
    let mut checks = Table::new(&["CHECK", "VERDICT", "DETAIL"]);
    for check in &answer.checks {
        checks.row([check.name.clone(), verdict(check.verdict()), detail(check)]);
    }
    let blocking: String = answer.checks.iter().map(|check| view::reasons(&check.reasons)).collect();
    let is_another = answer.decision() == Decision::Attached && !blocking.is_empty();
    let blocking = if is_another { format!("{OF_ANOTHER}{blocking}") } else { blocking };
    let standing = answer.standing.as_ref().map(standing).unwrap_or_default();
    format!("{}\n\n{}\n{}{blocking}{standing}", decision(answer), fields.show(), checks.show())
}

/// What was seen, in the table. What is long stands with its reason alone, below.
fn detail(check: &Check) -> String {
    const SHOWN_CHARS: usize = 60;
    let is_below = check.reasons.iter().any(|reason| reason.detail == check.detail);
    if is_below && check.detail.chars().count() > SHOWN_CHARS {
        return "see below".into();
    }
    check.detail.clone()
}

fn decision(answer: &ExplainResponse) -> String {
    let meaning = match answer.decision() {
        Decision::Opened => "a request would be accepted now",
        Decision::Attached => "a request would join the open run",
        Decision::Refused | Decision::Unspecified => "a request would be refused now",
    };
    format!("{}: {meaning} (nothing was committed)", word(answer.decision().as_str_name(), "DECISION_"))
}

fn verdict(verdict: Verdict) -> String {
    word(verdict.as_str_name(), "VERDICT_").to_owned()
}

fn standing(run: &Run) -> String {
    let quarantined = if run.quarantined { " (quarantined)" } else { "" };
    let at = view::time(run.decided_at.as_ref());
    let line = format!("standing run {}: {}{quarantined}, decided {at}", run.run_id, view::status(run));
    let show = format!("  `relatch runs show {}` shows why it stands", short(&run.run_id));
    format!("\n{}\n{}\n{}", plain(&line), plain(&show), view::next(run))
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, ended, parse};
    use super::super::output::Format;
    use super::*;
    use crate::rpc::v1::{Guard, Reason, RunStatus};

    fn answer(decision: Decision) -> ExplainResponse {
        let held = Reason {
            code: "held".into(),
            detail: "by kim: upgrade".into(),
            ends_when: "the hold is lifted".into(),
            ..Reason::default()
        };
        let check = |name: &str, verdict: Verdict, reasons| Check {
            name: name.into(),
            verdict: verdict.into(),
            detail: format!("{name} was seen"),
            reasons,
        };
        ExplainResponse {
            target: "local/web".into(),
            decision: decision.into(),
            checks: vec![
                check("state", Verdict::Pass, vec![]),
                check("hold", Verdict::Block, vec![held]),
                check("attempts", Verdict::NotMade, vec![]),
            ],
            state: "running".into(),
            guard: Guard::Agent.into(),
            grace: Some(prost_types::Duration { seconds: 10, nanos: 0 }),
            grace_source: "policy".into(),
            standing: Some(Run {
                run_id: "ab".repeat(16),
                status: RunStatus::Applied.into(),
                quarantined: true,
                ..Run::default()
            }),
            ..ExplainResponse::default()
        }
    }

    #[tokio::test]
    async fn what_would_be_accepted_ends_with_0_and_what_would_be_refused_with_3() {
        for (decision, exit) in [
            (Decision::Opened, Exit::Done),
            (Decision::Attached, Exit::Done),
            (Decision::Refused, Exit::Refused),
        ] {
            let fake = Fake::serve(|script| {
                script.explain.then(Ok(answer(decision)));
            });
            let fake = fake.await;
            let (output, printed) = Output::kept(Format::Json);
            let command: Explain = parse(&["local/web", "--grace", "20s"]).unwrap();
            assert_eq!(ended(command.run(fake.addr(), &output)).await.unwrap(), exit);
            let json: serde_json::Value = serde_json::from_str(&printed.stdout()).unwrap();
            assert_eq!(json["checks"][1]["verdict"], "VERDICT_BLOCK");
            let asked = fake.script(|script| script.explain.asked());
            assert_eq!(asked[0].target, "local/web");
            assert_eq!(asked[0].grace.unwrap().seconds, 20);
        }
    }

    #[tokio::test]
    async fn an_answer_without_a_decision_is_not_believed() {
        let fake = Fake::serve(|script| {
            script.explain.then(Ok(ExplainResponse::default()));
        });
        let command: Explain = parse(&["local/web"]).unwrap();
        let (output, _) = Output::kept(Format::Table);
        let error = ended(command.run(fake.await.addr(), &output)).await.unwrap_err();
        assert_eq!(Exit::of_error(&error), Exit::Error, "{error:#}");
    }

    #[test]
    fn each_check_and_each_reason_is_shown() {
        let text = table(&answer(Decision::Refused));
        for expected in [
            "REFUSED: a request would be refused now (nothing was committed)\n",
            "grace   10s (from policy)\n",
            "CHECK     VERDICT   DETAIL\nstate     PASS      state was seen\n",
            "hold      BLOCK     hold was seen\nattempts  NOT_MADE  attempts was seen\n",
            "held: by kim: upgrade\n  since      ?\n  ends when  the hold is lifted\n",
            &format!("standing run {}: APPLIED (quarantined), decided ?\n", "ab".repeat(16)),
        ] {
            assert!(text.contains(expected), "{expected:?} is not in:\n{text}");
        }
        assert!(!text.contains(OF_ANOTHER), "{text}");
        let text = table(&answer(Decision::Attached));
        assert!(text.starts_with("ATTACHED: a request would join the open run"), "{text}");
        assert!(text.contains(&format!("{OF_ANOTHER}\nheld: ")), "{text}");
    }

    #[test]
    fn a_target_that_is_left_down_is_told_with_the_command_that_starts_it() {
        let mut left_down = answer(Decision::Attached);
        let down = Reason { code: "target-down".into(), ..Reason::default() };
        left_down.standing = Some(Run {
            run_id: "ab".repeat(16),
            status: RunStatus::Unresolved.into(),
            reasons: vec![down],
            ..Run::default()
        });
        let text = table(&left_down);
        assert!(text.contains("`relatch approve-start abababababab --reason TEXT`"), "{text}");
    }

    #[test]
    fn a_long_detail_stands_once() {
        let mut away = answer(Decision::Refused);
        let long = "connecting to unix:///run/docker.sock: no such file or directory; is it running?";
        away.checks[1].detail = long.into();
        away.checks[1].reasons[0].detail = long.into();
        let text = table(&away);
        assert_eq!(text.matches(long).count(), 1, "{text}");
        assert!(text.contains("BLOCK     see below\n"), "{text}");
    }

    #[test]
    fn a_malformed_target_or_grace_is_a_matter_of_usage() {
        for arguments in [&["web"][..], &[], &["local/web", "--grace", "1500ms"]] {
            assert_eq!(parse::<Explain>(arguments).unwrap_err().exit_code(), 2, "{arguments:?}");
        }
    }
}
