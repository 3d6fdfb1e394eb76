//! The JSON schema (draft 7, which editors' TOML plug-ins read).
//!
//! A settings file may be one of several that are laid over each other, so no key is required here. Ranges of durations stand in
//! the descriptions: a pattern cannot compare.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{DefaultValue, Key, SETTINGS, ValueType, Variants};

const DURATION: &str = "^[0-9]+(ms|s|m|h|d)$";
const SIZE: &str = "^[0-9]+(KiB|MiB|GiB)$";

/// The schema of a settings file.
pub fn schema() -> Value {
    let mut schema = table(SETTINGS);
    let more = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Settings of picketd",
        "description": "What a settings file of picketd may say. picketd --check tells what this schema cannot compare.",
        "definitions": { "device": variant(&crate::DRIVERS) },
    });
    merge(&mut schema, more);
    schema
}

/// The same as `deploy/picket.schema.json` has it.
pub fn shipped() -> String {
    format!("{:#}\n", schema())
}

fn merge(schema: &mut Value, more: Value) {
    if let (Some(schema), Value::Object(more)) = (schema.as_object_mut(), more) {
        schema.extend(more);
    }
}

fn table(keys: &[Key]) -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": properties(keys) })
}

fn properties(keys: &[Key]) -> Value {
    Value::Object(keys.iter().map(|key| (key.name.to_owned(), property(key))).collect())
}

fn property(key: &Key) -> Value {
    let mut schema = value(&key.value);
    let mut words = vec![key.about.to_owned()];
    words.extend(key.value.range().map(|range| format!("Range: {range}.")));
    match key.default {
        DefaultValue::Required => words.push("Required.".to_owned()),
        DefaultValue::Nothing => {}
        DefaultValue::Computed(what) => words.push(format!("Default: {what}.")),
        DefaultValue::Value(text) => {
            words.push(format!("Default: {text}."));
            // TOML writes texts, numbers, flags and lists of them as JSON does.
            if let Ok(default) = serde_json::from_str::<Value>(text) {
                merge(&mut schema, json!({ "default": default }));
            }
        }
    }
    merge(&mut schema, json!({ "description": words.join(" ") }));
    schema
}

fn value(value: &ValueType) -> Value {
    let duration = json!({ "type": "string", "pattern": DURATION });
    let named = |of: Value| json!({ "type": "object", "additionalProperties": of });
    match value {
        ValueType::Text => json!({ "type": "string", "minLength": 1 }),
        ValueType::TextOrInteger => json!({ "type": ["string", "integer"] }),
        ValueType::Word(words) => json!({ "type": "string", "enum": words }),
        ValueType::Flag => json!({ "type": "boolean" }),
        ValueType::Integer(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        ValueType::Duration(..) | ValueType::NeverOrDuration(..) => duration,
        ValueType::FlagOrDuration(..) => json!({ "anyOf": [{ "type": "boolean" }, duration] }),
        ValueType::Size(..) => json!({ "type": "string", "pattern": SIZE }),
        ValueType::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        ValueType::Integers => json!({ "type": "array", "items": { "type": "integer", "minimum": 0 } }),
        ValueType::IntegerLists(lists) => json!({ "type": "array", "enum": lists }),
        ValueType::TextLists => {
            json!({ "type": "array", "items": { "type": "array", "items": { "type": "string" } } })
        }
        ValueType::TextMap => named(json!({ "type": "string" })),
        ValueType::ScalarMap => named(json!({ "type": ["string", "integer", "boolean"] })),
        ValueType::Table(keys) => table(keys),
        ValueType::Named(keys) => named(table(keys)),
        ValueType::Variant(variants) => variant(variants),
        // Templates and nodes have the same devices: once is enough.
        ValueType::NamedVariant(variants) if variants.by == crate::DRIVERS.by => {
            named(json!({ "$ref": "#/definitions/device" }))
        }
        ValueType::NamedVariant(variants) => named(variant(variants)),
    }
}

/// Every key that any variant has; and where the table says which it is, that one's keys alone.
fn variant(variants: &Variants) -> Value {
    let mut all: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for key in variants.common.iter().chain(variants.of.iter().flat_map(|(_, keys)| *keys)) {
        let known = all.entry(key.name).or_default();
        let schema = property(key);
        if !known.contains(&schema) {
            known.push(schema);
        }
    }
    let any = |mut schemas: Vec<Value>| match schemas.len() {
        1 => schemas.pop().unwrap_or_default(),
        _ => json!({ "anyOf": schemas }),
    };
    let properties: Map<String, Value> =
        all.into_iter().map(|(name, schemas)| (name.to_owned(), any(schemas))).collect();
    let cases = variants.of.iter().map(|(name, own)| {
        let mut only = table(own);
        for key in variants.common {
            only["properties"][key.name] = json!(true);
        }
        if let Some(pattern) = pattern(variants, name) {
            only["patternProperties"] = json!({ pattern: { "type": "string" } });
        }
        let condition =
            json!({ "properties": { variants.by: { "const": name } }, "required": [variants.by] });
        json!({ "if": condition, "then": only })
    });
    let cases: Vec<Value> = cases.collect();
    let mut schema =
        json!({ "type": "object", "additionalProperties": false, "properties": properties, "allOf": cases });
    let endings = variants.endings.iter().filter_map(|(name, _)| pattern(variants, name));
    for pattern in endings {
        // Another variant may have a key of that ending, and of another type.
        schema["patternProperties"] = json!({ pattern: true });
    }
    schema
}

fn pattern(variants: &Variants, name: &str) -> Option<String> {
    let (_, endings) = variants.endings.iter().find(|(known, _)| *known == name)?;
    Some(format!("^.+({})$", endings.join("|")))
}
