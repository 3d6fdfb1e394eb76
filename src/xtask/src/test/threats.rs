//! The tests that `docs/threat-model.md` names: each is there.

use super::list::List;
use crate::failure::Failure;
use crate::place;

/// Where it stands.
const PLACE: &str = "docs/threat-model.md";

/// # Errors
/// A test that it names is not there, or it cannot be read.
pub fn known(list: &List) -> Result<(), Failure> {
    let file = place::top().join(PLACE);
    let text = std::fs::read_to_string(&file).map_err(Failure::of(file.display()))?;
    let unknown: Vec<&str> = unknown(&text, list).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("{PLACE} names tests that are not there: {}", unknown.join(", "))))
}

/// A test is named in backticks, by its program and its name, with the crate before them where the program's name alone says little.
fn unknown<'a>(text: &'a str, list: &'a List) -> impl Iterator<Item = &'a str> {
    let quoted = text.split('`').skip(1).step_by(2).filter(|word| word.contains("::"));
    quoted.filter(|word| {
        let is_it = |program: &str, name: &str| {
            word.strip_suffix(name)
                .and_then(|left| left.strip_suffix("::"))
                .is_some_and(|left| left.ends_with(program))
        };
        !list.tests.iter().any(|test| is_it(&test.binary, &test.name))
    })
}

#[cfg(test)]
mod tests {
    use super::super::list::Test;
    use super::*;

    #[test]
    fn a_test_that_was_renamed_is_noticed() {
        let tests = vec![
            Test::of("picket-tests", "power", "bmc::it_lies"),
            Test::of("picket-engine-tests", "sim", "rights::a"),
        ];
        let list = List { tests, ..List::default() };
        let of = |text| unknown(text, &list).collect::<Vec<_>>();
        assert_eq!(
            of("| `power::bmc::it_lies`, `engine::sim::rights::a` | `retry --seen-off` |"),
            [] as [&str; 0]
        );
        assert_eq!(
            of("| `power::bmc::it_lied` | `power::it_lies` |"),
            ["power::bmc::it_lied", "power::it_lies"]
        );
    }
}
