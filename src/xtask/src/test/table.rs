//! The table of `tests/README.md`: which end-to-end tests are in the landing set, and for which promise.

use super::list::{List, Test};
use crate::failure::Failure;
use crate::place;

/// Where it stands.
pub const PLACE: &str = "tests/README.md";
const HEAD: &str = "| promise | shown before | tests | about |";

/// A promise, and the tests that show it end to end.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    pub promise: String,
    pub before: String,
    /// A program, and the name of a test of it, or the beginning of several that ends with `::`.
    pub tests: Vec<(String, String)>,
    /// Crates, by the names of their folders, a change of which this row is about; none: a change of any.
    pub about: Vec<String>,
}

impl Row {
    /// Whether it names this test.
    pub fn has(&self, test: &Test) -> bool {
        test.is_end_to_end() && self.tests.iter().any(|(program, name)| names(program, name, test))
    }

    /// Names of this row that no test has: a renamed test is noticed.
    pub fn unknown<'a>(&'a self, list: &'a List) -> impl Iterator<Item = String> + 'a {
        let missing =
            |(program, name): &&(String, String)| !list.tests.iter().any(|test| names(program, name, test));
        self.tests
            .iter()
            .filter(missing)
            .map(|(program, name)| format!("{program} {name}{}", list.near(name)))
    }
}

fn names(program: &str, name: &str, test: &Test) -> bool {
    test.binary == program
        && if name.ends_with("::") { test.name.starts_with(name) } else { test.name == name }
}

/// All rows.
pub fn rows() -> Result<Vec<Row>, Failure> {
    let file = place::top().join(PLACE);
    let text = std::fs::read_to_string(&file).map_err(Failure::of(file.display()))?;
    read(&text)
}

fn read(text: &str) -> Result<Vec<Row>, Failure> {
    let lines = text.lines().enumerate().skip_while(|(_, line)| *line != HEAD).skip(2);
    let rows: Result<Vec<Row>, Failure> = lines
        .take_while(|(_, line)| line.starts_with('|'))
        .map(|(at, line)| {
            row(line).ok_or_else(|| {
                Failure::new(format!(
                    "{PLACE}:{}: a row is `{HEAD}`, its tests as `PROGRAM NAME` in backticks: {line}",
                    at + 1
                ))
            })
        })
        .collect();
    match rows {
        Ok(rows) if rows.is_empty() => Err(Failure::new(format!("{PLACE} has no table `{HEAD}`"))),
        rows => rows,
    }
}

fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [promise, before, tests, about] = cells[..] else { return None };
    let quoted =
        |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let test = |test: &String| {
        let (program, name) = test.split_once(' ')?;
        Some((program.to_owned(), name.to_owned()))
    };
    let tests: Vec<(String, String)> = quoted(tests).iter().map(test).collect::<Option<_>>()?;
    (!tests.is_empty()).then(|| Row {
        promise: promise.to_owned(),
        before: before.to_owned(),
        tests,
        about: quoted(about),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_and_names_its_tests() {
        let text = format!(
            "text\n\n{HEAD}\n| --- | --- | --- | --- |\n| off is off | a BMC | `power a::b`, `devices c::` | `ipmi` |\n\n| x |"
        );
        let rows = read(&text).expect("a table");
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].about, ["ipmi"]);
        let has = |program, name| rows[0].has(&Test::of("picket-tests", program, name));
        assert!(has("power", "a::b") && has("devices", "c::d"));
        assert!(!has("power", "a::bc") && !has("power", "c::d"));
        let list =
            |name| List { tests: vec![Test::of("picket-tests", "devices", name)], programs: Vec::new() };
        let unknown = |name| rows[0].unknown(&list(name)).collect::<Vec<_>>();
        assert_eq!(unknown("c::it_falls"), ["power a::b"]);
        assert_eq!(unknown("d::it_falls").len(), 2);
    }

    #[test]
    fn a_row_that_names_no_test_is_told_with_its_line() {
        let wrong = format!("{HEAD}\n| --- | --- | --- | --- |\n| off is off | a BMC | power a::b | |");
        let Err(Failure(why)) = read(&wrong) else { panic!("it was read") };
        assert!(why.starts_with("tests/README.md:3: "), "{why}");
        assert!(read("no table").is_err());
    }

    #[test]
    fn the_table_of_the_house_is_read() {
        let rows = rows().expect("it is right");
        assert!(rows.len() > 20, "{}", rows.len());
    }
}
