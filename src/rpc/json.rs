//! Protobuf's own JSON form, with defaults printed: 64-bit numbers are strings, enum values have their prefix.

use std::sync::LazyLock;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(super::DESCRIPTORS).expect("the descriptors were made with this build")
});

/// A message that another process wrote, with something in it that JSON has no form for: an instant beyond the year
/// 9999, say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} cannot be told as JSON: {detail}; ask for a table instead (-o table)")]
pub struct NoJsonForm {
    /// The full name of the message's type.
    pub name: String,
    /// What stands in the way.
    pub detail: String,
}

/// The JSON form of a message. `name` is its full name, as in `relatch.v1.Run`.
///
/// # Errors
///
/// [`NoJsonForm`] if the message has none.
///
/// # Panics
///
/// If `message` is not of the type `name`: a mistake in the calling code.
pub fn to_json(name: &str, message: &impl Message) -> Result<serde_json::Value, NoJsonForm> {
    let descriptor = POOL.get_message_by_name(name).expect("a message of package relatch.v1");
    let dynamic = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice())
        .expect("a message is decoded as its own type");
    let options = SerializeOptions::new().skip_default_fields(false);
    dynamic
        .serialize_with_options(serde_json::value::Serializer, &options)
        .map_err(|error| NoJsonForm { name: name.to_owned(), detail: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::v1;

    #[test]
    fn a_run_in_json_has_its_defaults_its_prefixes_and_its_big_numbers_as_strings() {
        let run = v1::Run { term: 7, status: v1::RunStatus::Applied.into(), ..v1::Run::default() };
        let json = to_json("relatch.v1.Run", &run).unwrap();
        assert_eq!(json["term"], "7");
        assert_eq!(json["status"], "RUN_STATUS_APPLIED");
        assert_eq!(json["quarantined"], false);
        assert_eq!(json["runId"], "");
        assert_eq!(json["events"], serde_json::json!([]));
    }

    #[test]
    fn an_instant_that_json_has_no_form_for_is_an_error_and_no_panic() {
        let decided_at = Some(prost_types::Timestamp { seconds: i64::MAX, nanos: 0 });
        let error = to_json("relatch.v1.Run", &v1::Run { decided_at, ..v1::Run::default() }).unwrap_err();
        assert!(error.to_string().contains("-o table"), "{error}");
    }
}
