//! Whether the pages lead anywhere: their links, the pages that sources name, the index, and how long they are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};
use std::process::Command;

use crate::failure::Failure;
use crate::{place, run};

/// It has a link to each page of its folder.
pub const INDEX: &str = "docs/README.md";
/// The decisions' own index, so that the first one stays short.
const DECISIONS: &str = "docs/decisions/README.md";
/// The most lines of the first thing that anybody reads.
const README_LINES: usize = 150;
/// The most words of a page.
const PAGE_WORDS: usize = 900;
/// The most words of a decision.
const DECISION_WORDS: usize = 300;
/// Pages that tests hold to the product, and those of boards: whoever looks something up reads a row or a section, and not the page.
const TABLES: [&str; 7] = [
    "docs/agents-list.md",
    "docs/ipmi-boards.md",
    "docs/redfish-boards.md",
    "docs/redfish-check.md",
    "docs/rehearse-settings.md",
    "docs/stops.md",
    "docs/threat-model.md",
];

/// Pages that are made from the sources: whoever looks something up in them reads a row.
const MADE: &str = "docs/reference/";

/// Looks at all files that git has or would take.
pub fn check() -> Result<(), Failure> {
    eprintln!("\n+ links, names and lengths of the pages");
    let faults = faults(&files()?, |path| place::top().join(path).exists());
    if faults.is_empty() {
        return Ok(());
    }
    Err(Failure::new(faults.join("\n    ")))
}

/// The text files that git has or would take, by their paths from the top.
pub fn files() -> Result<BTreeMap<String, String>, Failure> {
    let mut command = Command::new("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(place::top());
    let listed = run::output(command)?;
    let names = listed.split(|byte| *byte == 0).map(|name| String::from_utf8_lossy(name).into_owned());
    // What is no text names no page, and what was just removed is not there any more.
    let texts =
        names.filter_map(|name| Some((std::fs::read_to_string(place::top().join(&name)).ok()?, name)));
    Ok(texts.map(|(text, name)| (name, text)).collect())
}

fn faults(files: &BTreeMap<String, String>, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let pages: BTreeMap<&str, Page> = files
        .iter()
        .filter(|(name, _)| name.ends_with(".md"))
        .map(|(name, text)| (&**name, Page::of(text)))
        .collect();
    let mut faults = Vec::new();
    for (name, page) in &pages {
        for link in &page.links {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let Some(to) = (if file.is_empty() { Some((*name).to_owned()) } else { beside(name, file) })
            else {
                faults.push(format!("{name}: {link} leads out of the sources"));
                continue;
            };
            if !exists(&to) {
                faults.push(format!("{name}: {link} leads to {to}, which is not there"));
            } else if let Some(page) = pages.get(&*to)
                && !heading.is_empty()
                && !page.headings.contains(heading)
            {
                faults.push(format!("{name}: {link} leads to a heading that {to} does not have"));
            }
        }
    }
    for (name, text) in files {
        let gone = named(text).into_iter().filter(|page| !exists(page));
        faults.extend(gone.map(|page| format!("{name} names {page}, which is not there")));
    }
    for (name, page) in pages.iter().filter(|(name, _)| name.starts_with("docs/")) {
        let is_decision = name.starts_with("docs/decisions/") && *name != DECISIONS;
        let index = if is_decision { DECISIONS } else { INDEX };
        let is_linked = |index: &Page, own: &str| {
            index.links.iter().filter_map(|link| beside(own, link.split('#').next()?)).any(|to| to == **name)
        };
        if *name != INDEX && !pages.get(index).is_some_and(|page| is_linked(page, index)) {
            faults.push(format!("{index} has no link to {name}"));
        }
        let most = if is_decision { DECISION_WORDS } else { PAGE_WORDS };
        if page.words > most && !TABLES.contains(name) && !name.starts_with(MADE) {
            faults.push(format!("{name} has {} words: split it, {most} are the most", page.words));
        }
    }
    let lines = files.get("README.md").map_or(0, |text| text.lines().count());
    if lines > README_LINES {
        faults.push(format!("README.md has {lines} lines: {README_LINES} are the most"));
    }
    faults
}

/// What is looked at of a page.
struct Page {
    /// As they stand there, without those to other places of the web.
    links: Vec<String>,
    /// By the names that links have for them.
    headings: BTreeSet<String>,
    words: usize,
}

impl Page {
    fn of(text: &str) -> Self {
        let (mut links, mut headings, mut is_shown) = (Vec::new(), BTreeSet::new(), false);
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                is_shown = !is_shown;
            } else if is_shown {
                continue;
            } else if let Some(heading) = heading(line) {
                let (first, mut name, mut more) = (anchor(heading), anchor(heading), 0);
                while !headings.insert(name) {
                    more += 1;
                    name = format!("{first}-{more}");
                }
            } else {
                links.extend(linked(line));
            }
        }
        Self { links, headings, words: text.split_whitespace().count() }
    }
}

fn heading(line: &str) -> Option<&str> {
    line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
}

