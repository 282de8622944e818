//! The JSON form of whatever a server may answer.

use std::fmt::Debug;

use prost::Message;
use relatch::rpc::{to_json, v1};

use super::choice;

/// A message that was decoded has a JSON form, or none that could be told; it never ends the process.
pub fn check(data: &[u8]) {
    let (kind, bytes) = choice(data);
    match kind % 14 {
        0 => told::<v1::Run>("Run", bytes),
        1 => told::<v1::RequestRecoveryResponse>("RequestRecoveryResponse", bytes),
        2 => told::<v1::ExplainResponse>("ExplainResponse", bytes),
        3 => told::<v1::ResolveRunResponse>("ResolveRunResponse", bytes),
        4 => told::<v1::ApproveStartResponse>("ApproveStartResponse", bytes),
        5 => told::<v1::ListRunsResponse>("ListRunsResponse", bytes),
        6 => told::<v1::WatchRunsResponse>("WatchRunsResponse", bytes),
        7 => told::<v1::PlaceHoldResponse>("PlaceHoldResponse", bytes),
        8 => told::<v1::LiftHoldResponse>("LiftHoldResponse", bytes),
        9 => told::<v1::ListHoldsResponse>("ListHoldsResponse", bytes),
        10 => told::<v1::GetLimitsResponse>("GetLimitsResponse", bytes),
        11 => told::<v1::SetLimitsResponse>("SetLimitsResponse", bytes),
        12 => told::<v1::RequestRecoveryRequest>("RequestRecoveryRequest", bytes),
        _ => told::<v1::PlaceHoldRequest>("PlaceHoldRequest", bytes),
    }
}

/// Its bytes read back as itself, and its JSON form, if it has one, as what has the same.
pub fn told<M: Message + Default + PartialEq + Debug>(name: &str, bytes: &[u8]) {
    let Ok(message) = M::decode(bytes) else { return };
    let encoded = message.encode_to_vec();
    assert_eq!(M::decode(encoded.as_slice()).as_ref(), Ok(&message), "{name}");
    let name = format!("relatch.v1.{name}");
    let Ok(json) = to_json(&name, &message) else { return };
    let read = relatch::rpc::fuzzing::from_json(&name, &json)
        .unwrap_or_else(|error| panic!("{name} is not read back: {error}: {json}"));
    // A duration whose parts have different signs, which is none, is not told as the same two parts.
    let read = M::decode(read.as_slice()).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(to_json(&name, &read), Ok(json));
}
