//! `cargo xtask site`: the pages as a site, by mdBook.
//!
//! The order is that of the index, `docs/README.md`. Pages and files keep their paths below the top of the sources, so that every link
//! that `cargo xtask verify` has looked at leads to the same thing in the site.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::pages::{self, INDEX};
use crate::{place, run};

const VERSION: &str = "0.5.4";

/// The first page, at the top: mdBook makes of it the index of the site, whose links count from there.
const FIRST: &str = "README.md";

/// Without preprocessors: a page named README keeps its name, and a link to it leads there.
const BOOK: &str = "[book]\ntitle = \"Picket\"\nlanguage = \"en\"\nsrc = \"src\"\n\n[build]\nuse-default-preprocessors = false\ncreate-missing = false\n";

/// Makes the site in `out`, or in the target folder.
pub fn site(out: Option<PathBuf>) -> Result<(), Failure> {
    pages::check()?;
    let made = place::built()?.with_file_name("site");
    let out = match out {
        Some(out) => std::path::absolute(&out).map_err(Failure::of(out.display()))?,
        None => made.join("html"),
    };
    let sources = made.join("src");
    if sources.exists() {
        std::fs::remove_dir_all(&sources).map_err(Failure::of(sources.display()))?;
    }
    let found = found(|path| std::fs::read_to_string(place::top().join(path)).ok());
    for path in found.texts.keys().chain(&found.files) {
        copy(path, &sources)?;
    }
    write(&sources.join("SUMMARY.md"), summary(&found.texts))?;
    write(&made.join("book.toml"), BOOK)?;
    let mut build = std::process::Command::new(program()?);
    build.arg("build").arg(&made).arg("--dest-dir").arg(&out);
    run::shown(build)?;
    println!("{}", out.join("index.html").display());
    Ok(())
}

/// mdBook, built on first use as nextest is.
fn program() -> Result<PathBuf, Failure> {
    let home = place::cache()?.join(format!("mdbook-{VERSION}"));
    let program = home.join("bin/mdbook");
    if program.exists() {
        return Ok(program);
    }
    let building = home.join("building");
    let mut install = place::cargo();
    install.args(["install", "mdbook", "--version", VERSION, "--locked", "--debug", "--quiet", "--no-track"]);
    install.args(["--no-default-features", "--features", "search", "--root"]);
    install.arg(&home).arg("--target-dir").arg(&building).current_dir("/");
    run::shown(install)?;
    std::fs::remove_dir_all(&building).map_err(Failure::of(building.display()))?;
    Ok(program)
}

/// What the site has.
struct Found {
    /// Pages, with their texts.
    texts: BTreeMap<String, String>,
    /// Other files to which pages lead.
    files: BTreeSet<String>,
}

/// Every page to which links lead from the first page and the index, and every file to which those lead.
fn found(read: impl Fn(&str) -> Option<String>) -> Found {
    let (mut texts, mut files) = (BTreeMap::new(), BTreeSet::new());
    let mut to_read = vec![FIRST.to_owned(), INDEX.to_owned()];
    while let Some(path) = to_read.pop() {
        if texts.contains_key(&path) {
            continue;
        }
        match read(&path) {
            Some(text) if path.ends_with(".md") => {
                to_read.extend(pages::leads_to(&path, &text));
                texts.insert(path, text);
            }
            Some(_) => drop(files.insert(path)),
            // A folder, which a site does not list.
            None => {}
        }
    }
    Found { texts, files }
}

/// The chapters: the headings of the index are the parts, its links the pages. Pages that others lead to come last.
fn summary(texts: &BTreeMap<String, String>) -> String {
    let title = |path: &str| {
        let text = texts.get(path).map(String::as_str).unwrap_or_default();
        let heading = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(path);
        heading.replace('[', "\\[").replace(']', "\\]")
    };
    let first = [FIRST, INDEX];
    let mut out = format!("# Summary\n\n[{}]({FIRST})\n[{}]({INDEX})\n", title(FIRST), title(INDEX));
    let mut listed = BTreeSet::from(first.map(str::to_owned));
    let mut chapter = |path: &str| match texts.contains_key(path) && listed.insert(path.to_owned()) {
        true => format!("- [{}]({path})\n", title(path)),
        false => String::new(),
    };
    for line in texts.get(INDEX).map(String::as_str).unwrap_or_default().lines() {
        if let Some(heading) =
            line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with("##"))
        {
            out += &format!("\n# {heading}\n\n");
        }
        pages::leads_to(INDEX, line).iter().for_each(|path| out += &chapter(path));
    }
    let further: String = texts.keys().map(|path| chapter(path)).collect();
    if further.is_empty() { out } else { format!("{out}\n# Further pages\n\n{further}") }
}

fn copy(path: &str, to: &Path) -> Result<(), Failure> {
    let bytes = std::fs::read(place::top().join(path)).map_err(Failure::of(path))?;
    write(&to.join(path), bytes)
}

fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(Failure::of(folder.display()))?;
    }
    std::fs::write(path, text).map_err(Failure::of(path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // In two parts: the check of names looks at this file, too.
    const A: &str = concat!("docs", "/a.md");
    const B: &str = concat!("docs", "/b.md");

    #[test]
    fn the_index_is_the_order_and_every_page_that_is_led_to_is_there() {
        let files = [
            (
                INDEX,
                "# Pages\n\n## Learn\n\n1. [b](b.md), [a](a.md)\n\n### Devices\n\n[again](a.md#x) [s](x.svg)\n",
            ),
            (FIRST, "# P\n\n[pages](docs/README.md)\n"),
            (A, "# A [1]\n\n[c](../c.md) [folder](more)\n"),
            (B, "# B\n"),
            ("c.md", "# C\n"),
            ("docs/x.svg", "<svg/>"),
            ("other.md", "# No link leads here\n"),
        ];
        let found =
            found(|path| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned()));
        assert_eq!(found.texts.keys().collect::<Vec<_>>(), [FIRST, "c.md", INDEX, A, B]);
        assert_eq!(found.files.iter().collect::<Vec<_>>(), ["docs/x.svg"]);
        let chapters = summary(&found.texts);
        let wanted = format!(
            "# Summary\n\n[P](README.md)\n[Pages](docs/README.md)\n\n# Learn\n\n- [B]({B})\n- [A \\[1\\]]({A})\n\n# Devices\n\n\n\
             # Further pages\n\n- [C](c.md)\n"
        );
        assert_eq!(chapters, wanted);
    }
}
