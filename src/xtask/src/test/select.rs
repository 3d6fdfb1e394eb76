//! Which tests run: the landing set, all, those of a name, or those that a change can touch.

use std::collections::BTreeMap;

use super::changed::Change;
use super::list::{List, Program, Test};
use super::table::{self, Row};
use crate::failure::Failure;

/// Modules of `tests/tests` whose tests share what takes long to begin: a cluster, a cloud, packages. Many of them run in one process, which begins
/// it once; a few run as everything else does, each with a peer of its own.
const SHARED: [(&str, &str); 8] = [
    ("clouds", "aws"),
    ("clouds", "gcp"),
    ("clouds", "openstack"),
    ("deploy", "installed"),
    ("deploy", "packages"),
    ("kubernetes", "cluster"),
    ("kubernetes", "controller"),
    ("kubernetes", "story"),
];
/// Up to this many tests that share a peer run in processes of their own.
const FEW: usize = 2;

/// The sets that a user can ask for.
#[derive(Debug, PartialEq, Eq)]
pub enum What {
    /// The landing set: it decides whether a change is right.
    Landing,
    /// Everything there is.
    All,
    /// Tests with one of these words in the name of the test, program or package.
    Named(Vec<String>),
    /// Tests that the change since this revision can touch; `None`: since the main branch.
    Changed(Option<String>),
}

/// The tests of a run, and how they are started.
#[derive(Debug)]
pub struct Selection<'a> {
    pub tests: Vec<&'a Test>,
    /// By nextest, a process each: its filter.
    pub filter: String,
    /// In one process each.
    pub shared: Vec<Shared<'a>>,
}

/// Tests that share a peer.
#[derive(Debug)]
pub struct Shared<'a> {
    pub program: &'a Program,
    pub module: &'a str,
    pub tests: Vec<&'a str>,
}

/// Whether a test is in the landing set.
pub fn lands(test: &Test, rows: &[Row]) -> bool {
    !test.is_end_to_end() || rows.iter().any(|row| row.has(test))
}

/// The tests that were asked for.
///
/// # Errors
/// No test has one of the names; the table names one that is not there; one is ignored.
pub fn select<'a>(what: &What, rows: &[Row], list: &'a List) -> Result<Selection<'a>, Failure> {
    known(rows, list)?;
    let tests: Vec<&Test> = match what {
        What::Landing => list.tests.iter().filter(|test| lands(test, rows)).collect(),
        What::All => list.tests.iter().collect(),
        What::Named(words) => {
            named(words, list)?;
            list.tests.iter().filter(|test| words.iter().any(|word| is_called(test, word))).collect()
        }
        What::Changed(since) => {
            let change = Change::since(since.as_deref())?;
            let touched = change.touches(rows);
            list.tests.iter().filter(|test| touched.has(test)).collect()
        }
    };
    let few = if matches!(what, What::All | What::Named(_)) { FEW } else { usize::MAX };
    Ok(divide(tests, few, list))
}

/// Divides tests that run in a process of their own from those that share one: more than `few` with one peer.
fn divide<'a>(tests: Vec<&'a Test>, few: usize, list: &'a List) -> Selection<'a> {
    let mut by_peer: BTreeMap<(&str, &str), Vec<&Test>> = BTreeMap::new();
    for test in &tests {
        let place = (test.binary.as_str(), test.module());
        if test.is_end_to_end() && SHARED.contains(&place) {
            by_peer.entry(place).or_default().push(test);
        }
    }
    by_peer.retain(|_, tests| tests.len() > few);
    let alone = |test: &&&Test| !by_peer.contains_key(&(test.binary.as_str(), test.module()));
    let filter = filter(tests.iter().filter(alone).copied(), list);
    let shared = by_peer.into_iter().filter_map(|((_, module), tests)| {
        let program = list.program(tests.first()?)?;
        Some(Shared { program, module, tests: tests.into_iter().map(|test| test.name.as_str()).collect() })
    });
    Selection { filter, shared: shared.collect(), tests }
}

/// As nextest selects them: by program, of which all tests, or these names.
fn filter<'a>(tests: impl Iterator<Item = &'a Test>, list: &List) -> String {
    let mut by_program: BTreeMap<&str, Vec<&Test>> = BTreeMap::new();
    for test in tests {
        if let Some(program) = list.program(test) {
            by_program.entry(&program.id).or_default().push(test);
        }
    }
    let each = by_program.into_iter().map(|(id, tests)| {
        let of_it = |test: &&Test| list.program(test).is_some_and(|program| program.id == id);
        if tests.len() == list.tests.iter().filter(of_it).count() {
            return format!("binary_id(={id})");
        }
        let names: Vec<String> = tests.iter().map(|test| format!("test(={})", test.name)).collect();
        format!("(binary_id(={id}) & ({}))", names.join(" | "))
    });
    let filter = each.collect::<Vec<_>>().join(" | ");
    if filter.is_empty() { "none()".to_owned() } else { filter }
}

