//! What the example says of each key by hand is what the schema knows: that there is such a key, its default, its range.

use std::path::Path;

use picket_core::time::duration;
use picket_schema::{DefaultValue, Key, SETTINGS, ValueType, Variants};

/// They say which further keys a table has, and each of their values is shown.
const SELECTORS: [&str; 2] = ["kind", "driver"];

/// No endings of keys.
const NONE: &[&str] = &[];

/// A line that shows a key, with its remarks.
struct Shown {
    number: usize,
    /// Whether a # stands before it.
    marked: bool,
    key: String,
    value: toml::Value,
    remark: String,
}

/// A table of the example, also one with a # before it.
struct Section {
    path: Vec<String>,
    lines: Vec<Shown>,
}

/// What stands behind the marks of a comment.
fn unmarked(line: &str) -> &str {
    let line = line.strip_prefix('#').unwrap_or(line);
    line.strip_prefix(' ').unwrap_or(line)
}

/// The names in the header of a table.
fn header(text: &str) -> Option<Vec<String>> {
    let table: toml::Table = text.starts_with('[').then(|| text.parse().ok())??;
    let (mut path, mut inner) = (Vec::new(), Some(&table));
    while let Some((name, below)) = inner.and_then(|table| table.iter().next()) {
        path.push(name.clone());
        inner = below.as_table();
    }
    Some(path)
}

fn shown(number: usize, line: &str) -> Option<Shown> {
    let text = unmarked(line);
    let (key, _) = text.split_once(" = ")?;
    if !key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
        return None;
    }
    // A # in a text ends nothing: what stands before it is no TOML.
    let mut ends = text.match_indices('#').map(|(at, _)| at).chain([text.len()]);
    let (value, rest) = ends.find_map(|at| {
        let (before, rest) = text.split_at(at);
        Some((before.parse::<toml::Table>().ok()?.get(key)?.clone(), rest))
    })?;
    let (key, remark) = (key.to_owned(), rest.trim_start_matches('#').trim().to_owned());
    Some(Shown { number, marked: line.starts_with('#'), key, value, remark })
}

fn sections() -> Vec<Section> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/picket.example.toml");
    let mut sections: Vec<Section> = Vec::new();
    for (at, line) in std::fs::read_to_string(path).unwrap().lines().enumerate() {
        let behind = line.trim_start_matches(['#', ' ']);
        // What goes on stands below the remarks.
        let goes_on = line.len() - behind.len() > 10;
        if let Some(path) = header(unmarked(line)) {
            sections.push(Section { path, lines: Vec::new() });
            continue;
        }
        let Some(section) = sections.last_mut() else { continue };
        match section.lines.last_mut().filter(|_| goes_on) {
            Some(last) => last.remark += &format!(" {behind}"),
            None => section.lines.extend(shown(at + 1, line)),
        }
    }
    sections
}

impl Section {
    /// The keys of its table, and the endings that stand for further ones.
    fn keys(&self) -> (Vec<Key>, &'static [&'static str]) {
        let (mut keys, mut endings) = (SETTINGS.to_vec(), NONE);
        let mut names = self.path.iter();
        while let Some(name) = names.next() {
            let key = keys.iter().find(|key| key.name == name);
            let key = key.unwrap_or_else(|| panic!("{:?}: no table {name}", self.path));
            (keys, endings) = match key.value {
                ValueType::Table(keys) => (keys.to_vec(), NONE),
                ValueType::Variant(variants) => self.of(variants),
                ValueType::Named(keys) => {
                    names.next();
                    (keys.to_vec(), NONE)
                }
                ValueType::NamedVariant(variants) => {
                    names.next();
                    self.of(variants)
                }
                other => panic!("{:?}: {name} is {other:?}", self.path),
            };
        }
        (keys, endings)
    }

    fn of(&self, variants: &Variants) -> (Vec<Key>, &'static [&'static str]) {
        let by = self.lines.iter().find(|line| line.key == variants.by);
        let own = match by.and_then(|line| line.value.as_str()) {
            Some(name) => variants.own(name).unwrap_or_else(|| panic!("{:?}: no {name}", self.path)).to_vec(),
            // One that goes over a template's: whichever it is.
            None => variants.of.iter().flat_map(|(_, keys)| keys.iter().copied()).collect(),
        };
        let named = by.and_then(|line| line.value.as_str()).unwrap_or_default();
        let endings = variants.endings.iter().find(|(variant, _)| *variant == named);
        ([variants.common, &own[..]].concat(), endings.map_or(NONE, |(_, endings)| *endings))
    }
}