/// As GitHub names a heading: its letters and digits in lower case, hyphens for blanks.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The files of the sources to which a page's text leads, in their order, without the headings.
pub fn leads_to(page: &str, text: &str) -> Vec<String> {
    let file = |link: &String| beside(page, link.split('#').next().filter(|file| !file.is_empty())?);
    Page::of(text).links.iter().filter_map(file).collect()
}

/// Where the links and pictures of a line lead, but for what it has as code.
fn linked(line: &str) -> Vec<String> {
    let text: String = line.split('`').step_by(2).collect();
    let after = |mark: &'static str, end: char| {
        text.split(mark)
            .skip(1)
            .filter_map(move |rest| rest.split_once(end))
            .map(|(link, _)| link.to_owned())
            .collect()
    };
    let found: [Vec<String>; 2] = [after("](", ')'), after("src=\"", '"')];
    found.into_iter().flatten().filter(|link| !link.contains(':')).collect()
}

/// A path that a page has, from the top.
fn beside(page: &str, path: &str) -> Option<String> {
    let joined = Path::new(page).parent()?.join(path);
    let mut parts: Vec<&str> = Vec::new();
    for component in joined.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// The pages of the folder of pages that a text names from the top, as a comment or a message does.
fn named(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("docs/") {
        let before = text[..at].trim_end_matches("../").chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_')) {
            continue;
        }
        let rest = &text[at + "docs/".len()..];
        let folder = ["reference/", "decisions/"].into_iter().find(|folder| rest.starts_with(folder));
        let folder = folder.unwrap_or_default();
        let rest = &rest[folder.len()..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(rest.len());
        if end > 0 && rest[end..].starts_with(".md") {
            found.insert(format!("docs/{folder}{}.md", &rest[..end]));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(files: &[(&str, &str)]) -> Vec<String> {
        let files: BTreeMap<String, String> =
            files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        faults(&files, |path| files.contains_key(path))
    }

    #[test]
    fn a_link_leads_to_a_page_and_a_heading_that_are_there() {
        let index = "[a](faq.md#what-b-is), [up](../README.md), [w](https://a.example/x.md#y)\n\n```\n[no](no.md)\n```\n`[no](no.md)`\n";
        let page = "# A\n\n## What `b` is\n\n## Twice\n\n## Twice\n\n[x](#twice-1)\n";
        assert_eq!(told(&[(INDEX, index), ("docs/faq.md", page), ("README.md", "")]), [] as [&str; 0]);
        let wrong = "[a](faq.md#what-c-is) ![b](b.svg) <img src=\"c.svg\"> [d](../../d.md) [e](#twice-2)\n";
        assert_eq!(
            told(&[(INDEX, index), ("docs/faq.md", &format!("{page}{wrong}")), ("README.md", "")]),
            [
                "docs/faq.md: faq.md#what-c-is leads to a heading that docs/faq.md does not have",
                "docs/faq.md: b.svg leads to docs/b.svg, which is not there",
                "docs/faq.md: ../../d.md leads out of the sources",
                "docs/faq.md: #twice-2 leads to a heading that docs/faq.md does not have",
                "docs/faq.md: c.svg leads to docs/c.svg, which is not there",
            ]
        );
    }

    #[test]
    fn a_page_that_a_message_names_is_there() {
        // In two parts: this file is looked at, too.
        let name = |page: &str| ["docs", page].join("/");
        let (there, gone, decided) = (name("faq.md"), name("gone.md"), name("decisions/7-gone.md"));
        let text =
            format!("\"see {there}\" {gone}, ../../{gone}; https://a.example/{gone} other-{gone} {decided}");
        let found = told(&[(INDEX, "[a](faq.md)"), (&there, ""), ("src/a.rs", &text)]);
        assert_eq!(found, [&decided, &gone].map(|page| format!("src/a.rs names {page}, which is not there")));
    }

    #[test]
    fn the_index_has_each_page_and_none_is_too_long() {
        let (long, table) = ("word ".repeat(PAGE_WORDS + 1), TABLES[0]);
        let index = "[a](faq.md) [t](agents-list.md)";
        let readme = "line\n".repeat(README_LINES + 1);
        assert_eq!(
            told(&[
                (INDEX, index),
                ("docs/faq.md", &long),
                (table, &long),
                ("docs/glossary.md", ""),
                ("README.md", &readme)
            ]),
            [
                "docs/faq.md has 901 words: split it, 900 are the most",
                "docs/README.md has no link to docs/glossary.md",
                "README.md has 151 lines: 150 are the most",
            ]
        );
    }

    #[test]
    fn decisions_are_short_and_in_an_index_of_their_own() {
        let page = |name: &str| ["docs/decisions", name].join("/");
        let (listed, forgotten) = (page("1-a.md"), page("2-b.md"));
        let long = "word ".repeat(DECISION_WORDS + 1);
        let files = [(INDEX, "[d](decisions/README.md)"), (DECISIONS, "[a](1-a.md)"), (&listed, &long)];
        assert_eq!(
            told(&[&files[..], &[(&forgotten, "")]].concat()),
            [
                format!("{listed} has 301 words: split it, 300 are the most"),
                format!("{DECISIONS} has no link to {forgotten}"),
            ]
        );
    }
}
