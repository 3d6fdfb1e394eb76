//! One layer of settings: a file, or the environment. Each value remembers from where it came.

use std::collections::BTreeMap;
use std::path::Path;

use config::{ConfigError, Map, Source, Value, ValueKind};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::fault::{Fault, Place};

/// What the variables of the environment begin with; two underscores stand between the keys.
pub(crate) const PREFIX: &str = "PICKET__";

/// The key under which a table keeps its own place. No key of a TOML file that a person writes is this one.
pub(crate) const PLACE: &str = "\u{0}";

/// A layer, ready to be laid over others by the crate `config`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    top: Map<String, Value>,
}

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        Ok(self.top.clone())
    }
}

/// A value's origin, as `config` carries it: line, colon, file.
fn origin(file: &str, line: usize) -> String {
    format!("{line}:{file}")
}

/// The file and line of an origin.
pub(crate) fn place_of(origin: &str) -> Option<Place> {
    let (line, file) = origin.split_once(':')?;
    let line = line.parse().ok().filter(|line| *line > 0);
    Some(Place { line, ..Place::file(file) })
}

impl Layer {
    /// Reads a TOML file. A file with faults gives what could be read, so that the rest is checked as well.
    pub(crate) fn file(path: &Path, text: &str, faults: &mut Vec<Fault>) -> Self {
        let file = File { name: path.display().to_string(), text };
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let line = error.span().map(|span| file.line(span.start));
            let place = Place { line, ..Place::file(&file.name) };
            faults.push(place.fault(format!("is no TOML: {}", error.message().replace('\n', ", "))));
        }
        Self { top: file.table(table.into_inner(), Place::file(&file.name), faults) }
    }

    /// Reads the variables that begin with [`PREFIX`].
    pub(crate) fn environment(variables: &BTreeMap<String, String>, faults: &mut Vec<Fault>) -> Self {
        let mut top = Value::from(Map::<String, Value>::new());
        for (name, text) in variables {
            let Some(path) = name.strip_prefix(PREFIX) else { continue };
            let keys: Vec<String> = path.split("__").map(str::to_lowercase).collect();
            if keys.iter().any(String::is_empty) {
                let message =
                    "two underscores stand between the keys (PICKET__RULES__DWELL), and each key has a name";
                faults.push(Place::file(name).fault(message));
                continue;
            }
            put(&mut top, &keys, Value::new(Some(&origin(name, 0)), text.as_str()), &origin(name, 0));
        }
        match top.kind {
            ValueKind::Table(top) => Self { top },
            _ => Self::default(),
        }
    }
}

fn put(into: &mut Value, keys: &[String], value: Value, origin: &String) {
    let Some((key, rest)) = keys.split_first() else {
        *into = value;
        return;
    };
    if !matches!(into.kind, ValueKind::Table(_)) {
        *into = Value::from(Map::<String, Value>::new());
    }
    if let ValueKind::Table(table) = &mut into.kind {
        table.insert(PLACE.to_owned(), Value::new(Some(origin), ""));
        put(
            table.entry(key.clone()).or_insert_with(|| Value::new(None, ValueKind::Nil)),
            rest,
            value,
            origin,
        );
    }
}

struct File<'a> {
    name: String,
    text: &'a str,
}

impl File<'_> {
    /// The line, from 1, in which the byte at `offset` stands.
    fn line(&self, offset: usize) -> usize {
        self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
    }

    fn table(&self, table: DeTable<'_>, place: Place, faults: &mut Vec<Fault>) -> Map<String, Value> {
        let mut values = Map::new();
        values.insert(PLACE.to_owned(), Value::new(Some(&origin(&self.name, place.line.unwrap_or(0))), ""));
        for (key, value) in table {
            let place = Place { line: Some(self.line(key.span().start)), ..place.within(key.as_ref()) };
            if let Some(value) = self.value(value, place, faults) {
                values.insert(key.into_inner().into_owned(), value);
            }
        }
        values
    }

    fn value(&self, value: Spanned<DeValue<'_>>, place: Place, faults: &mut Vec<Fault>) -> Option<Value> {
        let origin = origin(&self.name, place.line.unwrap_or(0));
        let kind: ValueKind = match value.into_inner() {
            DeValue::String(text) => text.into_owned().into(),
            DeValue::Boolean(flag) => flag.into(),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => number.into(),
                Err(_) => {
                    faults.push(place.fault("the number does not fit into 64 bits"));
                    return None;
                }
            },
            DeValue::Float(number) => number.as_str().parse::<f64>().unwrap_or(f64::NAN).into(),
            DeValue::Datetime(moment) => moment.to_string().into(),
            DeValue::Table(table) => self.table(table, place, faults).into(),
            DeValue::Array(list) => {
                let items = list.into_iter().filter_map(|item| self.value(item, place.clone(), faults));
                items.collect::<Vec<Value>>().into()
            }
        };
        Some(Value::new(Some(&origin), kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_a_file_is_told_with_its_line() {
        let mut faults = Vec::new();
        let text =
            "[gateway]\nname = \nnode = \"r1\"\n[rules]\nreadings = 99999999999999999999\ndwell == 1\n";
        Layer::file(Path::new("p.toml"), text, &mut faults);
        let lines: Vec<_> = faults.iter().map(|fault| fault.place.line).collect();
        assert!(
            lines.contains(&Some(2)) && lines.contains(&Some(5)) && lines.contains(&Some(6)),
            "{faults:?}"
        );
    }

    #[test]
    fn variables_without_keys_are_faults_and_foreign_ones_are_not_ours() {
        let mut faults = Vec::new();
        let variables =
            [("PICKET__RULES____DWELL", "1s"), ("PICKET__", ""), ("PICKET_TOKEN", ""), ("PATH", "")];
        let variables = variables.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        Layer::environment(&variables, &mut faults);
        let names: Vec<_> = faults.iter().map(|fault| fault.place.file.as_str()).collect();
        assert_eq!(names, ["PICKET__", "PICKET__RULES____DWELL"]);
    }
}
