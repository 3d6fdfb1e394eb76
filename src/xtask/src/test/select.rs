//! Which tests run: the landing set, all, those of a name, or those that a change can touch.

use super::changed::Change;
use super::list::{List, Test};
use super::table::Row;
use crate::failure::Failure;

/// Modules of `tests/tests` whose tests share a peer that takes long to begin: a cluster, a cloud. Many of them run in one process, which begins
/// it once; a few run as everything else does, each with a peer of its own.
const SHARED: [(&str, &str); 7] = [
    ("clouds", "aws"),
    ("clouds", "gcp"),
    ("clouds", "openstack"),
    ("deploy", "installed"),
    ("kubernetes", "cluster"),
    ("kubernetes", "controller"),
    ("kubernetes", "story"),
];
/// So many are a few.
const FEW: usize = 2;
/// Tests of the end to end, which the landing set has only by its table.
pub const END_TO_END: &str = "(package(=picket-tests) & kind(test))";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub enum What {
    /// What decides whether a change is right.
    Landing,
    /// Everything there is.
    All,
    /// What has one of these words in the name of its test, program or package.
    Named(Vec<String>),
    /// What the change since this revision can touch; `None`: since the main branch.
    Changed(Option<String>),
}

/// What runs.
#[derive(Debug, PartialEq, Eq)]
pub struct Selection {
    /// By nextest, a process each.
    pub filter: String,
    /// In one process each: program, module, and its tests.
    pub shared: Vec<(String, String, Vec<String>)>,
}

/// As nextest selects it.
pub fn filter(what: &What, rows: &[Row]) -> Result<String, Failure> {
    Ok(match what {
        What::Landing => landing(rows),
        What::All => "all()".to_owned(),
        What::Named(words) => words.iter().map(|word| by_name(word)).collect::<Vec<_>>().join(" | "),
        What::Changed(since) => Change::since(since.as_deref())?.filter(rows),
    })
}

/// All but the end to end, and of that what the table names.
fn landing(rows: &[Row]) -> String {
    let named: Vec<String> = rows.iter().map(Row::filter).collect();
    format!("not {END_TO_END} | {}", named.join(" | "))
}

/// A word may have been told by a failure: `power survival::x` or `power::survival::x`.
fn by_name(word: &str) -> String {
    // nextest reads what is quoted otherwise; a name has none of these.
    let word: String = word.chars().filter(|c| c.is_alphanumeric() || "_:-".contains(*c)).collect();
    let alone = format!("test(~{word}) | binary(~{word}) | package(~{word})");
    match word.split_once("::") {
        Some((program, rest)) => format!("{alone} | (binary(={program}) & test(~{rest}))"),
        None => alone,
    }
}

/// Who of the selected runs how.
pub fn divide(what: &What, filter: String, list: &List) -> Selection {
    let mut shared = Vec::new();
    if matches!(what, What::All | What::Named(_)) {
        for (program, module) in SHARED {
            let of_it = |test: &&Test| {
                test.selected
                    && test.package == "picket-tests"
                    && test.binary == program
                    && test.name.strip_prefix(module).is_some_and(|rest| rest.starts_with("::"))
            };
            let names: Vec<String> = list.tests.iter().filter(of_it).map(|test| test.name.clone()).collect();
            if names.len() > FEW {
                shared.push((program.to_owned(), module.to_owned(), names));
            }
        }
    }
    let without = shared.iter().map(|(program, module, _)| {
        format!(" & not (binary_id(=picket-tests::{program}) & test(/^{module}::/))")
    });
    let filter = format!("({filter}){}", without.collect::<String>());
    Selection { filter, shared }
}

/// Names of the table that no test has: whoever renames a test is told.
pub fn unknown(rows: &[Row], list: &List) -> Result<(), Failure> {
    let missing: Vec<String> = rows
        .iter()
        .flat_map(|row| &row.tests)
        .filter(|(program, name)| {
            let is_it = |test: &Test| {
                test.binary == *program
                    && (test.name == *name || name.ends_with("::") && test.name.starts_with(name))
            };
            !list.tests.iter().any(is_it)
        })
        .map(|(program, name)| format!("{program} {name}{}", list.near(name)))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("{} names what is not there: {}", super::table::PLACE, missing.join("; "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(binary: &str, name: &str) -> Test {
        Test {
            package: "picket-tests".to_owned(),
            binary: binary.to_owned(),
            name: name.to_owned(),
            selected: true,
            ignored: false,
        }
    }

    #[test]
    fn a_word_looks_into_tests_programs_and_packages() {
        assert_eq!(by_name("heart beat"), "test(~heartbeat) | binary(~heartbeat) | package(~heartbeat)");
        let exact = by_name("power::survival::x");
        assert!(exact.ends_with("| (binary(=power) & test(~survival::x))"), "{exact}");
    }

    #[test]
    fn many_that_share_a_peer_run_in_one_process_and_a_few_do_not() {
        let names = ["aws::a", "aws::b", "aws::c", "gcp::a"];
        let list = List { tests: names.map(|name| test("clouds", name)).into(), programs: Vec::new() };
        let all = divide(&What::All, "all()".to_owned(), &list);
        assert_eq!(all.shared.len(), 1);
        assert_eq!(all.shared[0].2, ["aws::a", "aws::b", "aws::c"]);
        assert_eq!(all.filter, "(all()) & not (binary_id(=picket-tests::clouds) & test(/^aws::/))");
        let landing = divide(&What::Landing, "all()".to_owned(), &list);
        assert_eq!((landing.shared.len(), landing.filter.as_str()), (0, "(all())"));
    }

    #[test]
    fn a_name_of_the_table_that_no_test_has_is_told_with_those_that_are_near() {
        let list = List { tests: vec![test("power", "a::it_falls")], programs: Vec::new() };
        let row = |name: &str| Row {
            promise: String::new(),
            before: String::new(),
            tests: vec![("power".to_owned(), name.to_owned())],
            about: Vec::new(),
        };
        assert_eq!(unknown(&[row("a::it_falls"), row("a::")], &list), Ok(()));
        let Err(Failure(why)) = unknown(&[row("a::it_fells")], &list) else { panic!("it was taken") };
        assert!(why.contains("power a::it_fells") && why.contains("a::it_falls"), "{why}");
    }
}