/// Texts that are durations count as such: `60s` is `1m`.
fn same(a: &toml::Value, b: &toml::Value) -> bool {
    let time = |value: &toml::Value| value.as_str().and_then(duration);
    a == b || time(a).is_some() && time(a) == time(b)
}

/// The ranges that a remark names, as pairs of words: `1s to 60m`.
fn ranges(remark: &str) -> Vec<(String, String)> {
    let words: Vec<&str> = remark.split_whitespace().collect();
    let pairs = words.windows(3).filter(|three| three[1] == "to" && !three[0].ends_with([',', ';']));
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    pairs.map(|three| (bare(three[0]), bare(three[2]))).collect()
}

/// A number or a duration of a remark, as the type of a key measures it.
fn measured(word: &str, value: ValueType) -> Option<u128> {
    match value {
        ValueType::Integer(..) => word.parse().ok(),
        ValueType::Size(..) => {
            let (number, unit) = word.split_at(word.find(|c: char| !c.is_ascii_digit())?);
            let at = ["KiB", "MiB", "GiB"].iter().position(|one| *one == unit)?;
            Some(number.parse::<u128>().ok()? << (10 * (at + 1)))
        }
        _ => duration(word).map(|time| time.as_millis()),
    }
}

fn edges(value: ValueType) -> Option<(u128, u128)> {
    let both = |least: &str, most: &str| Some((measured(least, value)?, measured(most, value)?));
    match value {
        ValueType::Integer(least, most) => Some((least.into(), most.into())),
        ValueType::Duration(least, most)
        | ValueType::NeverOrDuration(least, most)
        | ValueType::FlagOrDuration(least, most)
        | ValueType::Size(least, Some(most)) => both(least, most),
        _ => None,
    }
}

/// What is wrong in a line.
fn faults(key: &Key, line: &Shown) -> Vec<String> {
    let mut faults = Vec::new();
    let shows_default = line.marked && !SELECTORS.contains(&key.name);
    if let (DefaultValue::Value(text), true) = (key.default, shows_default) {
        let table: toml::Table = format!("it = {text}").parse().unwrap();
        if !same(&table["it"], &line.value) {
            faults.push(format!("the default is {text}"));
        }
    }
    let says = |words: &str| line.remark.to_lowercase().contains(words);
    match key.default {
        DefaultValue::Required if says("default") => faults.push("it has no default".to_owned()),
        DefaultValue::Value(text) if says("default: none") && text != "[]" => {
            faults.push(format!("the default is {text}, and not none"));
        }
        DefaultValue::Computed(text) if says("default: none") => {
            faults.push(format!("the default is {text}, and not none"));
        }
        _ => {}
    }
    if let Some(edges) = edges(key.value) {
        for (least, most) in ranges(&line.remark) {
            let told = measured(&least, key.value).zip(measured(&most, key.value));
            if told.is_some_and(|told| told != edges) {
                faults.push(format!("its range is {}", key.value.range().unwrap_or_default()));
            }
        }
    }
    faults
}

#[test]
fn what_the_example_says_of_a_key_is_what_the_schema_knows() {
    let (mut wrong, mut seen, mut held) = (Vec::new(), 0, 0);
    for section in sections() {
        let place = section.path.join(".");
        let (keys, endings) = section.keys();
        for line in &section.lines {
            let at = format!("picket.example.toml:{}: {place}.{}", line.number, line.key);
            let Some(key) = keys.iter().find(|key| key.name == line.key) else {
                if !endings.iter().any(|ending| line.key.ends_with(ending)) {
                    wrong.push(format!("{at}: there is no such key"));
                }
                continue;
            };
            seen += 1;
            held += usize::from(matches!(key.default, DefaultValue::Value(_)) && line.marked);
            held += edges(key.value).map_or(0, |_| ranges(&line.remark).len());
            wrong.extend(faults(key, line).iter().map(|fault| format!("{at}: {fault}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 200 && held > 100, "the example is not found: {seen}, {held}");
}

#[test]
fn what_is_false_in_an_example_is_found() {
    let key = picket_schema::IPMI.iter().find(|key| key.name == "idle_limit").unwrap();
    for (line, wanted) in [
        ("# idle_limit = \"60s\"    # 1s to 60m. Never less", 0),
        ("# idle_limit = \"61s\"    # 1s to 60m", 1),
        ("# idle_limit = \"60s\"    # 1s to 61m", 1),
        ("# idle_limit = \"60s\"    # default: none", 1),
        ("idle_limit = \"61s\"", 0),
    ] {
        let line_shown = shown(1, line).unwrap();
        assert_eq!(faults(key, &line_shown).len(), wanted, "{line}");
    }
}
