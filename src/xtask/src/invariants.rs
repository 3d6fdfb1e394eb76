//! Whether the `# Invariants` of the sources name tests that exist, and the map paths that exist.
//!
//! An item names the tests that enforce it behind the words "Shown by", each in backticks, by the name of its function.

use std::collections::{BTreeMap, BTreeSet};

use crate::failure::Failure;
use crate::{pages, place};

/// The map of the sources.
const MAP: &str = "src/ARCHITECTURE.md";
/// The most words of the map.
const MAP_WORDS: usize = 2_500;
/// How a section of invariants begins.
const HEADING: &str = "# Invariants";
/// What stands before the tests of an item.
const SHOWN: &str = "Shown by ";
/// The last letters of a path in the map: a quoted word without one of them is code, unless it has a slash.
const ENDINGS: [&str; 4] = [".rs", ".md", ".toml", ".proto"];

/// # Errors
/// A name leads nowhere, the map is too long, or a file cannot be read.
pub fn check() -> Result<(), Failure> {
    eprintln!("\n+ invariants and the map");
    let faults = faults(&pages::files()?, |path| place::top().join(path).exists());
    if faults.is_empty() {
        return Ok(());
    }
    Err(Failure::new(faults.join("\n    ")))
}

fn faults(files: &BTreeMap<String, String>, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let sources = || files.iter().filter(|(name, _)| name.ends_with(".rs"));
    let tests: BTreeSet<&str> = sources().flat_map(|(_, text)| tests(text)).collect();
    let mut faults = Vec::new();
    for (name, text) in sources() {
        let items = items(text);
        // A section whose list is written otherwise would be looked at by nobody.
        if items.is_empty() && head(text).any(|line| line == HEADING) {
            faults.push(format!("{name}: {HEADING} has no list"));
        }
        for item in items {
            let Some((_, shown)) = item.split_once(SHOWN) else { continue };
            let named: Vec<&str> = quoted(shown).collect();
            if named.is_empty() {
                faults.push(format!("{name}: no test is named behind \"{SHOWN}\": {item}"));
            }
            let unknown = named.into_iter().filter(|test| !tests.contains(test));
            faults.extend(
                unknown.map(|test| format!("{name}: an invariant names {test}, and no test is called so")),
            );
        }
    }
    let map = files.get(MAP).map(String::as_str).unwrap_or_default();
    let words = map.split_whitespace().count();
    if words > MAP_WORDS {
        faults.push(format!("{MAP} has {words} words: {MAP_WORDS} are the most"));
    }
    let prose = map.split("```").step_by(2);
    let gone = prose.flat_map(quoted).filter(|word| is_path(word) && !exists(word));
    faults.extend(gone.map(|path| format!("{MAP} names {path}, which is not there")));
    faults
}

/// The lines of a file's `//!`, without that mark.
fn head(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| line.trim_start().strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
}

/// The items of the section of invariants, each in one line.
fn items(text: &str) -> Vec<String> {
    let section =
        head(text).skip_while(|line| *line != HEADING).skip(1).take_while(|line| !line.starts_with("# "));
    let mut items: Vec<String> = Vec::new();
    for line in section {
        if let Some(first) = line.strip_prefix("- ") {
            items.push(first.to_owned());
        } else if let (Some(rest), Some(item)) = (line.strip_prefix("  "), items.last_mut()) {
            *item += " ";
            *item += rest;
        }
    }
    items
}

/// The names of functions that an attribute makes a test of.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().filter_map(move |line| {
        let line = line.trim_start();
        is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        let (_, name) = line.split_once("fn ").filter(|_| !line.starts_with("//"))?;
        std::mem::take(&mut is_test).then(|| name.split('(').next().unwrap_or(name))
    })
}

/// What stands in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether a quoted word is a path from the top: it has no blank, and a slash or the ending of a file.
fn is_path(word: &str) -> bool {
    let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_'));
    is_plain && (word.contains('/') || ENDINGS.iter().any(|ending| word.ends_with(ending)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(files: &[(&str, &str)]) -> Vec<String> {
        let files: BTreeMap<String, String> =
            files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        faults(&files, |path| files.contains_key(path))
    }

    const TESTS: &str = "#[test]\nfn it_holds() {}\n\n#[tokio::test(start_paused = true)]\n// Why.\nasync fn it_waits() {}\nfn helper() {}\n";

    #[test]
    fn an_invariant_names_tests_that_exist() {
        let right = "//! What.\n//!\n//! # Invariants\n//!\n//! - It holds (S1).\n//!   Shown by `it_holds`\n//!   and `it_waits`.\n//! - `fence` is no test.\n";
        assert_eq!(told(&[("a.rs", right), ("b.rs", TESTS)]), [] as [&str; 0]);
        let wrong = "//! # Invariants\n//!\n//! - It holds. Shown by `it_held`, `helper`.\n//! - Shown by nothing.\n//!\n//! # More\n//!\n//! - Shown by `gone`.\n";
        assert_eq!(
            told(&[("a.rs", wrong), ("b.rs", TESTS)]),
            [
                "a.rs: an invariant names it_held, and no test is called so",
                "a.rs: an invariant names helper, and no test is called so",
                "a.rs: no test is named behind \"Shown by \": Shown by nothing.",
            ]
        );
        assert_eq!(
            told(&[("a.rs", "//! # Invariants\n//!\n//! It holds.\n")]),
            ["a.rs: # Invariants has no list"]
        );
    }

    #[test]
    fn the_map_is_short_and_its_paths_exist() {
        let right = "`src/a.rs`, `Store`, `store::save`, `picket fence n/a`\n```\n`no/path`\n```\n";
        assert_eq!(told(&[(MAP, right), ("src/a.rs", "")]), [] as [&str; 0]);
        let wrong = format!("`src/b.rs` `Cargo.toml` {}", "word ".repeat(MAP_WORDS));
        assert_eq!(
            told(&[(MAP, &wrong)]),
            [
                "src/ARCHITECTURE.md has 2502 words: 2500 are the most",
                "src/ARCHITECTURE.md names src/b.rs, which is not there",
                "src/ARCHITECTURE.md names Cargo.toml, which is not there",
            ]
        );
    }
}
