//! What was released stays: every line of `golden/wire.txt` is still true. New lines are added with
//! `PICKET_BLESS=1 cargo test -p picket-proto`; a line that is gone or changed breaks those who speak it.

use std::collections::BTreeSet;

use crate::common::files;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/wire.txt");

fn kind(field: &FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Message | Type::Enum => field.type_name().trim_start_matches('.').to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

fn message_lines(name: &str, message: &DescriptorProto, lines: &mut BTreeSet<String>) {
    lines.insert(format!("message {name}"));
    for nested in &message.nested_type {
        message_lines(&format!("{name}.{}", nested.name()), nested, lines);
    }
    for field in &message.field {
        let label = match (field.label(), field.proto3_optional(), field.oneof_index) {
            (Label::Repeated, ..) => "repeated ".to_owned(),
            (_, true, _) => "optional ".to_owned(),
            (_, false, Some(index)) => {
                let index = usize::try_from(index).expect("an index");
                format!("oneof {} ", message.oneof_decl[index].name())
            }
            _ => String::new(),
        };
        lines.insert(format!("{name}.{} = {}: {label}{}", field.name(), field.number(), kind(field)));
    }
}

fn present() -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for file in files() {
        for message in &file.message_type {
            message_lines(message.name(), message, &mut lines);
        }
        for one in &file.enum_type {
            for value in &one.value {
                lines.insert(format!("enum {}.{} = {}", one.name(), value.name(), value.number()));
            }
        }
        for service in &file.service {
            for method in &service.method {
                let stream = if method.server_streaming() { " stream" } else { "" };
                let (takes, gives) = (method.input_type(), method.output_type());
                lines.insert(format!(
                    "call {}.{}: {takes} ->{stream} {gives}",
                    service.name(),
                    method.name()
                ));
            }
        }
    }
    lines
}

#[test]
fn nothing_that_was_released_is_changed() {
    let present = present();
    let stored = std::fs::read_to_string(GOLDEN).unwrap_or_default();
    let released: BTreeSet<String> = stored.lines().map(str::to_owned).collect();
    let gone: Vec<_> = released.difference(&present).collect();
    assert!(gone.is_empty(), "gone or changed on the wire: {gone:#?}");
    if std::env::var_os("PICKET_BLESS").is_some() {
        let text = present.iter().fold(String::new(), |text, line| text + line + "\n");
        std::fs::write(GOLDEN, text).expect("the golden can be written");
        return;
    }
    let new: Vec<_> = present.difference(&released).collect();
    assert!(new.is_empty(), "not in golden/wire.txt yet (PICKET_BLESS=1 adds them): {new:#?}");
}
