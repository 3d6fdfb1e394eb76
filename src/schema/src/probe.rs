//! Values at the edges of what a key takes, for tests that hold the readers to the table; and ranges in words.

use serde_json::{Value, json};

use crate::{Key, ValueType};

/// Values at the edges of what a key takes.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    /// They are taken.
    pub right: Vec<Value>,
    /// They are refused, at this key.
    pub wrong: Vec<Value>,
}

impl ValueType {
    /// The range, in words; `None`: it has none.
    pub fn range(&self) -> Option<String> {
        match self {
            ValueType::Integer(least, u32::MAX) => Some(format!("at least {least}")),
            ValueType::Integer(least, most) => Some(format!("{least} to {most}")),
            ValueType::Duration(least, most) => Some(format!("{least} to {most}")),
            ValueType::NeverOrDuration(least, most) => Some(format!("{least} to {most}, or 0s")),
            ValueType::FlagOrDuration(least, most) => Some(format!("{least} to {most}, true or false")),
            ValueType::Size(least, Some(most)) => Some(format!("{least} to {most}")),
            ValueType::Size(least, None) => Some(format!("at least {least}")),
            _ => None,
        }
    }

    /// What it takes, in a word.
    pub fn word(&self) -> &'static str {
        match self {
            ValueType::Text => "text",
            ValueType::TextOrInteger => "text or whole number",
            ValueType::Word(_) => "word",
            ValueType::Flag => "true or false",
            ValueType::Integer(..) => "whole number",
            ValueType::Duration(..) | ValueType::NeverOrDuration(..) | ValueType::FlagOrDuration(..) => {
                "duration"
            }
            ValueType::Size(..) => "size",
            ValueType::Texts => "list of texts",
            ValueType::Integers | ValueType::IntegerLists(_) => "list of numbers",
            ValueType::TextLists => "list of lists",
            ValueType::TextMap | ValueType::ScalarMap => "table of texts",
            ValueType::Table(_) | ValueType::Variant(_) => "table",
            ValueType::Named(_) | ValueType::NamedVariant(_) => "tables by name",
        }
    }
}

impl Key {
    /// Values at the edges of what it takes.
    pub fn probes(&self) -> Probes {
        let number = json!(5);
        let durations = |least: &str, most: &str| {
            let (from, to) = (millis(least), millis(most));
            let below = (from > 0).then(|| json!(format!("{}ms", from.saturating_sub(1))));
            let above = json!(format!("{}ms", to + 1));
            Probes {
                right: vec![json!(least), json!(most)],
                wrong: below.into_iter().chain([above, number.clone(), json!("soon")]).collect(),
            }
        };
        match self.value {
            ValueType::Word(words) => Probes {
                right: words.iter().map(|word| json!(word)).collect(),
                wrong: vec![json!("no-such-word"), number],
            },
            ValueType::TextOrInteger => Probes { right: Vec::new(), wrong: vec![json!(true)] },
            ValueType::Flag => {
                Probes { right: vec![json!(true), json!(false)], wrong: vec![json!("perhaps")] }
            }
            ValueType::Integer(least, most) => {
                let below = least.checked_sub(1).map(|below| json!(below));
                let above = json!(u64::from(most) + 1);
                Probes {
                    right: vec![json!(least), json!(most)],
                    wrong: below.into_iter().chain([above, json!("many")]).collect(),
                }
            }
            ValueType::Duration(least, most) => durations(least, most),
            ValueType::NeverOrDuration(least, most) => {
                let mut probes = durations(least, most);
                probes.right.push(json!("0s"));
                probes
            }
            ValueType::FlagOrDuration(least, most) => {
                let mut probes = durations(least, most);
                probes.right.extend([json!(true), json!(false)]);
                probes
            }
            ValueType::Size(least, most) => {
                let beyond = most.map(|most| json!(size(most, 1)));
                let right = std::iter::once(least).chain(most).map(|size| json!(size)).collect();
                let wrong = [json!(size(least, -1)), number, json!("large")];
                Probes { right, wrong: wrong.into_iter().chain(beyond).collect() }
            }
            ValueType::IntegerLists(lists) => Probes {
                right: lists.iter().map(|list| json!(list)).collect(),
                wrong: vec![json!([1]), number],
            },
            _ => Probes { right: Vec::new(), wrong: vec![number] },
        }
    }
}

fn parts(text: &str) -> (u64, &str) {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    (number.parse().unwrap_or(0), unit)
}

fn millis(duration: &str) -> u64 {
    let (number, unit) = parts(duration);
    let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    number * units.iter().find(|(name, _)| *name == unit).map_or(0, |(_, millis)| *millis)
}

fn size(size: &str, more: i64) -> String {
    let (number, unit) = parts(size);
    format!("{}{unit}", number.saturating_add_signed(more))
}

#[cfg(test)]
mod tests {
    use crate::{DefaultValue, key};

    use super::*;

    #[test]
    fn probes_lie_at_the_edges() {
        let of = |value| key("x", value, DefaultValue::Nothing, "").probes();
        let probes = of(ValueType::Duration("500ms", "1m"));
        assert_eq!(probes.right, ["500ms", "1m"]);
        assert_eq!(probes.wrong, [json!("499ms"), json!("60001ms"), json!(5), json!("soon")]);
        let probes = of(ValueType::Integer(0, 10));
        assert_eq!((probes.right, probes.wrong), (vec![json!(0), json!(10)], vec![json!(11), json!("many")]));
        let probes = of(ValueType::Size("64KiB", Some("4GiB")));
        assert_eq!(probes.wrong, [json!("63KiB"), json!(5), json!("large"), json!("5GiB")]);
    }

    /// A default in another form than JSON's would not stand in the schema.
    #[test]
    fn every_default_reads_as_json_and_every_sentence_ends() {
        fn walk(keys: &[Key]) {
            for key in keys {
                if let DefaultValue::Value(text) = key.default {
                    serde_json::from_str::<Value>(text)
                        .unwrap_or_else(|error| panic!("{}: {error}", key.name));
                }
                assert!(key.about.ends_with('.'), "{}: {}", key.name, key.about);
                match key.value {
                    ValueType::Table(keys) | ValueType::Named(keys) => walk(keys),
                    ValueType::Variant(variants) | ValueType::NamedVariant(variants) => {
                        walk(variants.common);
                        variants.of.iter().for_each(|(_, keys)| walk(keys));
                    }
                    _ => {}
                }
            }
        }
        walk(crate::SETTINGS);
    }
}
