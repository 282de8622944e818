//! The public protobuf files explain themselves: the descriptors that reflection serves have a comment for
//! everything that a client can see.

use prost::Message;
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto, FileDescriptorSet};

use crate::rpc::DESCRIPTORS;

/// Numbers of fields in `descriptor.proto`, of which paths into a file are made.
const FILE_MESSAGES: i32 = 4;
const FILE_ENUMS: i32 = 5;
const FILE_SERVICES: i32 = 6;
const MESSAGE_FIELDS: i32 = 2;
const MESSAGE_MESSAGES: i32 = 3;
const MESSAGE_ENUMS: i32 = 4;
const ENUM_VALUES: i32 = 2;
const SERVICE_METHODS: i32 = 2;

/// Everything in a file that needs a comment, by path.
#[derive(Default)]
struct Named {
    things: Vec<(Vec<i32>, String)>,
}

impl Named {
    fn add(&mut self, path: &[i32], name: &str) {
        self.things.push((path.to_vec(), name.to_owned()));
    }

    fn message(&mut self, path: &[i32], message: &DescriptorProto) {
        self.add(path, message.name());
        for (at, field) in numbered(&message.field) {
            self.add(
                &[path, &[MESSAGE_FIELDS, at]].concat(),
                &format!("{}.{}", message.name(), field.name()),
            );
        }
        for (at, nested) in numbered(&message.nested_type) {
            self.message(&[path, &[MESSAGE_MESSAGES, at]].concat(), nested);
        }
        for (at, nested) in numbered(&message.enum_type) {
            self.enumeration(&[path, &[MESSAGE_ENUMS, at]].concat(), nested);
        }
    }

    fn enumeration(&mut self, path: &[i32], enumeration: &EnumDescriptorProto) {
        self.add(path, enumeration.name());
        for (at, value) in numbered(&enumeration.value) {
            self.add(&[path, &[ENUM_VALUES, at]].concat(), value.name());
        }
    }

    fn file(file: &FileDescriptorProto) -> Self {
        let mut named = Self::default();
        for (at, message) in numbered(&file.message_type) {
            named.message(&[FILE_MESSAGES, at], message);
        }
        for (at, enumeration) in numbered(&file.enum_type) {
            named.enumeration(&[FILE_ENUMS, at], enumeration);
        }
        for (at, service) in numbered(&file.service) {
            named.add(&[FILE_SERVICES, at], service.name());
            for (method_at, method) in numbered(&service.method) {
                let name = format!("{}.{}", service.name(), method.name());
                named.add(&[FILE_SERVICES, at, SERVICE_METHODS, method_at], &name);
            }
        }
        named
    }
}

fn numbered<T>(list: &[T]) -> impl Iterator<Item = (i32, &T)> {
    (0..).zip(list)
}

#[test]
fn everything_in_the_public_interface_has_a_comment() {
    let set = FileDescriptorSet::decode(DESCRIPTORS).unwrap();
    let mut looked_at = 0;
    let mut bare = Vec::new();
    for file in set.file.iter().filter(|file| file.package().starts_with("relatch.")) {
        let info = file.source_code_info.as_ref().expect("the descriptors keep their comments");
        for (path, name) in Named::file(file).things {
            looked_at += 1;
            let said = info
                .location
                .iter()
                .any(|location| location.path == path && location.leading_comments().trim().len() > 1);
            if !said {
                bare.push(format!("{}: {name}", file.name()));
            }
        }
    }
    assert!(looked_at > 100, "only {looked_at} things were looked at");
    assert!(bare.is_empty(), "without a comment:\n{}", bare.join("\n"));
}
