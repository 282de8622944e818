//! What is said of a container after its restart was applied.

use super::*;

/// The verify window of a container without a health check.
const WINDOW_MS: u64 = 30_000;

/// A run of a container that was seen to run again, and when its verify window ends.
fn applied(world: &mut World, check: Option<HealthCheck>) -> RunId {
    let mut ask = world.ask();
    ask.0.baseline.health_check = check;
    let run = world.open(ask);
    world.exchanged(&run, replied(204, Wire::Unix, EngineProof::Proven));
    world.observe(&run, seen(StartedAt::At(at(200))));
    assert_eq!(world.word(&run), "APPLIED");
    run
}

fn check() -> HealthCheck {
    HealthCheck { interval_ms: 10_000, timeout_ms: 5_000, start_period_ms: 0 }
}

fn looks(state: ContainerState, health: Health) -> Sighting {
    Sighting { state, health, finished_at: Some(at(250)), ..sighting(StartedAt::At(at(200))) }
}

/// Why the container is not well.
fn unwell(world: &World, run: &RunId) -> Option<ReasonCode> {
    world.run(run).unwell.as_ref().map(|reason| reason.code)
}

#[test]
fn without_a_health_check_it_is_watched_to_the_end_of_a_window_and_then_unverified() {
    let mut world = World::roomy();
    let run = applied(&mut world, None);
    assert_eq!(world.run(&run).verification, Verification::Pending { until: ClusterTime(WINDOW_MS) });
    assert_eq!(world.run(&run).verify_window_ms(), Some(WINDOW_MS));
    let runs = || Some(looks(ContainerState::Running, Health::None));
    world.clock_ms = WINDOW_MS - 1;
    assert_eq!(world.verify(&run, runs()), Outcome::Recorded { changed: false });
    world.clock_ms = WINDOW_MS;
    world.verify(&run, runs());
    assert_eq!((world.run(&run).verification, unwell(&world, &run)), (Verification::Unverified, None));
}

#[test]
fn one_that_went_down_again_is_not_recovered_and_says_since_when_and_what_is_to_be_done() {
    for check in [None, Some(check())] {
        for state in [ContainerState::Exited, ContainerState::Dead] {
            let mut world = World::roomy();
            let run = applied(&mut world, check);
            world.clock_ms = 5;
            // What its health check said last is not what it says.
            world.verify(&run, Some(looks(state, Health::Healthy)));
            assert_eq!(world.run(&run).verification, Verification::NotRecovered);
            let [reason] = world.run(&run).reasons_at(ClusterTime(5)).try_into().unwrap();
            assert_eq!((reason.code, reason.since), (ReasonCode::TargetWentDown, world.wall()));
            assert!(reason.detail.contains(&format!("since {}", at(250))), "{}", reason.detail);
            assert!(reason.code.ends_when().contains("starts the container"));
            assert_eq!(world.word(&run), "APPLIED", "what was applied stays so");
        }
    }
}

#[test]
fn the_life_before_and_another_container_say_nothing_about_this_one() {
    let mut world = World::roomy();
    let run = applied(&mut world, None);
    let down = looks(ContainerState::Exited, Health::None);
    for other in [
        Sighting { started_at: StartedAt::At(at(100)), ..down.clone() },
        Sighting { container_id: container("2"), ..down.clone() },
        Sighting { engine_id: engine("E2"), ..down },
    ] {
        assert_eq!(world.verify(&run, Some(other)), Outcome::Recorded { changed: false });
    }
}

#[test]
fn at_the_end_of_the_window_only_what_is_seen_to_run_is_not_held_against_it() {
    use ContainerState as S;
    use Verification::{NotRecovered, Unverified};
    for (check, look, verification, code) in [
        (None, Some((S::Running, Health::None)), Unverified, None),
        (None, Some((S::Paused, Health::None)), Unverified, None),
        (None, Some((S::Restarting, Health::None)), NotRecovered, Some(ReasonCode::TargetWentDown)),
        (None, None, Unverified, Some(ReasonCode::TargetNotSeen)),
        (
            Some(check()),
            Some((S::Running, Health::Starting)),
            NotRecovered,
            Some(ReasonCode::TargetNotHealthy),
        ),
        (Some(check()), Some((S::Running, Health::Healthy)), Verification::Recovered, None),
        (Some(check()), None, Unverified, Some(ReasonCode::TargetNotSeen)),
    ] {
        let mut world = World::roomy();
        let run = applied(&mut world, check);
        world.clock_ms = 45_000;
        let sighting = look.map(|(state, health)| looks(state, health));
        let unseen = sighting.is_none().then(|| "the engine hangs".to_owned());
        let look = Verify { run: run.clone(), sighting, unseen, gone: None };
        let told = world.ledger.verification_after(ClusterTime(45_000), &look);
        world.apply(Command::Verify(Box::new(look.clone())));
        assert_eq!((world.run(&run).verification, unwell(&world, &run)), (verification, code), "{look:?}");
        assert_eq!(told, Some(verification), "who asks before is told the same");
        let detail = &world.run(&run).events.last().unwrap().detail;
        assert_eq!(detail.contains("the engine hangs"), look.sighting.is_none(), "{detail}");
    }
}

/// How the verification ends of a run that could not be seen, and was said by that engine to be gone.
fn unseen(level: u32, gone: Option<&str>) -> (Verification, Option<ReasonCode>) {
    let mut world = World::under_the_first_rules(roomy_limits());
    world.apply(Command::RaiseRulesLevel { level });
    let run = applied(&mut world, Some(check()));
    let unseen = Some("test".to_owned());
    let look = Verify { run: run.clone(), sighting: None, unseen, gone: gone.map(engine) };
    for clock_ms in [44_999, 45_000] {
        assert!(matches!(world.run(&run).verification, Verification::Pending { .. }), "at {clock_ms}");
        world.clock_ms = clock_ms;
        world.apply(Command::Verify(Box::new(look.clone())));
    }
    (world.run(&run).verification, unwell(&world, &run))
}

#[test]
fn who_could_not_look_knows_nothing_and_only_its_own_engine_says_that_it_is_gone() {
    let not_seen = Some(ReasonCode::TargetNotSeen);
    assert_eq!(unseen(4, None), (Verification::Unverified, not_seen));
    assert_eq!(unseen(4, Some("E2")), (Verification::Unverified, not_seen), "another engine");
    assert_eq!(unseen(4, Some("E1")), (Verification::NotRecovered, not_seen));
    assert_eq!(unseen(3, None), (Verification::NotRecovered, not_seen), "under the rules before");
}

#[test]
fn under_the_rules_before_nobody_looks_at_what_has_no_health_check() {
    for level in 1..=2 {
        let mut world = World::under_the_first_rules(roomy_limits());
        world.apply(Command::RaiseRulesLevel { level });
        let run = applied(&mut world, None);
        assert_eq!(world.run(&run).verification, Verification::Unverified, "rules of level {level}");
        // And one that is down is only said to be not healthy, at the end.
        let mut world = World::under_the_first_rules(roomy_limits());
        world.apply(Command::RaiseRulesLevel { level });
        let run = applied(&mut world, Some(check()));
        let down = || Some(looks(ContainerState::Exited, Health::None));
        assert_eq!(world.verify(&run, down()), Outcome::Recorded { changed: false });
        world.clock_ms = 45_000;
        world.verify(&run, down());
        let seen = (world.run(&run).verification, unwell(&world, &run));
        assert_eq!(seen, (Verification::NotRecovered, None), "rules of level {level}");
    }
}
