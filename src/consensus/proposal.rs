//! The two questions that a leader asks of the others: "may this be?" and "is it still me?"

use std::time::Duration;

use openraft::LinearizerOption;
use openraft::errors::{ClientWriteError, LinearizableReadError, RaftError};
use openraft::impls::ProgressResponder;
use openraft::raft::ClientWriteResult;

use super::error::{AuthorityLost, ProposeError};
use super::node::Consensus;
use super::state_machine::position;
use super::type_config::{Proposal, TypeConfig};
use crate::ledger::{Command, EntryPosition, Ledger, Outcome, Stamped};
use crate::model::{LogIndex, NodeId, Term, WallTime};

impl Consensus {
    /// Proposes a command, tied to a term: it is appended only while this node leads `term`, and answered
    /// once it is committed and applied here.
    ///
    /// It is stamped here, with the rules level, the cluster clock, the wall clock and this node. If the
    /// future is dropped, the proposal may still be committed, as after [`ProposeError::Unknown`].
    ///
    /// # Errors
    ///
    /// [`ProposeError`]. A time-out is `Unknown`, and so is whatever is not known for certain: never a "no".
    pub async fn propose(
        &self,
        term: Term,
        command: Command,
        timeout_ms: u64,
    ) -> Result<(EntryPosition, Outcome), ProposeError> {
        let inner = &self.inner;
        let stamped = Stamped {
            // The rules in force, or what the command itself brings into force: an older member reads both.
            level: command.level().max(self.read(Ledger::rules_level)),
            clock: self.cluster_time(),
            wall: WallTime(inner.clock.wall_ms()),
            node: inner.node,
            command,
        };
        reads_back(&stamped).map_err(|detail| ProposeError::Unstorable { term, detail })?;
        let (responder, answer) = ProgressResponder::complete_only();
        let exchange = async {
            let write = inner.raft.write(Proposal(stamped)).with_leader(term.0).responder(responder);
            // Refused before it was handed over: the core takes no more.
            write.await.map_err(|_| ProposeError::Stopped { term })?;
            // From here on it may be appended, whatever happens to the answer.
            match answer.await {
                Ok(result) => answered(term, result),
                Err(_) => Err(unknown(term, "consensus ended before it answered")),
            }
        };
        match tokio::time::timeout(Duration::from_millis(timeout_ms), exchange).await {
            Ok(result) => result,
            Err(_) => Err(unknown(term, format!("no answer within {timeout_ms} ms"))),
        }
    }

    /// Confirms that this node leads `term`, by a round of heartbeats to a quorum that begins now
    /// (ReadIndex; no lease is believed), and waits until everything committed by then is applied here.
    ///
    /// Gives the index that was waited for: [`Consensus::read`] now shows at least that.
    ///
    /// # Errors
    ///
    /// [`AuthorityLost`] if that was not shown within `timeout_ms`.
    pub async fn confirm_authority(&self, term: Term, timeout_ms: u64) -> Result<LogIndex, AuthorityLost> {
        let limit = Duration::from_millis(timeout_ms);
        let begun_ms = self.inner.clock.monotonic_ms();
        let unconfirmed = |detail: String| AuthorityLost::Unconfirmed { term, detail };
        let option = LinearizerOption::new(Some(Duration::ZERO), true).with_wait_timeout(limit);

        let asked = tokio::time::timeout(limit, self.inner.raft.get_read_linearizer(option)).await;
        let linearizer = match asked {
            Err(_) => return Err(unconfirmed(format!("no answer within {timeout_ms} ms"))),
            Ok(Ok(linearizer)) => linearizer,
            Ok(Err(RaftError::Fatal(_))) => return Err(AuthorityLost::Stopped { term }),
            Ok(Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(forward)))) => {
                return Err(AuthorityLost::NotLeader { term, leader: forward.leader_id.map(NodeId) });
            }
            Ok(Err(RaftError::APIError(LinearizableReadError::QuorumNotEnough(error)))) => {
                return Err(unconfirmed(error.to_string()));
            }
        };
        let found = Term(linearizer.read_log_id().committed_leader_id().term);
        if found != term {
            return Err(AuthorityLost::OtherTerm { term, found });
        }
        let index = linearizer.read_log_id().index();
        let elapsed_ms = self.inner.clock.monotonic_ms().saturating_sub(begun_ms);
        let left = Duration::from_millis(timeout_ms.saturating_sub(elapsed_ms));
        match linearizer.try_await_ready(&self.inner.raft, Some(left)).await {
            Ok(Ok(_)) => Ok(LogIndex(index)),
            Ok(Err(_)) => Err(unconfirmed(format!("entry {index} was not applied within {timeout_ms} ms"))),
            Err(_) => Err(AuthorityLost::Stopped { term }),
        }
    }
}

/// What is stored must read back: a type that takes more than it accepts again would poison the log.
fn reads_back(stamped: &Stamped) -> Result<(), String> {
    let stored = serde_json::to_vec(stamped).map_err(|error| error.to_string())?;
    let read: Stamped = serde_json::from_slice(&stored).map_err(|error| error.to_string())?;
    if read == *stamped { Ok(()) } else { Err("it reads back as another".to_owned()) }
}

fn unknown(term: Term, detail: impl Into<String>) -> ProposeError {
    ProposeError::Unknown { term, detail: detail.into() }
}

/// What the core's answer to a proposal means.
fn answered(
    term: Term,
    result: ClientWriteResult<TypeConfig>,
) -> Result<(EntryPosition, Outcome), ProposeError> {
    match result {
        Ok(response) => match response.data.0 {
            Some(outcome) => Ok((position(&response.log_id), outcome)),
            None => Err(unknown(term, "its entry came back without an outcome")),
        },
        // The one answer that is given before anything is appended.
        Err(ClientWriteError::ForwardToLeader(forward)) => {
            Err(ProposeError::NotLeader { term, leader: forward.leader_id.map(NodeId) })
        }
        Err(error) => Err(unknown(term, error.to_string())),
    }
}
