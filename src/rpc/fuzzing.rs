//! A way into this module for `tests/fuzz` alone: the way back from JSON.

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde::de::IntoDeserializer as _;

/// The bytes of the message that the JSON form is of.
///
/// # Errors
///
/// Why it is refused.
pub fn from_json(name: &str, json: &serde_json::Value) -> Result<Vec<u8>, String> {
    let pool = DescriptorPool::decode(super::DESCRIPTORS).map_err(|error| error.to_string())?;
    let descriptor = pool.get_message_by_name(name).ok_or("no message of package relatch.v1")?;
    let message = DynamicMessage::deserialize(descriptor, json.clone().into_deserializer());
    Ok(message.map_err(|error| error.to_string())?.encode_to_vec())
}
