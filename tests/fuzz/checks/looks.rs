//! What an engine shows when it is looked at: its version, itself, one container, all of them.

use relatch::docker::{ContainerSummary, EngineError, EngineInfo, Inspection, ListFilter, parse_started_at};
use relatch::model::{ContainerId, ContainerState, Health, Observation, Target};
use serde_json::Value;

use super::choice;
use super::engine::{InMemory, Script, is_harmless, reply, wait};

const INFO: &[u8] = br#"{"ID":"E1","Name":"host","ServerVersion":"20.10.24"}"#;

/// The first byte says what the bytes after it are: the body of an answer, or all of it, head included.
pub fn check(data: &[u8]) {
    let (kind, shown) = choice(data);
    let whole = kind & 128 != 0;
    let answer = if whole { shown.to_vec() } else { reply(if kind & 64 == 0 { 200 } else { 404 }, shown) };
    let (ping, info) = (reply(200, b"OK"), reply(200, INFO));
    let at_once = if kind & 32 == 0 { 1 << 20 } else { 7 };
    let engine = |mut replies: Vec<Vec<u8>>| {
        if whole {
            // Where an answer is not whole, the connection ends with it: nothing here waits for time.
            let last = replies.iter().position(|reply| *reply == answer).map_or(0, |at| at + 1);
            replies.truncate(last);
        }
        InMemory::new(Script { replies, at_once, ..Script::default() }).client()
    };
    // The library's own word for what it cannot read is a text too.
    let text = (!whole).then(|| serde_json::from_slice::<Value>(shown).ok()).flatten();
    match kind & 7 {
        0 => {
            let looked = wait(engine(vec![answer.clone(), info]).identify());
            if let Err(error) = looked {
                is_bounded(&error);
            }
        }
        1 => match wait(engine(vec![ping, answer.clone()]).identify()) {
            Ok(found) => identified(&found, text.as_ref()),
            Err(error) => is_bounded(&error),
        },
        2 => match wait(engine(vec![ping, answer.clone()]).list(&ListFilter::default())) {
            Ok(found) => listed(&found, text.as_ref()),
            Err(error) => is_bounded(&error),
        },
        _ => {
            let id = ContainerId::new("1".repeat(64)).expect("64 hex digits");
            let replies = vec![ping, info, answer.clone()];
            match wait(engine(replies.clone()).inspect(id.as_str())) {
                Ok(found) => inspected(&found, text.as_ref()),
                Err(error) => is_bounded(&error),
            }
            match wait(engine(replies).observe(&id)) {
                Observation::Seen(seen) => assert_eq!(seen.container_id, id, "another container"),
                Observation::Gone { engine_id, .. } => {
                    assert_eq!(engine_id.as_str(), "E1");
                    assert!(whole || kind & 64 != 0, "gone, and the engine did not say so");
                }
                Observation::Unreadable { detail } => assert!(detail.len() < 8_000, "{detail}"),
            }
        }
    }
}

fn is_bounded(error: &EngineError) {
    let text = error.to_string();
    assert!(text.len() < 8_000 && is_harmless(&text), "{} bytes: {text:?}", text.len());
}

fn identified(found: &EngineInfo, text: Option<&Value>) {
    let Some(text) = text else { return };
    assert_eq!(text["ID"], found.engine_id.as_str());
    assert!(found.api_version.to_string() == "1.41", "{}", found.api_version);
}

fn listed(found: &[ContainerSummary], text: Option<&Value>) {
    if let Some(Value::Array(shown)) = text {
        assert_eq!(found.len(), shown.len(), "a list is whole or an error");
        for (one, shown) in found.iter().zip(shown) {
            assert_eq!(shown["Id"], one.id.as_str());
            assert_eq!(one.state == ContainerState::Running, shown["State"] == "running", "{shown}");
        }
    }
    // Each is found by its own id, under a target that reads back.
    for one in found.iter().take(20) {
        let spelling = Target::parse(&format!("local/{}", one.id)).expect("an id is a spelling");
        if let Some((_, target)) = relatch::coordinator::fuzzing::resolved(&spelling, found) {
            assert_eq!(Target::parse(&target.to_string()), Ok(target));
        }
    }
}

fn inspected(found: &Inspection, text: Option<&Value>) {
    let seen = &found.sighting;
    assert_eq!(seen.engine_id.as_str(), "E1");
    let Some(shown) = text else { return };
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let state = &shown["State"];
    assert_eq!(shown["Id"], seen.container_id.as_str());
    assert_eq!(parse_started_at(&word(&state["StartedAt"])), seen.started_at, "{state}");
    assert_eq!(parse_started_at(&word(&state["FinishedAt"])).instant(), seen.finished_at, "{state}");
    assert_eq!(seen.state == ContainerState::Running, state["Status"] == "running", "{state}");
    assert_eq!(seen.health == Health::Unhealthy, state["Health"]["Status"] == "unhealthy", "{state}");
    for (key, value) in &found.labels {
        assert_eq!(shown["Config"]["Labels"][key], value.as_str());
    }
    let stop_timeout = &shown["Config"]["StopTimeout"];
    assert_eq!(found.stop_timeout_s, stop_timeout.as_i64(), "{stop_timeout}");
    if let Some(check) = found.health_check {
        let longest_ms = i64::MAX.unsigned_abs() / 1_000_000 + 1;
        let times = [check.interval_ms, check.timeout_ms, check.start_period_ms];
        assert!(times.iter().all(|ms| *ms <= longest_ms) && check.interval_ms > 0 && check.timeout_ms > 0);
    }
}
