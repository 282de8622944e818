//! What one caller can have remembered has an end, which stands in nobody's way but its own.

use relatch::rpc::v1::{Decision, LimitSet, RequestRecoveryRequest, RunStatus};
use relatch::sim::{ContainerSpec, Endpoint, Hold, Rule};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::world::{World, ask_as};

/// RESOURCE_EXHAUSTED says whose share of what is full, and when there is room again.
fn exhausted(status: &Status, what: &str) {
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    let quota = status.get_details_quota_failure().expect("google.rpc.QuotaFailure");
    let [violation] = quota.violations.as_slice() else { panic!("one quota: {quota:?}") };
    assert_eq!(violation.subject, "anonymous");
    assert!(violation.description.contains(what), "{violation:?}");
    let delay = status.get_details_retry_info().expect("google.rpc.RetryInfo").retry_delay;
    let day_s = 86_400;
    assert!(delay.is_some_and(|delay| (day_s - 600..=day_s).contains(&delay.as_secs())), "{delay:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_share_of_refusals_refuses_refusals_alone() {
    let (_world, node, mut clients) = World::up([ContainerSpec::named("web")]).await;
    clients.set_limits(LimitSet { refusals_per_caller: Some(3), ..LimitSet::default() }).await.unwrap();
    let before = clients.runs().await.len();
    for n in 0..3 {
        clients.decided(&ask_as(&format!("r-{n}"), "local/db"), Decision::Refused).await;
    }
    for n in 3..6 {
        let status = clients.request(&ask_as(&format!("r-{n}"), "local/db")).await.unwrap_err();
        exhausted(&status, "3 refusals");
        assert!(status.message().contains("target-not-found"), "what it would be refused for: {status:?}");
    }
    assert_eq!(clients.runs().await.len(), before + 3, "nothing was stored");
    // A dry run gets what the request itself would get, and says no less.
    let dry = RequestRecoveryRequest { dry_run: true, ..ask_as("r-dry", "local/db") };
    exhausted(&clients.request(&dry).await.unwrap_err(), "3 refusals");
    // A client is told so too, and what to do.
    let answer = node.recover("local/db", &[]);
    assert_eq!(answer.exit, 1, "{answer:?}");
    for part in ["3 refusals", "target-not-found", "nothing was decided: try again in"] {
        assert!(answer.stderr.contains(part), "{part}: {answer:?}");
    }
    // The refusals that are remembered are answered, and everything else goes on.
    let again = clients.request(&ask_as("r-0", "local/db")).await.unwrap();
    assert!(again.repeated_answer, "{again:#?}");
    assert_eq!(clients.explained("local/db").await.decision(), Decision::Refused);
    let run = clients.decided(&ask_as("r-9", "local/web"), Decision::Opened).await;
    clients.wait_for_status(&run.run_id, RunStatus::Applied).await;
    clients.standing().await;
    clients.set_limits(LimitSet { refusals_per_caller: Some(4), ..LimitSet::default() }).await.unwrap();
    clients.decided(&ask_as("r-3", "local/db"), Decision::Refused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_share_of_attaches_refuses_those_that_want_to_be_remembered() {
    let works = Rule::on(Endpoint::Restart).hold_effect(Hold::Until("work".into()));
    let (world, _node, mut clients) = World::up([ContainerSpec::named("web").rule(works)]).await;
    clients.set_limits(LimitSet { attaches_per_caller: Some(2), ..LimitSet::default() }).await.unwrap();
    let run = clients.decided(&ask_as("r-0", "local/web"), Decision::Opened).await;
    world.reached("work").await;
    for n in 1..3 {
        clients.decided(&ask_as(&format!("r-{n}"), "local/web"), Decision::Attached).await;
    }
    let status = clients.request(&ask_as("r-3", "local/web")).await.unwrap_err();
    exhausted(&status, "2 attached requests");
    let dry = RequestRecoveryRequest { dry_run: true, ..ask_as("r-dry", "local/web") };
    exhausted(&clients.request(&dry).await.unwrap_err(), "2 attached requests");
    clients.decided(&crate::world::ask("local/web"), Decision::Attached).await;
    clients.decided(&ask_as("r-4", "local/db"), Decision::Refused).await;
    world.engine.release("work");
    clients.wait_for_status(&run.run_id, RunStatus::Applied).await;
}
