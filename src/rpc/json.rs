//! Protobuf's own JSON form, with defaults printed: 64-bit numbers are strings, enum values have their prefix.

use std::sync::LazyLock;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(super::DESCRIPTORS).expect("the descriptors were made with this build")
});

/// The JSON form of a message. `name` is its full name, as in `relatch.v1.Run`.
///
/// # Panics
///
/// If `message` is not of the type `name`: a mistake in the calling code.
#[must_use]
pub fn to_json(name: &str, message: &impl Message) -> serde_json::Value {
    let descriptor = POOL.get_message_by_name(name).expect("a message of package relatch.v1");
    let dynamic = DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice())
        .expect("a message is decoded as its own type");
    let options = SerializeOptions::new().skip_default_fields(false);
    dynamic
        .serialize_with_options(serde_json::value::Serializer, &options)
        .expect("every message has a JSON form")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::v1;

    #[test]
    fn a_run_in_json_has_its_defaults_its_prefixes_and_its_big_numbers_as_strings() {
        let run = v1::Run { term: 7, status: v1::RunStatus::Applied.into(), ..v1::Run::default() };
        let json = to_json("relatch.v1.Run", &run);
        assert_eq!(json["term"], "7");
        assert_eq!(json["status"], "RUN_STATUS_APPLIED");
        assert_eq!(json["quarantined"], false);
        assert_eq!(json["runId"], "");
        assert_eq!(json["events"], serde_json::json!([]));
    }
}
