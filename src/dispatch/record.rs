//! The journal's records, as they are stored. JSON, with no field that is not named here.

use serde::{Deserialize, Serialize};

use crate::model::{ClusterId, ContainerId, Exchange, Fence, JournalId, JournalWord, Term};

/// What there is one of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) journal: JournalId,
    pub(super) cluster: ClusterId,
    /// How many changes were written.
    pub(super) sequence: u64,
    /// The highest term accepted.
    pub(super) term: Term,
}

/// What is known of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunRecord {
    pub(super) fence: Fence,
    pub(super) container_id: ContainerId,
    /// "I am about to send."
    pub(super) intent: bool,
    /// It will never be sent, if it was not.
    pub(super) revoked: bool,
    /// How its exchange ended, once it did.
    pub(super) end: Option<Exchange>,
}

impl RunRecord {
    pub(super) fn word(&self) -> JournalWord {
        match (&self.end, self.intent) {
            (Some(Exchange::NeverWritten(_)), _) => JournalWord::NotSent,
            (_, true) => JournalWord::Intent,
            (_, false) => JournalWord::NoIntent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LogIndex, NotWritten, NotWrittenCause};

    /// What lies on disk must stay readable: a change of these texts needs a new version of the family.
    #[test]
    fn the_stored_forms_are_these() {
        let cluster = ClusterId::new("c".repeat(32)).unwrap();
        let head = Head {
            journal: JournalId::new("a".repeat(32)).unwrap(),
            cluster: cluster.clone(),
            sequence: 7,
            term: Term(3),
        };
        let run = RunRecord {
            fence: Fence { cluster, term: Term(3), index: LogIndex(9) },
            container_id: ContainerId::new("1".repeat(64)).unwrap(),
            intent: true,
            revoked: true,
            end: Some(Exchange::NeverWritten(NotWritten {
                cause: NotWrittenCause::TicketExpired,
                detail: "late".to_owned(),
            })),
        };
        let (a, c, id) = ("a".repeat(32), "c".repeat(32), "1".repeat(64));
        let head_text = format!(r#"{{"journal":"{a}","cluster":"{c}","sequence":7,"term":3}}"#);
        let run_text = format!(
            r#"{{"fence":{{"cluster":"{c}","term":3,"index":9}},"container_id":"{id}","intent":true,"revoked":true,"end":{{"never-written":{{"cause":"ticket-expired","detail":"late"}}}}}}"#
        );
        assert_eq!(serde_json::to_string(&head).unwrap(), head_text);
        assert_eq!(serde_json::to_string(&run).unwrap(), run_text);
        assert_eq!(serde_json::from_str::<Head>(&head_text).unwrap(), head);
        assert_eq!(serde_json::from_str::<RunRecord>(&run_text).unwrap(), run);
        assert!(serde_json::from_str::<Head>(&head_text.replace("term", "surprise")).is_err());
    }
}
