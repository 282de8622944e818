//! `Limits`: all are told, those that are named are changed, and each rule is named where it is broken.

use relatch::ledger::Limits;
use relatch::rpc::v1::{Decision, LimitSet, SetLimitsRequest};
use relatch::sim::ContainerSpec;
use serde_json::{Map, Value};

use crate::world::{World, ask, codes, fields};

fn all(limits: &Value) -> &Map<String, Value> {
    limits.as_object().expect("a message is an object")
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_are_named_are_changed_and_the_others_stay() {
    let (world, node, mut clients) = World::up([]).await;
    let first = clients.limits().await;
    assert_eq!(first.grace_max_s, Some(Limits::default().grace_max_s));
    let json = relatch::rpc::to_json("relatch.v1.LimitSet", &first).unwrap();
    assert!(all(&json).values().all(|value| !value.is_null()), "all are there: {json:#}");
    let changed = clients
        .set_limits(LimitSet { attempts: Some(7), margin_ms: Some(15_000), ..LimitSet::default() })
        .await
        .unwrap();
    let wanted = LimitSet { attempts: Some(7), margin_ms: Some(15_000), ..first };
    assert_eq!((changed, clients.limits().await), (wanted, wanted));
    node.kill();
    let (_node, mut clients) = world.start(&world.options).await;
    assert_eq!(clients.limits().await, wanted, "they are in the ledger");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_in_force_for_the_next_request() {
    let (_world, _node, mut clients) = World::up([ContainerSpec::named("web")]).await;
    let of = |seconds| relatch::rpc::v1::RequestRecoveryRequest {
        grace: Some(prost_types::Duration { seconds, nanos: 0 }),
        ..ask("local/web")
    };
    clients.set_limits(LimitSet { grace_max_s: Some(20), ..LimitSet::default() }).await.unwrap();
    let refused = clients.decided(&of(21), Decision::Refused).await;
    assert_eq!(codes(&refused.reasons), ["grace-above-limit"]);
    assert!(refused.reasons[0].detail.contains("21 s is above the limit of 20 s"), "{refused:#?}");
    let margin = LimitSet { grace_max_s: Some(21), margin_ms: Some(30_000), ..LimitSet::default() };
    clients.set_limits(margin).await.unwrap();
    let opened = clients.decided(&of(21), Decision::Opened).await;
    assert_eq!(opened.client_deadline.unwrap().seconds, 21 + 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_is_broken_is_named_and_nothing_is_changed() {
    let (_world, _node, mut clients) = World::up([]).await;
    let first = clients.limits().await;
    let day_ms = 86_400_000;
    let none = LimitSet::default;
    for (field, change) in [
        ("margin_ms", LimitSet { margin_ms: Some(14_999), ..none() }),
        ("margin_ms", LimitSet { margin_ms: Some(0), ..none() }),
        ("margin_ms", LimitSet { margin_ms: Some(u64::MAX), ..none() }),
        ("grace_max_s", LimitSet { grace_max_s: Some(86_401), ..none() }),
        ("grace_default_s", LimitSet { grace_default_s: Some(301), ..none() }),
        ("grace_default_s", LimitSet { grace_max_s: Some(9), ..none() }),
        ("connect_ms", LimitSet { connect_ms: Some(day_ms + 1), ..none() }),
        ("connect_ms", LimitSet { connect_ms: Some(0), ..none() }),
        ("dispatch_by_ms", LimitSet { dispatch_by_ms: Some(u64::MAX), ..none() }),
        ("inspect_ms", LimitSet { inspect_ms: Some(60_001), ..none() }),
        ("replay_ms", LimitSet { replay_ms: Some(u64::MAX), ..none() }),
        ("observe_first_ms", LimitSet { observe_first_ms: Some(0), ..none() }),
        ("observe_first_ms", LimitSet { observe_first_ms: Some(60_001), ..none() }),
        ("observe_longest_ms", LimitSet { observe_longest_ms: Some(60_001), ..none() }),
        ("attempts", LimitSet { attempts: Some(0), ..none() }),
        ("attempts_window_ms", LimitSet { attempts_window_ms: Some(0), ..none() }),
        ("in_flight_cluster", LimitSet { in_flight_cluster: Some(0), ..none() }),
        ("in_flight_host", LimitSet { in_flight_host: Some(0), ..none() }),
        ("unresolved_host", LimitSet { unresolved_host: Some(0), ..none() }),
        ("backoff_longest_ms", LimitSet { backoff_longest_ms: Some(3_600_001), ..none() }),
        ("backoff_longest_ms", LimitSet { attempts_window_ms: Some(3_599_999), ..none() }),
        ("request_memory_ms", LimitSet { request_memory_ms: Some(0), ..none() }),
        ("request_memory_ms", LimitSet { request_memory_ms: Some(day_ms - 1), ..none() }),
        ("quarantine_ms", LimitSet { quarantine_ms: Some(day_ms + 1), ..none() }),
        ("refusals_per_caller", LimitSet { refusals_per_caller: Some(0), ..none() }),
        ("attaches_per_caller", LimitSet { attaches_per_caller: Some(0), ..none() }),
        ("ended_runs", LimitSet { ended_runs: Some(0), ..none() }),
        ("ended_runs_ms", LimitSet { ended_runs_ms: Some(0), ..none() }),
    ] {
        // Beside one that breaks no rule: all or none.
        let beside = LimitSet { quarantine_ms: change.quarantine_ms.or(Some(1)), ..change };
        let status = clients.set_limits(beside).await.unwrap_err();
        assert_eq!(fields(&status), [format!("limits.{field}")], "{change:?}");
        assert!(status.message().contains("it is at "), "the rule: {status:?}");
    }
    for none in [None, Some(LimitSet::default())] {
        let status = clients.limits.set_limits(SetLimitsRequest { limits: none }).await.unwrap_err();
        assert_eq!(fields(&status), ["limits"]);
    }
    assert_eq!(clients.limits().await, first);
}

/// Windows may be as long as they like, and deadlines as long as their rules allow.
#[tokio::test(flavor = "multi_thread")]
async fn the_longest_limits_leave_a_node_that_decides_and_tells() {
    let (world, node, mut clients) =
        World::up([ContainerSpec::named("web"), ContainerSpec::named("api")]).await;
    let day_ms = Some(86_400_000);
    let longest = LimitSet {
        grace_max_s: Some(86_400),
        margin_ms: day_ms,
        connect_ms: day_ms,
        dispatch_by_ms: day_ms,
        inspect_ms: Some(60_000),
        replay_ms: day_ms,
        observe_first_ms: Some(60_000),
        attempts: Some(u32::MAX),
        attempts_window_ms: Some(u64::MAX),
        backoff_first_ms: Some(u64::MAX),
        backoff_longest_ms: Some(u64::MAX),
        quarantine_ms: day_ms,
        request_memory_ms: Some(u64::MAX),
        refusals_per_caller: Some(u32::MAX),
        ended_runs_ms: Some(u64::MAX),
        ..LimitSet::default()
    };
    clients.set_limits(longest).await.unwrap();
    let run = clients.opened("local/web").await;
    clients.wait_for_status(&run.run_id, relatch::rpc::v1::RunStatus::Applied).await;
    // Through the command line, which tells it in JSON.
    let refused = node.recover("local/web", &[]);
    assert_eq!(refused.exit, 3, "{refused:?}");
    assert_eq!(refused.run()["reasons"][0]["endsIn"], "315576000000s", "{refused:?}");
    node.kill();
    let (_node, mut clients) = world.start(&world.options).await;
    clients.opened("local/api").await;
}