/// A failure calls a test by its name, or by its program and its name.
fn is_called(test: &Test, word: &str) -> bool {
    [&test.package, &test.binary, &test.name].iter().any(|name| name.contains(word))
        || format!("{}::{}::{}", test.package, test.binary, test.name).contains(word)
}

/// # Errors
/// A word that no test has in its name, with names that are near.
fn named(words: &[String], list: &List) -> Result<(), Failure> {
    let unknown: Vec<String> = words
        .iter()
        .filter(|word| !list.tests.iter().any(|test| is_called(test, word)))
        .map(|word| format!("{word}{}", list.near(word)))
        .collect();
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(format!("no test is called {}", unknown.join("; "))))
    }
}

fn known(rows: &[Row], list: &List) -> Result<(), Failure> {
    let unknown: Vec<String> = rows.iter().flat_map(|row| row.unknown(list)).collect();
    if !unknown.is_empty() {
        return Err(Failure::new(format!(
            "{} names what is not there: {}",
            table::PLACE,
            unknown.join("; ")
        )));
    }
    let ignored: Vec<&str> = list.tests.iter().filter(|test| test.ignored).map(|test| &*test.name).collect();
    if ignored.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("a test runs, or it is not there: ignored are {}", ignored.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> List {
        let clouds =
            ["aws::a", "aws::b", "aws::c", "gcp::a"].map(|name| Test::of("picket-tests", "clouds", name));
        let core =
            ["judge::it_waits", "judge::it_ends"].map(|name| Test::of("picket-core", "picket_core", name));
        let program = |id: &str, package: &str, binary: &str| Program {
            id: id.to_owned(),
            package: package.to_owned(),
            binary: binary.to_owned(),
            path: "/".into(),
            folder: "/".into(),
        };
        List {
            tests: clouds.into_iter().chain(core).collect(),
            programs: vec![
                program("picket-tests::clouds", "picket-tests", "clouds"),
                program("picket-core", "picket-core", "picket_core"),
            ],
        }
    }

    fn rows() -> Vec<Row> {
        vec![Row {
            promise: String::new(),
            before: String::new(),
            tests: vec![("clouds".to_owned(), "aws::a".to_owned())],
            about: Vec::new(),
        }]
    }

    fn filter(what: &What) -> (String, Vec<usize>) {
        let (rows, list) = (rows(), list());
        let selection = select(what, &rows, &list).expect("some");
        (selection.filter, selection.shared.iter().map(|shared| shared.tests.len()).collect())
    }

    #[test]
    fn the_landing_set_has_the_table_s_and_what_is_not_end_to_end() {
        let wanted = "binary_id(=picket-core) | (binary_id(=picket-tests::clouds) & (test(=aws::a)))";
        assert_eq!(filter(&What::Landing), (wanted.to_owned(), vec![]));
    }

    #[test]
    fn many_that_share_a_peer_run_in_one_process_and_a_few_do_not() {
        let wanted = "binary_id(=picket-core) | (binary_id(=picket-tests::clouds) & (test(=gcp::a)))";
        assert_eq!(filter(&What::All), (wanted.to_owned(), vec![3]));
        assert_eq!(filter(&What::Named(vec!["aws::".to_owned()])), ("none()".to_owned(), vec![3]));
    }

    #[test]
    fn a_word_looks_into_tests_programs_and_packages() {
        let named = |word: &str| filter(&What::Named(vec![word.to_owned()])).0;
        assert_eq!(named("waits"), "(binary_id(=picket-core) & (test(=judge::it_waits)))");
        assert_eq!(named("picket-core"), "binary_id(=picket-core)");
        assert_eq!(named("clouds::gcp::a"), "(binary_id(=picket-tests::clouds) & (test(=gcp::a)))");
    }

    #[test]
    fn a_name_that_no_test_has_is_told_with_those_that_are_near() {
        let (rows, list) = (rows(), list());
        let unknown = What::Named(vec!["it_ents".to_owned()]);
        let Err(Failure(why)) = select(&unknown, &rows, &list) else { panic!("it was taken") };
        assert_eq!(why, "no test is called it_ents; near it: it_ends");
        let renamed = [Row {
            tests: vec![("clouds".to_owned(), "aws::z".to_owned())],
            ..rows.into_iter().next().expect("one")
        }];
        let Err(Failure(why)) = select(&What::All, &renamed, &list) else { panic!("it was taken") };
        assert!(why.starts_with("tests/README.md names what is not there: clouds aws::z"), "{why}");
    }
}
