//! The command line as scripts use it: exit codes, one JSON document on stdout, messages on stderr.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use relatch::rpc::v1::hold_scope::Scope;
use relatch::sim::{Action, ContainerSpec, Effect, End, Endpoint, Health, Hold, Rule};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::node::{Answer, Node, answered, relatch};
use crate::world::{World, hold};

/// The command's answer, which is one document with this exit code and nothing else on stdout.
fn document(node: &Node, args: &[&str], exit: i32) -> Value {
    let answer = node.cli(args);
    assert_eq!(answer.exit, exit, "{args:?}: {answer:?}");
    assert!(answer.json.is_object(), "no document: {answer:?}");
    answer.json
}

/// The command fails with this exit code: nothing on stdout, and this on stderr.
fn fails(node: &Node, args: &[&str], exit: i32, said: &str) {
    failed(&node.cli(args), exit, said);
}

fn failed(answer: &Answer, exit: i32, said: &str) {
    assert_eq!((answer.exit, answer.stdout.as_str()), (exit, ""), "{answer:?}");
    assert!(answer.stderr.contains(said), "{said:?} is not said: {answer:?}");
}

fn on_restart() -> Rule {
    Rule::on(Endpoint::Restart).no_effect()
}

#[tokio::test(flavor = "multi_thread")]
async fn recover_ends_with_the_code_of_what_became_of_the_run() {
    let gone = on_restart().cut(End::Fin).then(Action::Remove);
    let (_world, node, _clients) = World::up([
        ContainerSpec::named("plain"),
        ContainerSpec::named("well").health(Health::Saturated),
        ContainerSpec::named("ill").health(Health::Unhealthy),
        ContainerSpec::named("lost").rule(on_restart().cut(End::Fin)),
        ContainerSpec::named("refused").rule(on_restart().status(404, "No such container: refused")),
        ContainerSpec::named("gone").rule(gone),
        ContainerSpec::named("other"),
    ])
    .await;
    let recover = |name: &str, args: &[&str], exit| {
        let target = format!("local/{name}");
        let all = [&["recover", &target, "--reason", "test"], args].concat();
        document(&node, &all, exit)["run"].clone()
    };
    let wait = ["--wait", "--wait-timeout", "60s"];
    assert_eq!(recover("plain", &wait, 0)["verification"], "VERIFICATION_UNVERIFIED");
    assert_eq!(
        recover("well", &["--wait=recovered", "--grace", "3s"], 0)["verification"],
        "VERIFICATION_RECOVERED"
    );
    assert_eq!(recover("plain", &wait, 3)["reasons"][0]["code"], "backing-off");
    let lost = recover("lost", &["--wait", "--wait-timeout", "500ms", "--request-id", "r-lost"], 4);
    assert_eq!(lost["disposition"], "DISPOSITION_UNCERTAIN");
    assert_eq!(recover("refused", &wait, 5)["status"], "RUN_STATUS_NOT_APPLIED");
    assert_eq!(recover("gone", &wait, 6)["status"], "RUN_STATUS_SUPERSEDED");
    assert_eq!(recover("ill", &["--wait=applied"], 0)["status"], "RUN_STATUS_APPLIED");
    let lost = lost["runId"].as_str().unwrap();
    document(&node, &["resolve", lost, "--by", "kim", "--reason", "seen"], 0);
    assert_eq!(recover("lost", &["--wait", "--request-id", "r-lost"], 8)["runId"], lost);

    let expect = recover("other", &["--dry-run", "--retry-for", "5s"], 0);
    assert_eq!(expect["runId"], "");
    let incarnation = &expect["baseline"];
    let of = |id: &str| format!("{id}@{}", incarnation["startedAt"].as_str().unwrap());
    let other = recover("other", &["--expect", &of(&"0".repeat(64)), "--dry-run"], 3);
    assert_eq!(other["reasons"][0]["code"], "expectation-mismatch");
    recover("other", &["--expect", &of(incarnation["containerId"].as_str().unwrap()), "--wait=applied"], 0);

    for wrong in [
        &["recover", "local/web"][..],
        &["recover", "web", "--reason", "x"],
        &["recover", "local/web", "--reason", "x", "--grace", "1.5s"],
        &["recover", "local/web", "--reason", "x", "--grace", "-1s"],
        &["recover", "elsewhere/web", "--reason", "x"],
        &["recover", "local/web", "--reason", " "],
        &["recover", "local/web", "--reason", "x", "--wait-timeout", "soon"],
        &["recover", "local/plain", "--reason", "other", "--request-id", "r-lost"],
    ] {
        fails(&node, wrong, 2, "error: ");
    }
}

