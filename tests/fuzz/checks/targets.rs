//! The spellings of targets, `--expect`, and every other id.

use std::str::FromStr;

use relatch::cli::fuzzing as cli;
use relatch::docker::format_instant;
use relatch::model::{
    ClusterId, ContainerId, EngineId, HoldId, HostName, JournalId, ProcessNonce, RequestId, RunId, Target,
};

use super::engine::is_harmless;
use super::records::as_itself;

/// What is read is written as it was; what is not is refused in a bounded text.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    target(text);
    if let Ok((id, started_at)) = cli::expect(text) {
        for instant in [format_instant(started_at), started_at.to_string()] {
            let written = format!("{id}@{instant}");
            assert_eq!(cli::expect(&written), Ok((id.clone(), started_at)), "{written}");
        }
    }
    ids::<ClusterId>(text);
    ids::<RunId>(text);
    ids::<HoldId>(text);
    ids::<ProcessNonce>(text);
    ids::<JournalId>(text);
    ids::<ContainerId>(text);
    ids::<EngineId>(text);
    ids::<RequestId>(text);
    ids::<HostName>(text);
    let plain = cli::plain(text);
    assert!(is_harmless(&plain), "{plain:?}");
}

fn ids<T: FromStr<Err: ToString> + ToString>(text: &str) {
    match text.parse::<T>() {
        Ok(id) => assert_eq!(id.to_string(), text),
        Err(error) => bounded(&error.to_string()),
    }
}

fn target(text: &str) {
    match Target::parse(text) {
        Ok(target) => {
            assert_eq!(target.to_string(), text);
            reads_back(&target);
            // What a hold is placed under while no container answers to the spelling.
            reads_back(&target.clone().first_replica());
            let parts = target.path().split('/').count();
            assert_eq!(target.project().is_some(), parts == 3, "{text}");
        }
        Err(error) => bounded(&error.to_string()),
    }
    // What is made of an engine's words.
    let host = HostName::new("local").expect("a host name");
    if let Ok(named) = Target::container(&host, text) {
        reads_back(&named);
    }
    let mut parts = text.splitn(3, '\n');
    if let (Some(project), Some(service), Some(number)) = (parts.next(), parts.next(), parts.next())
        && let Ok(made) = Target::compose(&host, project, service, number.parse().unwrap_or(1))
    {
        reads_back(&made);
    }
    as_itself::<Target>(text.as_bytes());
}

fn reads_back(target: &Target) {
    let text = target.to_string();
    assert_eq!(Target::parse(&text).as_ref(), Ok(target), "{text}");
    let stored = serde_json::to_vec(target).expect("a target is JSON");
    match serde_json::from_slice::<Target>(&stored) {
        Ok(again) => assert_eq!(&again, target),
        Err(error) => panic!("a target that is stored is not read back: {error}"),
    }
}

fn bounded(error: &str) {
    assert!(error.len() < 2_000 && !error.contains(char::is_control), "{} bytes: {error:?}", error.len());
}
