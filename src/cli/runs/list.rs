//! `relatch runs list`.

use clap::ValueEnum;

use super::super::client::{CallError, Client, Nodes, Retry};
use super::super::exit::Exit;
use super::super::id_ref::short;
use super::super::output::Output;
use super::super::table::Table;
use super::super::view;
use crate::model::{HostName, RequestId, Target};
use crate::rpc::v1::{ListRunsRequest, ListRunsResponse, Run, RunStatus};

/// The longest page that a node gives.
const PAGE: u32 = 1_000;

/// List runs, newest first.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct List {
    /// Only runs of this target, in its canonical spelling
    #[arg(long, value_parser = Target::parse)]
    target: Option<Target>,
    /// Only runs of this host
    #[arg(long, value_name = "HOST")]
    host: Option<HostName>,
    /// Only the run that answered this request
    #[arg(long, value_name = "ID")]
    request_id: Option<RequestId>,
    /// Only runs in this status; several are separated by commas
    #[arg(long, value_enum, value_delimiter = ',', ignore_case = true)]
    status: Vec<StatusWord>,
    /// At most so many
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Also show who asked, and their reason
    #[arg(long)]
    wide: bool,
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
                host: self.host.as_ref().map(ToString::to_string).unwrap_or_default(),
                request_id: self.request_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            };
            let call = async |mut client: Client| client.list_runs(request.clone()).await;
            let page = nodes.call(Retry::READ, output, call).await.map_err(CallError::advise)?;
            all.runs.extend(page.runs);
            all.next_page_token = page.next_page_token;
            if all.next_page_token.is_empty() || all.runs.len() >= self.limit as usize {
                break;
            }
        }
        output.document("relatch.v1.ListRunsResponse", &all, || table(&all.runs, self.wide))?;
        if !output.is_json() && !all.next_page_token.is_empty() {
            output.note("there are more; ask for them with --limit");
        }
        Ok(Exit::Done)
    }
}

fn table(runs: &[Run], wide: bool) -> String {
    if runs.is_empty() {
        return "no runs\n".into();
    }
    let mut names = vec!["RUN", "TARGET", "STATUS", "VERIFICATION", "DECIDED", "WHY"];
    if wide {
        names.extend(["ASKED BY", "REASON"]);
    }
    let mut table = Table::new(&names);
    for run in runs {
        let mut cells = vec![
            short(&run.run_id).to_owned(),
            run.target.clone(),
            if run.quarantined {
                format!("{} (quarantined)", view::status(run))
            } else {
                view::status(run).into()
            },
            view::verification(run).to_owned(),
            view::time(run.decided_at.as_ref()),
            why(run),
        ];
        if wide {
            cells.extend([run.requested_by.clone(), run.reason.clone()]);
        }
        table.row(cells);
    }
    table.show()
}

/// The settlement, else the codes of the reasons.
fn why(run: &Run) -> String {
    let mut codes: Vec<&str> = run.reasons.iter().map(|reason| reason.code.as_str()).collect();
    // Two holds are one kind of reason.
    codes.dedup();
    if codes.is_empty() { run.settlement.clone() } else { codes.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::super::super::fake::{Fake, ended, parse};
    use super::super::super::output::Format;
    use super::*;

    #[test]
    fn a_status_is_typed_without_its_prefix_and_in_any_case() {
        let typed = |text: &str| parse::<List>(&["--status", text]).map(|list| list.status);
        let expected = [StatusWord(RunStatus::NotApplied), StatusWord(RunStatus::Unresolved)];
        assert_eq!(typed("not_applied,UNRESOLVED").unwrap(), expected);
        assert_eq!(typed("RUN_STATUS_NOT_APPLIED,unresolved").unwrap(), expected);
        assert!(typed("unspecified").is_err());
        assert!(parse::<List>(&["--wide"]).unwrap().wide && !parse::<List>(&[]).unwrap().wide);
    }

    #[tokio::test]
    async fn runs_are_asked_for_by_what_was_typed_until_there_are_enough() {
        let page = |token: &str| {
            let runs = vec![Run::default()];
            Ok(ListRunsResponse { runs, next_page_token: token.into() })
        };
        let fake = Fake::serve(|script| {
            script.list_runs.then(page("7")).then(page("5"));
        });
        let fake = fake.await;
        let (output, printed) = Output::kept(Format::Json);
        let typed =
            ["--target", "local/web", "--host", "local", "--request-id", "r-7", "--status", "refused"];
        let list: List = parse(&[&typed[..], &["--limit", "2"]].concat()).unwrap();
        let mut nodes = Nodes::new(fake.addr()).unwrap();
        assert_eq!(ended(list.run(&mut nodes, &output)).await.unwrap(), Exit::Done);
        let json: serde_json::Value = serde_json::from_str(&printed.stdout()).unwrap();
        assert_eq!((json["runs"].as_array().unwrap().len(), &json["nextPageToken"]), (2, &"5".into()));
        let first = ListRunsRequest {
            target: "local/web".into(),
            statuses: vec![RunStatus::Refused.into()],
            page_size: 2,
            page_token: String::new(),
            host: "local".into(),
            request_id: "r-7".into(),
        };
        let second = ListRunsRequest { page_size: 1, page_token: "7".into(), ..first.clone() };
        assert_eq!(fake.script(|script| script.list_runs.asked()), [first, second]);
    }

    #[test]
    fn what_breaks_a_rule_is_a_matter_of_usage() {
        for arguments in [
            &["--target", "web"][..],
            &["--host", "Local"],
            &["--request-id", "with space"],
            &["--limit", "0"],
            &["--status", "gone"],
        ] {
            assert_eq!(parse::<List>(arguments).unwrap_err().exit_code(), 2, "{arguments:?}");
        }
    }

    #[test]
    fn a_line_says_why_and_has_the_beginning_of_the_id() {
        let refused = Run {
            run_id: "ab".repeat(16),
            status: RunStatus::Refused.into(),
            target: "local/web".into(),
            reasons: vec![crate::rpc::v1::Reason { code: "target-paused".into(), ..Default::default() }],
            ..Run::default()
        };
        let text = table(std::slice::from_ref(&refused), false);
        assert!(text.contains("REFUSED") && text.contains("target-paused"), "{text}");
        assert!(text.contains("\nabababababab  local/web"), "{text}");
        assert!(!text.contains("ASKED BY"), "{text}");
        let asked = Run { requested_by: "kim".into(), reason: "stuck\nsince 10".into(), ..refused };
        let text = table(&[asked], true);
        assert!(text.contains("ASKED BY") && text.contains("kim       stuck since 10"), "{text}");
        assert_eq!(table(&[], false), "no runs\n");
    }
}