/// A container that became unhealthy again is not recovered; one that is not well yet is not either.
#[tokio::test(flavor = "multi_thread")]
async fn recover_tells_applied_from_recovered() {
    let (_world, node, _clients) = World::up([ContainerSpec::named("ill").health(Health::Unhealthy)]).await;
    let args = ["recover", "local/ill", "--reason", "test", "--wait", "--wait-timeout", "2s"];
    let run = document(&node, &args, 7)["run"].clone();
    assert_eq!(
        (&run["status"], &run["verification"]),
        (&"RUN_STATUS_APPLIED".into(), &"VERIFICATION_PENDING".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_ends_with_the_code_of_the_decision() {
    let (_world, node, _clients) = World::up([ContainerSpec::named("web")]).await;
    let good = document(&node, &["explain", "local/web"], 0);
    assert_eq!(good["decision"], "DECISION_OPENED");
    assert_eq!(
        good["checks"][0],
        serde_json::json!({
            "name": "engine", "verdict": "VERDICT_PASS", "detail": "the engine answered", "reasons": [],
        })
    );
    let bad = document(&node, &["explain", "local/web", "--grace", "301s"], 3);
    assert_eq!(bad["decision"], "DECISION_REFUSED");
    fails(&node, &["explain", "elsewhere/web"], 2, "the hosts are: local");
    fails(&node, &["explain", "local/web", "--grace", "soon"], 2, "length of time");
    let table = answered(relatch().args(["--addr", node.addr(), "explain", "local/web"]));
    assert_eq!(table.exit, 0, "{table:?}");
    assert!(table.stdout.contains("OPENED: ") && !table.stdout.contains("VERDICT_"), "{table:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_shown_and_watched() {
    let (_world, node, _clients) =
        World::up([ContainerSpec::named("web"), ContainerSpec::named("api")]).await;
    let web = node.recover("local/web", &["--wait=applied", "--request-id", "r-web"]).run_id();
    let api = node.recover("local/api", &["--wait=applied"]).run_id();
    let refused = node.recover("local/db", &[]).run_id();
    for (args, wanted) in [
        (&[][..], vec![&refused, &api, &web]),
        (&["--target", "local/api"], vec![&api]),
        (&["--host", "local"], vec![&refused, &api, &web]),
        (&["--host", "elsewhere"], vec![]),
        (&["--request-id", "r-web"], vec![&web]),
        (&["--status", "applied"], vec![&api, &web]),
        (&["--status", "REFUSED,RUN_STATUS_APPLIED", "--limit", "2"], vec![&refused, &api]),
    ] {
        let listed = document(&node, &[&["runs", "list"], args].concat(), 0);
        let ids: Vec<&str> =
            listed["runs"].as_array().unwrap().iter().map(|run| run["runId"].as_str().unwrap()).collect();
        assert_eq!(ids, wanted, "{args:?}");
    }
    assert_eq!(document(&node, &["runs", "show", &web[..8]], 0)["runId"], web.as_str());
    fails(&node, &["runs", "show", "00000000"], 1, "relatch runs list");
    fails(&node, &["runs", "show", "0"], 2, "is no id");
    fails(&node, &["runs", "list", "--status", "GONE"], 2, "possible values");
    fails(&node, &["runs", "list", "--limit", "0"], 2, "--limit");
    fails(&node, &["runs", "watch", "00000000"], 1, "no run's id begins so");

    let mut watching = relatch()
        .args(["-o", "json", "--addr", node.addr(), "runs", "watch"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let run: Value =
            serde_json::from_str(&lines.next().unwrap().unwrap()).expect("a document on each line");
        seen.push(run["runId"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, [web, api, refused], "the oldest change first");
    kill_process(Pid::from_child(&watching), Signal::INT).unwrap();
    assert_eq!(watching.wait().unwrap().code(), Some(0), "Ctrl-C is its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_resolve_runs_and_approve_starts() {
    let left_down = Rule::on(Endpoint::Restart).effect(Effect::StopOnly).status(500, "no exit event");
    let world = World::new([
        ContainerSpec::named("lost").rule(on_restart().cut(End::Fin)),
        ContainerSpec::named("down").rule(left_down),
        ContainerSpec::named("held")
            .rule(Rule::on(Endpoint::Restart).hold_effect(Hold::Until("work".into()))),
    ])
    .await;
    let (node, _clients) = world.start(&world.options).await;
    let lost = node.recover("local/lost", &[]).run_id();
    node.wait_for_status(&lost, "UNRESOLVED");
    let word = |run: &str| -> Vec<String> {
        ["resolve", run, "--by", "kim", "--reason", "seen", "--as", "applied"].map(ToOwned::to_owned).into()
    };
    let word = word(&lost[..8]);
    let word: Vec<&str> = word.iter().map(String::as_str).collect();
    let resolved = document(&node, &[&word[..], &["--accept-late-post", "--retry-for", "5s"]].concat(), 0);
    assert_eq!(resolved["run"]["resolution"]["assertion"], "ASSERTION_APPLIED");
    assert_eq!(resolved["run"]["disposition"], "DISPOSITION_UNCERTAIN");
    assert_eq!(document(&node, &word, 0)["repeatedAnswer"], true);
    fails(&node, &["resolve", &lost, "--by", "lee", "--reason", "seen"], 1, "OPERATOR_RESOLVED");
    let settled = node.cli(&["resolve", &lost, "--by", "lee", "--reason", "seen"]);
    assert!(!settled.stderr.contains("give the command again"), "it stays settled: {settled:?}");
    fails(&node, &["resolve", "00000000", "--by", "lee", "--reason", "seen"], 1, "relatch runs list");
    fails(
        &node,
        &["resolve", &lost, "--by", "lee", "--reason", "seen", "--as", "gone"],
        2,
        "possible values",
    );
    fails(&node, &["resolve", &lost, "--by", " ", "--reason", "seen"], 2, "operator: ");
    let nobody = |args: &[&str]| {
        let mut command = relatch();
        for variable in ["SUDO_USER", "USER", "LOGNAME"] {
            command.env_remove(variable);
        }
        answered(command.args(["-o", "json", "--addr", node.addr()]).args(args))
    };
    failed(&nobody(&["resolve", &lost, "--reason", "seen"]), 2, "--by NAME");
    failed(&nobody(&["approve-start", &lost, "--reason", "seen"]), 2, "--by NAME");
    failed(&nobody(&["hold", "--everything", "--reason", "seen"]), 2, "--by NAME");

    let down = node.recover("local/down", &[]).run_id();
    node.wait_for_run(&down, "target-down", |run| run["reasons"].to_string().contains("target-down"));
    let start_id = "cd".repeat(16);
    let approve = |run: &str, more: &[&str], exit| {
        let all = [&["approve-start", run, "--by", "kim", "--reason", "needed"], more].concat();
        document(&node, &all, exit)
    };
    let more = ["--start-id", &start_id, "--wait=applied", "--wait-timeout", "60s", "--retry-for", "5s"];
    let started = approve(&down, &more, 0);
    assert_eq!(
        (&started["startId"], &started["run"]["status"]),
        (&start_id.as_str().into(), &"RUN_STATUS_APPLIED".into())
    );
    let refused = approve(&down, &[], 3);
    assert_eq!(refused["reasons"][0]["code"], "run-settled");
    fails(&node, &["approve-start", &down, "--by", "kim", "--reason", "x", "--start-id", "1"], 2, "is no id");
    fails(&node, &["approve-start", "00000000", "--by", "kim", "--reason", "x"], 1, "relatch runs list");
    let reused = ["approve-start", &down, "--by", "kim", "--reason", "other", "--start-id", &start_id];
    fails(&node, &reused, 2, "use a new id");
    node.stop();

    // The dispatcher's own word comes before the operator's.
    let (node, _clients, point) = world.start_held_at("dispatch-before-connect").await;
    let run = node.recover("local/held", &[]).run_id();
    point.reached();
    let answer = node.cli(&["resolve", &run, "--by", "kim", "--reason", "seen"]);
    assert_eq!((answer.exit, &answer.run()["status"]), (5, &"RUN_STATUS_NOT_APPLIED".into()), "{answer:?}");
    assert!(answer.stderr.contains("the dispatcher's own word settled the run as NOT_APPLIED"), "{answer:?}");
    point.release();
}

#[tokio::test(flavor = "multi_thread")]
async fn holds_are_placed_listed_and_lifted() {
    let (_world, node, mut clients) = World::up([ContainerSpec::compose("shop", "web", 1)]).await;
    let by = ["--by", "kim", "--reason", "an upgrade"];
    let id = "ef".repeat(16);
    for scope in
        [&["local/shop/web"][..], &["--host", "local"], &["--project", "local/shop"], &["--everything"]]
    {
        let placed = document(&node, &[&["hold"], scope, &by].concat(), 0);
        assert_eq!(placed["hold"]["owner"], "HOLD_OWNER_OPERATOR", "{placed:#}");
        assert_eq!(document(&node, &["holds"], 0)["holds"], Value::Array(vec![placed["hold"].clone()]));
        document(&node, &["explain", "local/shop/web"], 3);
        let lifted =
            document(&node, &[&["unhold"], scope, &["--by", "kim", "--retry-for", "5s"]].concat(), 0);
        assert_eq!(lifted["lifted"], Value::Array(vec![placed["hold"].clone()]));
        fails(&node, &[&["unhold"], scope, &["--by", "kim"]].concat(), 1, "relatch holds");
    }
    let long = ["--id", &id, "--for", "99999999999h", "--retry-for", "5s"];
    let placed = document(&node, &[&["hold", "--everything"], &by[..], &long].concat(), 0);
    assert_eq!(placed["hold"]["endsIn"], "315576000000s", "the longest that can be told");
    let again = document(&node, &[&["hold", "--everything"], &by[..], &long].concat(), 0);
    assert_eq!(again["repeatedAnswer"], true);
    fails(&node, &[&["hold", "--everything", "--id", &id], &by[..]].concat(), 2, "use a new id");
    fails(&node, &[&["hold", "--everything", "--for", "0s"], &by[..]].concat(), 2, "holds nothing");
    fails(&node, &[&["hold"], &by[..]].concat(), 2, "required");
    fails(&node, &[&["hold", "--host", "elsewhere"], &by[..]].concat(), 2, "the hosts are: local");
    document(&node, &["unhold", "--id", &id[..8], "--by", "kim"], 0);
    fails(&node, &["unhold", "--id", &id[..8], "--by", "kim"], 1, "relatch holds");
    fails(&node, &["unhold", "--by", "kim"], 2, "required");

    // While a command runs: its code is the code, and the hold is gone after it.
    for (script, exit) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 128 + 15)] {
        let args = [&["hold", "--everything"], &by[..], &["--", "sh", "-c", script]].concat();
        assert_eq!(node.cli(&args).exit, exit, "{script}");
        assert_eq!(clients.standing().await, []);
    }
    for (command, exit) in [("/nowhere/to/be/found", 127), ("/dev/null", 126)] {
        let answer = node.cli(&[&["hold", "--everything"], &by[..], &["--", command]].concat());
        assert_eq!(answer.exit, exit, "{answer:?}");
        assert_eq!(clients.standing().await, []);
    }
    clients.place(hold(Scope::Everything(true))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_shown_and_changed() {
    let (world, node, mut clients) = World::up([]).await;
    let first = document(&node, &["limits"], 0);
    assert_eq!((&first["limits"]["graceMaxS"], &first["limits"]["marginMs"]), (&300.into(), &"20000".into()));
    let changed = document(&node, &["limits", "set", "margin_ms=30s", "attempts=5", "--retry-for", "5s"], 0);
    assert_eq!(
        (&changed["limits"]["marginMs"], &changed["limits"]["attempts"]),
        (&"30000".into(), &5.into())
    );
    assert_eq!(document(&node, &["limits"], 0)["limits"], changed["limits"]);
    for (wrong, said) in [
        (&["margin_ms=14999"][..], "limits.margin_ms: 14999 is not valid: it is at least 15000"),
        (&["connect_ms=25h"], "limits.connect_ms: 90000000 is not valid: it is at most 86400000"),
        (&["no_such=1"], "there is no limit \"no_such\""),
        (&["attempts=many"], "is no number"),
        (&["attempts=1", "attempts=2"], "given twice"),
        (&["attempts"], "NAME=VALUE"),
        (&[], "required"),
    ] {
        fails(&node, &[&["limits", "set"], wrong].concat(), 2, said);
    }
    assert_eq!(clients.limits().await.attempts, Some(5));
    node.stop();
    // A node that is started with limits of its own puts them in force.
    let options = world.options.clone().arg("--grace-max").arg("9s").arg("--margin").arg("15s");
    let (_node, mut clients) = world.start(&options).await;
    let now = clients.limits().await;
    assert_eq!((now.grace_max_s, now.grace_default_s, now.margin_ms), (Some(9), Some(9), Some(15_000)));
    assert_eq!(now.attempts, Some(5), "what it does not name stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_down_is_passed_over_and_one_that_alone_is_down_is_an_error() {
    let (_world, node, _clients) = World::up([ContainerSpec::named("web")]).await;
    // Bound and dropped: nobody listens there now.
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let both = format!("{dead},{}", node.addr());
    let by = ["--by", "kim", "--reason", "test"];
    let run = node.recover("local/db", &[]).run_id();
    let commands: [(Vec<&str>, i32); 8] = [
        (vec!["explain", "local/web"], 0),
        (vec!["recover", "local/web", "--reason", "test", "--wait=applied"], 0),
        (vec!["runs", "list"], 0),
        (vec!["runs", "show", &run], 0),
        (vec!["holds"], 0),
        (vec!["limits"], 0),
        ([&["hold", "local/web"], &by[..]].concat(), 0),
        (vec!["unhold", "local/web", "--by", "kim"], 0),
    ];
    for (args, exit) in &commands {
        let named = answered(relatch().args(["-o", "json", "--addr", &both]).args(args));
        assert_eq!((named.exit, named.json.is_object()), (*exit, true), "{named:?}");
    }
    let by_environment =
        answered(relatch().env("RELATCH_ADDR", &both).args(["--output", "json", "runs", "list"]));
    assert_eq!((by_environment.exit, by_environment.json.is_object()), (0, true), "{by_environment:?}");
    for (args, _) in &commands {
        let changes = ["recover", "hold", "unhold"].contains(&args[0]);
        let patience: &[&str] = if changes { &["--retry-for", "0s"] } else { &[] };
        let alone = answered(relatch().args(["-o", "json", "--addr", &dead]).args(args).args(patience));
        failed(&alone, 1, "relatch dev");
    }
    failed(&answered(relatch().args(["--addr", "not an address", "runs", "list"])), 2, "not an address");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_be_started_says_why() {
    let world = World::new([]).await;
    let data = world.path("data");
    let dev = |args: &[&str]| {
        answered(relatch().args(["dev", "--data-dir", &data, "--docker", &world.options.docker]).args(args))
    };
    failed(&dev(&["--listen", "0.0.0.0:0"]), 2, "listen on a loopback address");
    failed(&dev(&["--listen", "nowhere"]), 2, "--listen");
    failed(&dev(&["--listen", "127.0.0.1:0", "--margin", "14s"]), 2, "at least 15000");
    failed(&dev(&["--listen", "127.0.0.1:0", "--grace-max", "25h"]), 2, "at most 86400");
    failed(&dev(&["--listen", "127.0.0.1:0", "--grace-max", "1500ms"]), 2, "whole seconds");
    failed(
        &answered(relatch().args(["dev", "--data-dir", &data, "--docker", "ftp://engine"])),
        2,
        "ftp://engine",
    );
    let version = answered(relatch().args(["--version"]));
    assert_eq!((version.exit, version.stdout.starts_with("relatch ")), (0, true), "{version:?}");
    let nothing = answered(&mut relatch());
    assert_eq!((nothing.exit, nothing.stderr.contains("Usage: relatch")), (2, true), "{nothing:?}");
}
