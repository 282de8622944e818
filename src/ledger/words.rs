//! What the ledger has seen, in words for people.
//!
//! The texts are part of the state, which every node must come to alike: those of earlier levels of rules stay
//! as they were, `rules` being the level in force.

use super::status::Evidence;
use crate::model::{ContainerState, Exchange, Health, JournalWord, Observation, Reply, StartedAt};

/// The rules that brought words in place of the names that the code has for things.
const IN_WORDS: u32 = 3;

/// The rules that brought words for what a start did.
const START_IN_WORDS: u32 = 4;

/// What a container is doing, as in `web is running`.
pub(super) fn state(rules: u32, state: ContainerState) -> String {
    if rules < IN_WORDS { format!("{state:?}") } else { state.as_str().to_owned() }
}

/// What a container's health check says.
pub(super) fn health(rules: u32, health: Health) -> String {
    match health {
        health if rules < IN_WORDS => format!("its health is {health:?}"),
        Health::None => "it has no health check".to_owned(),
        health => format!("its health check says {}", health.as_str()),
    }
}

/// When a container was started, as it shows it.
pub(super) fn started(rules: u32, started_at: &StartedAt) -> String {
    match started_at {
        other if rules < IN_WORDS => format!("{other:?}"),
        StartedAt::At(at) => at.to_string(),
        StartedAt::Zero => "the zero time".to_owned(),
        StartedAt::Empty => "no time".to_owned(),
        StartedAt::Unreadable(text) => format!("{text:?}"),
    }
}

/// What a look at a container showed.
pub(super) fn observation(rules: u32, observation: &Observation) -> String {
    match observation {
        Observation::Seen(seen) => {
            let state = state(rules, seen.state);
            match &seen.started_at {
                StartedAt::At(at) => format!("{state}, started {at}"),
                other if rules < IN_WORDS => format!("{state}, StartedAt {other:?}"),
                other => format!("{state}, StartedAt is {}", started(rules, other)),
            }
        }
        Observation::Gone { successor: Some(id), .. } => format!("gone; {id} answers to its name"),
        Observation::Gone { successor: None, .. } => "gone".to_owned(),
        Observation::Unreadable { detail } => format!("unreadable: {detail}"),
    }
}

/// What the wire showed.
pub(super) fn exchange(exchange: &Exchange) -> String {
    match exchange {
        Exchange::NeverWritten(why) => format!("no byte was written: {}", why.detail),
        Exchange::Written { bytes, reply: Reply::Lost(lost), .. } => {
            format!("{bytes} bytes written, no whole reply: {}", lost.detail)
        }
        Exchange::Written { bytes, reply: Reply::Complete { status, message, .. }, .. } => {
            format!("{bytes} bytes written, reply {status} {message}").trim_end().to_owned()
        }
    }
}

/// What the journal says, as in `the journal says …`.
pub(super) fn journal(word: &JournalWord) -> String {
    match word {
        JournalWord::NoIntent => "no intent, revoked".to_owned(),
        JournalWord::Intent => "intent".to_owned(),
        JournalWord::NotSent => "not sent".to_owned(),
        JournalWord::Unreachable { detail } => format!("nothing: {detail}"),
    }
}

/// What stands behind `applied`.
pub(super) fn evidence(rules: u32, evidence: Evidence) -> String {
    match evidence {
        Evidence::ByFollowUpStart if rules < START_IN_WORDS => {
            "a later StartedAt, by-follow-up-start".to_owned()
        }
        other => other.to_string(),
    }
}

/// The bound of something that ends in `left_ms`, at `until` on the cluster clock.
pub(super) fn bound(rules: u32, until: crate::model::ClusterTime, left_ms: u64) -> String {
    if rules < IN_WORDS {
        format!("at the latest until {until}")
    } else {
        format!("for at most {}", length(left_ms))
    }
}

/// A length of time, to the next whole second: two units at most.
fn length(ms: u64) -> String {
    let seconds = ms.div_ceil(1_000);
    let two = |large: u64, large_unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600.. => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ClusterTime;

    #[test]
    fn a_bound_is_told_as_people_tell_time_once_the_rules_know_how() {
        let until = ClusterTime(898_876);
        assert_eq!(bound(2, until, 600_000), "at the latest until 898876 ms");
        for (left_ms, told) in [
            (0, "for at most 0 s"),
            (1, "for at most 1 s"),
            (59_000, "for at most 59 s"),
            (600_000, "for at most 10 min"),
            (638_000, "for at most 10 min 38 s"),
            (86_400_000, "for at most 24 h"),
            (5_430_000, "for at most 1 h 30 min"),
        ] {
            assert_eq!(bound(3, until, left_ms), told);
        }
    }

    #[test]
    fn what_was_seen_is_told_in_words_once_the_rules_know_them() {
        assert_eq!((state(2, ContainerState::Running), state(3, ContainerState::Running)), {
            ("Running".to_owned(), "running".to_owned())
        });
        assert_eq!(health(2, Health::None), "its health is None");
        assert_eq!(health(3, Health::None), "it has no health check");
        assert_eq!(health(3, Health::Unhealthy), "its health check says unhealthy");
        assert_eq!(evidence(3, Evidence::ByFollowUpStart), "a later StartedAt, by-follow-up-start");
        assert_eq!(
            evidence(4, Evidence::ByFollowUpStart),
            "a later StartedAt, after a start that was approved"
        );
        assert_eq!((started(2, &StartedAt::Zero), started(3, &StartedAt::Zero)), {
            ("Zero".to_owned(), "the zero time".to_owned())
        });
    }
}
