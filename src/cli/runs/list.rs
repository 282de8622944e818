//! `relatch runs list`.

use clap::ValueEnum;

use super::super::client::{CallError, Client, Nodes, Retry};
use super::super::exit::Exit;
use super::super::output::Output;
use super::super::table::Table;
use super::super::view;
use crate::model::Target;
use crate::rpc::v1::{ListRunsRequest, ListRunsResponse, Run, RunStatus};

/// The longest page that a node gives.
const PAGE: u32 = 1_000;

/// List runs, newest first.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct List {
    /// Only runs of this target, in its canonical spelling
    #[arg(long, value_parser = Target::parse)]
    target: Option<Target>,
    /// Only runs in this status; several are separated by commas
    #[arg(long, value_enum, value_delimiter = ',', ignore_case = true)]
    status: Vec<StatusWord>,
    /// At most so many
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// A status as it is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StatusWord(RunStatus);

impl ValueEnum for StatusWord {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self(RunStatus::Refused),
            Self(RunStatus::Interlocked),
            Self(RunStatus::Unresolved),
            Self(RunStatus::Applied),
            Self(RunStatus::NotApplied),
            Self(RunStatus::Superseded),
            Self(RunStatus::OperatorResolved),
        ]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        let full = self.0.as_str_name();
        Some(clap::builder::PossibleValue::new(super::super::text::word(full, "RUN_STATUS_")).alias(full))
    }
}

impl List {
    pub(super) async fn run(self, nodes: &mut Nodes, output: &Output) -> anyhow::Result<Exit> {
        let mut all = ListRunsResponse::default();
        loop {
            let missing = self.limit - u32::try_from(all.runs.len()).unwrap_or(self.limit);
            let request = ListRunsRequest {
                target: self.target.as_ref().map(ToString::to_string).unwrap_or_default(),
                statuses: self.status.iter().map(|status| status.0.into()).collect(),
                page_size: missing.min(PAGE),
                page_token: std::mem::take(&mut all.next_page_token),
                ..ListRunsRequest::default()
            };
            let call = async |mut client: Client| client.list_runs(request.clone()).await;
            let page = nodes.call(Retry::READ, output, call).await.map_err(CallError::advise)?;
            all.runs.extend(page.runs);
            all.next_page_token = page.next_page_token;
            if all.next_page_token.is_empty() || all.runs.len() >= self.limit as usize {
                break;
            }
        }
        output.document("relatch.v1.ListRunsResponse", &all, || table(&all.runs))?;
        if !output.is_json() && !all.next_page_token.is_empty() {
            output.note("there are more; ask for them with --limit");
        }
        Ok(Exit::Done)
    }
}

fn table(runs: &[Run]) -> String {
    if runs.is_empty() {
        return "no runs\n".into();
    }
    let mut table = Table::new(&["RUN", "TARGET", "STATUS", "VERIFICATION", "DECIDED", "WHY"]);
    for run in runs {
        table.row([
            run.run_id.clone(),
            run.target.clone(),
            if run.quarantined {
                format!("{} (quarantined)", view::status(run))
            } else {
                view::status(run).into()
            },
            view::verification(run).to_owned(),
            view::time(run.decided_at.as_ref()),
            why(run),
        ]);
    }
    table.show()
}

/// The settlement, else the codes of the reasons.
fn why(run: &Run) -> String {
    let codes: Vec<&str> = run.reasons.iter().map(|reason| reason.code.as_str()).collect();
    if codes.is_empty() { run.settlement.clone() } else { codes.join(", ") }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        list: List,
    }

    #[test]
    fn a_status_is_typed_without_its_prefix_and_in_any_case() {
        let typed =
            |text: &str| Alone::try_parse_from(["list", "--status", text]).map(|alone| alone.list.status);
        let expected = [StatusWord(RunStatus::NotApplied), StatusWord(RunStatus::Unresolved)];
        assert_eq!(typed("not_applied,UNRESOLVED").unwrap(), expected);
        assert_eq!(typed("RUN_STATUS_NOT_APPLIED,unresolved").unwrap(), expected);
        assert!(typed("unspecified").is_err());
    }

    #[test]
    fn a_line_says_why() {
        let refused = Run {
            status: RunStatus::Refused.into(),
            target: "local/web".into(),
            reasons: vec![crate::rpc::v1::Reason { code: "target-paused".into(), ..Default::default() }],
            ..Run::default()
        };
        let text = table(&[refused]);
        assert!(text.contains("REFUSED") && text.contains("target-paused"), "{text}");
        assert_eq!(table(&[]), "no runs\n");
    }
}
