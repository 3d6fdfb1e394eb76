//! The pages and the schema that are made from the sources, so that they cannot differ from them.
//!
//! `cargo xtask pages` writes them, `cargo xtask verify` compares. The pages of the programs need the programs' definitions: a test
//! of `picket-manual` compares those, and `cargo xtask pages` lets that test write them.

mod errors;
mod metrics;
mod settings;

use crate::failure::Failure;
use crate::{place, run};

/// The first line of a page that is made.
fn made_of(source: &str) -> String {
    format!("<!-- `cargo xtask pages` makes this page from {source}. -->\n\n")
}

/// Each file with its text.
fn files() -> Result<Vec<(String, String)>, Failure> {
    let mut files = settings::pages();
    files.push(("deploy/picket.schema.json".to_owned(), picket_schema::shipped()));
    files.push(("docs/reference/metrics.md".to_owned(), metrics::page(&source(metrics::SOURCE)?)?));
    files.push(("docs/reference/errors.md".to_owned(), errors::page(&source(errors::SOURCE)?)?));
    Ok(files)
}

fn source(path: &str) -> Result<String, Failure> {
    std::fs::read_to_string(place::top().join(path)).map_err(Failure::of(path))
}

/// Writes what is made from text, and lets a test write what is made from programs.
pub fn write() -> Result<(), Failure> {
    for (path, text) in files()? {
        let at = place::top().join(&path);
        if let Some(folder) = at.parent() {
            std::fs::create_dir_all(folder).map_err(Failure::of(&path))?;
        }
        std::fs::write(&at, text).map_err(Failure::of(&path))?;
        println!("{path}");
    }
    let mut tests = place::cargo();
    tests.args(["test", "--locked", "--no-default-features", "-p", "picket-manual", "--bins", "the_page_of"]);
    tests.env("PICKET_BLESS", "1");
    run::shown(tests)
}

/// Says which of them differ.
pub fn check() -> Result<(), Failure> {
    eprintln!("\n+ pages that are made from the sources");
    let differs = |(path, text): &(String, String)| source(path).ok().as_ref() != Some(text);
    let wrong: Vec<String> = files()?.into_iter().filter(differs).map(|(path, _)| path).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("{}: cargo xtask pages writes them", wrong.join(", "))))
}

/// The cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
