//! What is checked, one file per subject. Each has a plain `check(data)`, which both the short runs of
//! `tests/fuzz` and the coverage-guided runs of `fuzz/` call with bytes of any kind. A check fails by a panic.

mod endpoints;
mod engine;
mod events;
mod identity;
mod journal;
mod ledger;
mod lengths;
mod looks;
mod messages;
mod posts;
mod raft;
mod records;
mod requests;
mod same;
mod snapshots;
mod targets;
mod times;

/// One subject: its name, which is also the folder of its seeds, and its check.
#[derive(Clone, Copy)]
pub struct Subject {
    pub name: &'static str,
    pub check: fn(&[u8]),
}

/// Every subject.
pub const SUBJECTS: &[Subject] = &[
    Subject { name: "raft", check: raft::check },
    Subject { name: "records", check: records::check },
    Subject { name: "ledger", check: ledger::check },
    Subject { name: "snapshots", check: snapshots::check },
    Subject { name: "journal", check: journal::check },
    Subject { name: "identity", check: identity::check },
    Subject { name: "posts", check: posts::check },
    Subject { name: "looks", check: looks::check },
    Subject { name: "events", check: events::check },
    Subject { name: "times", check: times::check },
    Subject { name: "lengths", check: lengths::check },
    Subject { name: "targets", check: targets::check },
    Subject { name: "requests", check: requests::check },
    Subject { name: "messages", check: messages::check },
    Subject { name: "endpoints", check: endpoints::check },
];

/// The subject of that name.
pub fn subject(name: &str) -> Subject {
    *SUBJECTS
        .iter()
        .find(|subject| subject.name == name)
        .unwrap_or_else(|| panic!("there is no subject {name:?}; there are: {:?}", names()))
}

fn names() -> Vec<&'static str> {
    SUBJECTS.iter().map(|subject| subject.name).collect()
}

/// The first byte as a choice, and the rest.
fn choice(data: &[u8]) -> (u8, &[u8]) {
    data.split_first().map_or((0, data), |(first, rest)| (*first, rest))
}
