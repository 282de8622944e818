//! Raft's messages, to and from protobuf. Entries travel in the form that the log stores.

use openraft::raft::{
    AppendEntriesRequest, StreamAppendError, StreamAppendResult, VoteRequest, VoteResponse,
};
use openraft::vote::RaftLeaderId as _;

use super::super::stored::StoredEntry;
use super::super::type_config::{LogId, TypeConfig, Vote};
use crate::rpc::raft::{self as proto, append_response::Answer};

/// A message that is not as it must be.
pub(super) type Malformed = String;

pub(super) fn from_vote(vote: &Vote) -> proto::Ballot {
    let leader = vote.leader_id();
    proto::Ballot { term: leader.term(), node: *leader.node_id(), committed: vote.is_committed() }
}

pub(super) fn to_vote(ballot: Option<proto::Ballot>) -> Result<Vote, Malformed> {
    let proto::Ballot { term, node, committed } = ballot.ok_or("it has no vote")?;
    Ok(if committed { Vote::new_committed(term, node) } else { Vote::new(term, node) })
}

pub(super) fn from_log_id(id: &LogId) -> proto::LogId {
    proto::LogId { term: id.committed_leader_id().term, index: id.index() }
}

pub(super) fn to_log_id(id: proto::LogId) -> LogId {
    LogId::new_term_index(id.term, id.index)
}

pub(super) fn from_append(request: AppendEntriesRequest<TypeConfig>) -> proto::AppendRequest {
    let entry =
        |entry| serde_json::to_vec(&StoredEntry::from(entry)).expect("what is proposed was stored before");
    proto::AppendRequest {
        vote: Some(from_vote(&request.vote)),
        previous: request.prev_log_id.as_ref().map(from_log_id),
        entries: request.entries.into_iter().map(entry).collect(),
        committed: request.leader_commit.as_ref().map(from_log_id),
    }
}

pub(super) fn to_append(
    request: proto::AppendRequest,
) -> Result<AppendEntriesRequest<TypeConfig>, Malformed> {
    let entry = |stored: Vec<u8>| {
        let stored: StoredEntry = serde_json::from_slice(&stored).map_err(|error| error.to_string())?;
        stored.into_entry()
    };
    let entries = request.entries.into_iter().map(entry).collect::<Result<Vec<_>, Malformed>>()?;
    let previous = request.previous.map(to_log_id);
    // Raft takes it for granted that entries follow each other; the log refuses a hole, and the node ends.
    let mut before = previous.as_ref().map(|id| (id.committed_leader_id().term, id.index()));
    for entry in &entries {
        let id = (entry.log_id.committed_leader_id().term, entry.log_id.index());
        if let Some((term, index)) = before
            && (id.0 < term || Some(id.1) != index.checked_add(1))
        {
            return Err(format!("entry {} of term {} follows entry {index} of term {term}", id.1, id.0));
        }
        before = Some(id);
    }
    Ok(AppendEntriesRequest {
        vote: to_vote(request.vote)?,
        prev_log_id: previous,
        entries,
        leader_commit: request.committed.map(to_log_id),
    })
}

pub(super) fn from_appended(result: StreamAppendResult<TypeConfig>) -> proto::AppendResponse {
    let answer = match result {
        Ok(last) => Answer::Flushed(proto::Flushed { last: last.as_ref().map(from_log_id) }),
        Err(StreamAppendError::Conflict(id)) => Answer::Conflict(from_log_id(&id)),
        Err(StreamAppendError::HigherVote(vote)) => Answer::Higher(from_vote(&vote)),
    };
    proto::AppendResponse { answer: Some(answer) }
}

pub(super) fn to_appended(
    response: proto::AppendResponse,
) -> Result<StreamAppendResult<TypeConfig>, Malformed> {
    Ok(match response.answer.ok_or("it has no answer")? {
        Answer::Flushed(flushed) => Ok(flushed.last.map(to_log_id)),
        Answer::Conflict(id) => Err(StreamAppendError::Conflict(to_log_id(id))),
        Answer::Higher(vote) => Err(StreamAppendError::HigherVote(to_vote(Some(vote))?)),
    })
}

pub(super) fn from_vote_request(request: &VoteRequest<TypeConfig>) -> proto::VoteRequest {
    proto::VoteRequest {
        vote: Some(from_vote(&request.vote)),
        last: request.last_log_id.as_ref().map(from_log_id),
        leadership_transfer: request.leadership_transfer,
    }
}

pub(super) fn to_vote_request(request: proto::VoteRequest) -> Result<VoteRequest<TypeConfig>, Malformed> {
    let asked = VoteRequest::new(to_vote(request.vote)?, request.last.map(to_log_id));
    Ok(VoteRequest { leadership_transfer: request.leadership_transfer, ..asked })
}

pub(super) fn from_vote_response(response: &VoteResponse<TypeConfig>) -> proto::VoteResponse {
    proto::VoteResponse {
        vote: Some(from_vote(&response.vote)),
        last: response.last_log_id.as_ref().map(from_log_id),
        granted: response.vote_granted,
    }
}

pub(super) fn to_vote_response(response: proto::VoteResponse) -> Result<VoteResponse<TypeConfig>, Malformed> {
    Ok(VoteResponse::new(to_vote(response.vote)?, response.last.map(to_log_id), response.granted))
}
