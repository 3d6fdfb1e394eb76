//! Names, comments and zero values, as the rules in `README.md` (and buf's STANDARD style) want them.

use crate::common::files;
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorProto};

/// Field numbers in `descriptor.proto`, of which the paths in the source info are made.
mod part {
    pub const MESSAGES: i32 = 4;
    pub const ENUMS: i32 = 5;
    pub const SERVICES: i32 = 6;
    pub const FIELDS: i32 = 2;
    pub const VALUES: i32 = 2;
    pub const METHODS: i32 = 2;
    pub const ONEOFS: i32 = 8;
    /// The head of a file stands before its `package`.
    pub const PACKAGE: i32 = 2;
}

fn number(index: usize) -> i32 {
    i32::try_from(index).expect("a file is short")
}

fn is_snake(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn upper_snake(camel: &str) -> String {
    let mut out = String::new();
    for c in camel.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_uppercase());
    }
    out
}

/// Every named thing of a file: its path in the source info, and its name for the report.
fn things(file: &FileDescriptorProto) -> Vec<(Vec<i32>, String)> {
    let mut things = vec![(vec![part::PACKAGE], file.name().to_owned())];
    for (m, message) in file.message_type.iter().enumerate() {
        let at = [part::MESSAGES, number(m)];
        things.push((at.to_vec(), message.name().to_owned()));
        for (kind, count) in [(part::FIELDS, message.field.len()), (part::ONEOFS, real_oneofs(message))] {
            for index in 0..count {
                let name = match kind {
                    part::FIELDS => message.field[index].name(),
                    _ => message.oneof_decl[index].name(),
                };
                let path = [&at[..], &[kind, number(index)]].concat();
                things.push((path, format!("{}.{name}", message.name())));
            }
        }
    }
    for (e, one) in file.enum_type.iter().enumerate() {
        let at = [part::ENUMS, number(e)];
        things.push((at.to_vec(), one.name().to_owned()));
        for (v, value) in one.value.iter().enumerate() {
            things.push(([&at[..], &[part::VALUES, number(v)]].concat(), value.name().to_owned()));
        }
    }
    for (s, service) in file.service.iter().enumerate() {
        let at = [part::SERVICES, number(s)];
        things.push((at.to_vec(), service.name().to_owned()));
        for (m, method) in service.method.iter().enumerate() {
            things.push(([&at[..], &[part::METHODS, number(m)]].concat(), method.name().to_owned()));
        }
    }
    things
}

/// Those that stand in the file; the compiler adds one after them for each `optional` field.
fn real_oneofs(message: &DescriptorProto) -> usize {
    message.oneof_decl.iter().filter(|oneof| !oneof.name().starts_with('_')).count()
}

#[test]
fn everything_has_a_comment() {
    let mut bare = Vec::new();
    for file in files() {
        let info = file.source_code_info.clone().expect("the build keeps comments");
        for (path, name) in things(&file) {
            let text = info
                .location
                .iter()
                .find(|location| location.path == path)
                .map(|location| location.leading_comments().trim().to_owned())
                .unwrap_or_default();
            if text.len() < 5 || !text.ends_with('.') {
                bare.push(format!("{}: {name}: {text:?}", file.name()));
            }
        }
    }
    assert!(bare.is_empty(), "without a comment that is a sentence:\n{}", bare.join("\n"));
}

#[test]
fn files_lie_where_their_package_says() {
    for file in files() {
        assert!(file.name().starts_with("picket/v1/"), "{}", file.name());
        let stem = file.name().trim_start_matches("picket/v1/").trim_end_matches(".proto");
        assert!(is_snake(stem), "{}", file.name());
    }
}

#[test]
fn messages_and_fields_are_named_alike() {
    for message in files().iter().flat_map(|file| &file.message_type) {
        assert!(
            message.nested_type.iter().all(|nested| nested.options.as_ref().is_some_and(|o| o.map_entry()))
        );
        assert!(message.enum_type.is_empty(), "{}: enums stand by themselves", message.name());
        for field in &message.field {
            assert!(is_snake(field.name()), "{}.{}", message.name(), field.name());
            // Names that generated code of other languages could not use as they are.
            let reserved =
                ["from", "in", "else", "class", "def", "import", "is", "not", "or", "and", "type", "self"];
            assert!(!reserved.contains(&field.name()), "{}.{}", message.name(), field.name());
        }
    }
}

/// Clients compare the numbers of grades: one that came later, and is not the best, is the least to those who do not know it.
const OUT_OF_ORDER: [(&str, i32); 1] = [("GRADE_LEARNED", -1)];

fn check_enum(one: &EnumDescriptorProto) {
    let prefix = upper_snake(one.name()) + "_";
    assert_eq!(one.value[0].name(), format!("{prefix}UNSPECIFIED"));
    assert_eq!(one.value[0].number(), 0, "{}", one.name());
    assert!(one.value.iter().all(|value| value.name().starts_with(&prefix)), "{}", one.name());
    let in_order = one.value.iter().filter(|value| !OUT_OF_ORDER.contains(&(value.name(), value.number())));
    for (expected, value) in in_order.enumerate() {
        assert_eq!(value.number(), number(expected), "{}: no gaps, in order", value.name());
    }
}

#[test]
fn enums_begin_with_unspecified_and_values_carry_their_name() {
    files().iter().flat_map(|file| &file.enum_type).for_each(check_enum);
}

#[test]
fn each_call_has_a_request_and_an_answer_of_its_own() {
    let all = files();
    let services: Vec<_> = all.iter().flat_map(|file| &file.service).collect();
    assert_eq!(services.len(), 1);
    assert_eq!(services[0].name(), "FencingService");
    for method in &services[0].method {
        assert_eq!(method.input_type(), format!(".picket.v1.{}Request", method.name()));
        assert_eq!(method.output_type(), format!(".picket.v1.{}Response", method.name()));
        assert!(!method.client_streaming(), "{}", method.name());
    }
}

#[test]
fn the_service_has_every_call_of_the_interface() {
    let calls = [
        "Fence",
        "Unfence",
        "GetNode",
        "ListNodes",
        "WatchNodes",
        "GetFence",
        "ListFences",
        "ListGateways",
        "GetReceipt",
        "ReturnReceipt",
        "VerifyReceipt",
        "ListReceiptKeys",
        "Hold",
        "DropHold",
        "Retry",
        "StandDown",
        "Retire",
        "AbandonRelease",
        "AcceptIdentity",
        "Drill",
        "Attest",
        "Pause",
        "Resume",
        "PlanFence",
        "CheckDevices",
        "Backup",
    ];
    let all = files();
    let there: std::collections::BTreeSet<_> =
        all.iter().flat_map(|file| &file.service).flat_map(|s| &s.method).map(|m| m.name()).collect();
    assert_eq!(there, calls.into_iter().collect());
}
