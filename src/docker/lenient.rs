//! Answers that the library cannot read: it refuses a whole list when one container has a word in it, for a state
//! say, that it does not know.
//!
//! Such an answer is read once more, from the same text, with only the parts that relatch looks at, and without
//! those words: a state that is not known is then [`ContainerState::Unknown`](crate::model::ContainerState),
//! which nothing is done for, and a health that is not known is none, which is no diagnosis. What names a
//! container or dates its life is never left out.

use bollard::errors::Error as LibraryError;
use bollard::models::{
    ContainerInspectResponse, ContainerStateStatusEnum, ContainerSummary, ContainerSummaryStateEnum,
    HealthStatusEnum, LocalNodeState, SystemInfo,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// An answer of the library's, of which a part is enough.
pub(super) trait Partly: DeserializeOwned {
    /// The parts that relatch looks at, in words that the library knows.
    fn partly(whole: &Value) -> Value;
}

/// What the library read, or what can be read of the same text.
pub(super) fn read_at_all<T: Partly>(read: Result<T, LibraryError>) -> Result<T, LibraryError> {
    let Err(LibraryError::JsonDataError { contents, .. }) = &read else { return read };
    let partly = serde_json::from_str::<Value>(contents).map(|whole| T::partly(&whole));
    match partly.and_then(serde_json::from_value) {
        Ok(partly) => Ok(partly),
        // Its own error says where the text is wrong.
        Err(_) => read,
    }
}

impl Partly for ContainerInspectResponse {
    fn partly(whole: &Value) -> Value {
        let state = object(&whole["State"], |state| {
            json!({
                "Status": known::<ContainerStateStatusEnum>(&state["Status"]),
                "StartedAt": state["StartedAt"],
                "FinishedAt": state["FinishedAt"],
                "Pid": state["Pid"],
                "Health": object(&state["Health"], |health| {
                    json!({ "Status": known::<HealthStatusEnum>(&health["Status"]) })
                }),
            })
        });
        let config = object(&whole["Config"], |config| {
            json!({
                "Hostname": config["Hostname"],
                "Labels": config["Labels"],
                "Healthcheck": config["Healthcheck"],
                "StopTimeout": config["StopTimeout"],
            })
        });
        object(
            whole,
            |whole| json!({ "Id": whole["Id"], "Name": whole["Name"], "State": state, "Config": config }),
        )
    }
}

impl Partly for Vec<ContainerSummary> {
    fn partly(whole: &Value) -> Value {
        let Value::Array(listed) = whole else { return Value::Null };
        listed
            .iter()
            .map(|one| {
                object(one, |one| {
                    json!({
                        "Id": one["Id"],
                        "Names": one["Names"],
                        "Labels": one["Labels"],
                        "State": known::<ContainerSummaryStateEnum>(&one["State"]),
                    })
                })
            })
            .collect()
    }
}

impl Partly for SystemInfo {
    fn partly(whole: &Value) -> Value {
        object(whole, |whole| {
            json!({
                "ID": whole["ID"],
                "Name": whole["Name"],
                "ServerVersion": whole["ServerVersion"],
                "Swarm": object(&whole["Swarm"], |swarm| {
                    json!({ "LocalNodeState": known::<LocalNodeState>(&swarm["LocalNodeState"]) })
                }),
            })
        })
    }
}

/// A part of an object; of what is none, nothing.
fn object(value: &Value, part: impl FnOnce(&Value) -> Value) -> Value {
    if value.is_object() { part(value) } else { Value::Null }
}

/// The word, if the library knows it.
fn known<T: DeserializeOwned>(word: &Value) -> Value {
    if T::deserialize(word).is_ok() { word.clone() } else { Value::Null }
}
