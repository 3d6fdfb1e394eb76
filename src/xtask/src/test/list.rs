//! All tests there are, as nextest lists them.

use std::path::PathBuf;

use serde_json::Value;

/// The number of names that a message suggests for an unknown one.
const NEAR: usize = 5;

#[derive(Debug, Default)]
pub struct List {
    pub tests: Vec<Test>,
    pub programs: Vec<Program>,
}

/// A test.
#[derive(Clone, Debug)]
pub struct Test {
    pub package: String,
    pub binary: String,
    pub name: String,
    pub ignored: bool,
    kind: String,
}

impl Test {
    /// Of `tests/tests`.
    pub fn is_end_to_end(&self) -> bool {
        self.package == "picket-tests" && self.kind == "test"
    }

    /// The module of an end-to-end test: `survival`.
    pub fn module(&self) -> &str {
        self.name.split("::").next().unwrap_or_default()
    }

    #[cfg(test)]
    pub fn of(package: &str, binary: &str, name: &str) -> Self {
        let [package, binary, name, kind] = [package, binary, name, "test"].map(str::to_owned);
        Self { package, binary, name, ignored: false, kind }
    }
}

/// A program that has tests.
#[derive(Clone, Debug)]
pub struct Program {
    /// As nextest calls it: `picket-tests::power`.
    pub id: String,
    pub package: String,
    pub binary: String,
    pub path: PathBuf,
    pub folder: PathBuf,
}

impl List {
    /// Of nextest's JSON.
    pub fn read(told: &Value) -> Self {
        let mut list = Self::default();
        let suites = told["rust-suites"].as_object();
        for (id, suite) in suites.into_iter().flatten() {
            let text = |key: &str| suite[key].as_str().unwrap_or_default().to_owned();
            let (package, binary) = (text("package-name"), text("binary-name"));
            let tests = suite["testcases"].as_object();
            for (name, test) in tests.into_iter().flatten() {
                list.tests.push(Test {
                    package: package.clone(),
                    binary: binary.clone(),
                    name: name.clone(),
                    ignored: test["ignored"] == true,
                    kind: text("kind"),
                });
            }
            let (path, folder) = (text("binary-path").into(), text("cwd").into());
            list.programs.push(Program { id: id.clone(), package, binary, path, folder });
        }
        list
    }

    /// The one that has such tests.
    pub fn program(&self, test: &Test) -> Option<&Program> {
        self.programs.iter().find(|known| known.package == test.package && known.binary == test.binary)
    }

    /// `; near it: …`, of names that share much with this one; nothing where none does.
    pub fn near(&self, word: &str) -> String {
        let mut near: Vec<(usize, &str)> = self
            .tests
            .iter()
            .flat_map(|test| {
                let parts = test.name.split("::").chain([test.name.as_str(), &test.binary, &test.package]);
                parts.map(|part| (distance(part, word), part))
            })
            .filter(|(distance, _)| *distance <= word.chars().count() / 3)
            .collect();
        near.sort_unstable();
        near.dedup();
        let names: Vec<&str> = near.into_iter().take(NEAR).map(|(_, name)| name).collect();
        if names.is_empty() { String::new() } else { format!("; near it: {}", names.join(", ")) }
    }
}

/// Levenshtein's: how many letters have to be changed, added or taken away.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nextest_s_list_is_read() {
        let told = r#"{"rust-suites":{"a::b":{"package-name":"a","binary-name":"b","binary-path":"/t/b-1","cwd":"/a",
            "kind":"test","testcases":{"m::heartbeat":{"ignored":false},"m::other":{"ignored":true}}}}}"#;
        let list = List::read(&serde_json::from_str(told).expect("JSON"));
        let told: Vec<_> = list.tests.iter().map(|test| (&*test.name, test.ignored)).collect();
        assert_eq!(told, [("m::heartbeat", false), ("m::other", true)]);
        assert_eq!(list.program(&list.tests[0]).map(|program| &*program.id), Some("a::b"));
        assert_eq!(list.programs[0].path, PathBuf::from("/t/b-1"));
        assert_eq!(list.near("hartbeat"), "; near it: heartbeat");
        assert_eq!(list.near("power"), "");
    }

    #[test]
    fn letters_that_differ_are_counted() {
        assert_eq!(["kitten", "sitting", ""].map(|word| distance(word, "sitting")), [3, 0, 7]);
    }
}
