//! One container under several names.

use relatch::docker::{Endpoint, Engine, EngineLimits, ListFilter};

use crate::support::dockerd::{Dockerd, RunOptions, unique_name};
use crate::support::node::Node;
use crate::support::pending::Pending;
use crate::support::proxy::OnRestart;
use crate::world::{World, assert_applied, codes, set_limits};

/// A node waits at a point of the test's own for as long as that takes.
const PATIENT: &[&str] = &["dispatch_by_ms=60s"];

#[test]
fn renamed_between_interlock_and_post_it_gets_one_post_by_its_id() {
    let mut world = World::new(RunOptions::default(), OnRestart::Pass);
    let (hold, options) = world.hold_at("coordinator-after-commit");
    let node = Node::start(&options);
    set_limits(&node, PATIENT);
    let (run, old) = (node.recover(&world.target(), &[]).run_id(), world.target());
    hold.reached();
    let renamed = unique_name("renamed");
    world.docker.rename(&world.name, &renamed);

    let attached = |spelling: &str| {
        let answer = node.recover(spelling, &[]);
        assert_eq!(answer.json["decision"], "DECISION_ATTACHED", "{spelling}: {answer:?}");
        assert_eq!(answer.run_id(), run, "{spelling}");
    };
    attached(&format!("local/{renamed}"));
    attached(&format!("local/{}", world.id));
    let nobody = node.recover(&old, &[]);
    assert_eq!((nobody.exit, codes(nobody.run())), (3, vec!["target-not-found".to_owned()]), "{nobody:?}");
    let other = world.docker.run_container(&world.name, RunOptions::default());
    attached(&old);

    hold.release();
    let run = node.wait_for_status(&run, "APPLIED");
    world.name = renamed;
    assert_applied(&world, &run);
    let posts = [&world.id, &other].map(|id| world.docker.posts(id));
    assert_eq!(posts, [1, 0], "{}", world.docker.log_tail());
    world.docker.rm(&other);
}

#[test]
fn two_processes_that_ask_at_once_under_two_spellings_share_one_interlock_and_one_post() {
    let project = unique_name("shop");
    let label = |key: &str, value: &str| (format!("com.docker.compose.{key}"), value.to_owned());
    let labels = vec![label("project", &project), label("service", "web"), label("container-number", "1")];
    let world = World::new(RunOptions { labels, ..RunOptions::default() }, OnRestart::Pass);
    let (hold, options) = world.hold_at("coordinator-after-commit");
    let node = Node::start(&options);
    set_limits(&node, PATIENT);
    let spellings = [format!("local/{project}/web"), world.target()];
    let asking = [&spellings[0], &spellings[1]].map(|spelling| Pending::recover(&node, spelling, &[]));
    let answers = asking.map(Pending::answer);
    let mut decisions = answers.each_ref().map(|answer| answer.json["decision"].as_str().unwrap_or_default());
    decisions.sort_unstable();
    assert_eq!(decisions, ["DECISION_ATTACHED", "DECISION_OPENED"], "{answers:?}");
    assert_eq!(answers[0].run_id(), answers[1].run_id());
    assert_eq!(answers[0].run()["target"], format!("local/{project}/web/1"), "{answers:?}");
    hold.release();
    let run = node.wait_for_status(&answers[0].run_id(), "APPLIED");
    assert_applied(&world, &run);
    assert_eq!(world.docker.posts(&world.id), 1, "{}", world.docker.log_tail());
    assert_eq!(node.runs().len(), 1);
}

/// What is asked for by name is read from a list that the engine itself narrows.
#[test]
fn an_engine_lets_pass_what_has_that_name_or_those_labels() {
    let docker = Dockerd::shared();
    let (name, project) = (unique_name("narrow"), unique_name("shop"));
    let label = |key: &str, value: &str| (format!("com.docker.compose.{key}"), value.to_owned());
    let labels = |service: &str| vec![label("project", &project), label("service", service)];
    let names = [name.clone(), format!("{name}-2"), format!("x{name}"), unique_name("narrow.other")];
    let ids = names.each_ref().map(|name| {
        let service = if *name == names[3] { "api" } else { "web" };
        docker.run_container(name, RunOptions { labels: labels(service), ..RunOptions::default() })
    });
    let engine =
        Engine::new(Endpoint::parse(&docker.endpoint()).expect("an endpoint"), EngineLimits::default());
    let listed = |filter: ListFilter| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut ids: Vec<String> = runtime
            .block_on(engine.list(&filter))
            .expect("a list")
            .into_iter()
            .map(|container| container.id.to_string())
            .collect();
        ids.sort_unstable();
        ids
    };
    for at in [0, 3] {
        let by_name = listed(ListFilter { name: Some(names[at].clone()), ..ListFilter::default() });
        assert_eq!(by_name, [ids[at].clone()], "{}", names[at]);
    }
    let wanted = labels("web").iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut web = ids[..3].to_vec();
    web.sort_unstable();
    assert_eq!(listed(ListFilter { labels: wanted, ..ListFilter::default() }), web);
    for id in &ids {
        docker.rm(id);
    }
}
