//! `relatch holds`: the holds that stand.

use super::address::Address;
use super::client::{self, CallError, Nodes, Retry};
use super::exit::Exit;
use super::id_ref::short;
use super::output::Output;
use super::scope;
use super::table::{Fields, Table};
use super::view;
use crate::rpc::v1::{Hold, HoldOwner, ListHoldsRequest, ListHoldsResponse};

/// List the holds that stand, oldest first.
#[derive(Debug, clap::Args)]
pub(super) struct Holds {}

impl Holds {
    pub(super) async fn run(self, addr: Vec<Address>, output: &Output) -> anyhow::Result<Exit> {
        let mut nodes = Nodes::new(addr)?;
        let answer = list(&mut nodes, output).await?;
        output.document("relatch.v1.ListHoldsResponse", &answer, || table(&answer.holds))?;
        Ok(Exit::Done)
    }
}

/// The holds that stand.
pub(super) async fn list(nodes: &mut Nodes, output: &Output) -> anyhow::Result<ListHoldsResponse> {
    let call = async |mut client: client::Holds| client.list_holds(ListHoldsRequest {}).await;
    nodes.call(Retry::READ, output, call).await.map_err(CallError::advise)
}

/// One hold on one page.
pub(super) fn detail(hold: &Hold) -> String {
    let mut fields = Fields::new();
    fields.add("hold", hold.hold_id.as_str());
    fields.add("covers", scope::show(hold.scope.as_ref()));
    fields.add("placed by", by(hold));
    fields.add("placed", view::time(hold.placed_at.as_ref()));
    fields.add("reason", hold.reason.as_str());
    fields.add("ends", ends(hold));
    fields.show()
}

fn table(holds: &[Hold]) -> String {
    if holds.is_empty() {
        return "no holds\n".into();
    }
    let mut table = Table::new(&["HOLD", "COVERS", "BY", "PLACED", "ENDS", "REASON"]);
    for hold in holds {
        table.row([
            short(&hold.hold_id).to_owned(),
            scope::show(hold.scope.as_ref()),
            by(hold),
            view::time(hold.placed_at.as_ref()),
            ends(hold),
            hold.reason.clone(),
        ]);
    }
    table.show()
}

fn by(hold: &Hold) -> String {
    match hold.owner() {
        HoldOwner::Auto => "relatch itself".into(),
        HoldOwner::Operator | HoldOwner::Unspecified => hold.operator.clone(),
    }
}

fn ends(hold: &Hold) -> String {
    match &hold.ends_in {
        Some(left) => format!("in {}", view::length(left)),
        None => "when lifted".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, ended, parse};
    use super::super::output::Format;
    use super::*;
    use crate::rpc::v1::HoldScope;
    use crate::rpc::v1::hold_scope::Scope;

    fn two() -> Vec<Hold> {
        let first = Hold {
            hold_id: "ab".repeat(16),
            scope: Some(HoldScope { scope: Some(Scope::Project("local/shop".into())) }),
            owner: HoldOwner::Operator.into(),
            operator: "kim".into(),
            reason: "up\ngrade".into(),
            placed_at: Some(prost_types::Timestamp { seconds: 1_714_558_830, nanos: 0 }),
            ends_in: Some(prost_types::Duration { seconds: 90, nanos: 0 }),
        };
        let second = Hold {
            hold_id: "cd".repeat(16),
            scope: Some(HoldScope { scope: Some(Scope::Everything(true)) }),
            owner: HoldOwner::Auto.into(),
            ends_in: None,
            ..first.clone()
        };
        vec![first, second]
    }

    #[tokio::test]
    async fn the_holds_that_stand_are_listed() {
        let fake = Fake::serve(|script| {
            script
                .list_holds
                .then(Ok(ListHoldsResponse { holds: two() }))
                .then(Ok(ListHoldsResponse { holds: two() }))
                .then(Ok(ListHoldsResponse::default()));
        });
        let fake = fake.await;
        let list = async |format| {
            let (output, printed) = Output::kept(format);
            let command: Holds = parse(&[]).unwrap();
            assert_eq!(ended(command.run(fake.addr(), &output)).await.unwrap(), Exit::Done);
            printed.stdout()
        };
        let json: serde_json::Value = serde_json::from_str(&list(Format::Json).await).unwrap();
        assert_eq!(json["holds"][0]["holdId"], "ab".repeat(16));
        let expected = "\
HOLD          COVERS              BY              PLACED                    ENDS         REASON
abababababab  project local/shop  kim             2024-05-01T10:20:30.000Z  in 1m30s     up grade
cdcdcdcdcdcd  everything          relatch itself  2024-05-01T10:20:30.000Z  when lifted  up grade
";
        assert_eq!(list(Format::Table).await, expected);
        assert_eq!(list(Format::Table).await, "no holds\n");
    }

    #[test]
    fn one_hold_is_shown_with_its_whole_id() {
        let text = detail(&two()[0]);
        assert!(text.contains(&"ab".repeat(16)) && text.contains("in 1m30s"), "{text}");
    }
}
