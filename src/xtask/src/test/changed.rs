//! Which tests a change can touch, by the graph of crates.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::list::Test;
use super::table::Row;
use crate::failure::Failure;
use crate::{place, run};

const TESTS: &str = "picket-tests";

/// Files that changed, and the workspace in which they did.
#[derive(Debug)]
pub struct Change {
    files: Vec<PathBuf>,
    packages: Vec<Package>,
}

#[derive(Debug)]
struct Package {
    name: String,
    /// From the top.
    folder: PathBuf,
    /// Those of ours on which it depends, and those on which its tests do besides.
    needs: BTreeSet<String>,
    tests_need: BTreeSet<String>,
}

impl Change {
    /// Against where `since`, or the main branch, and this one parted; with what is not committed.
    pub fn since(since: Option<&str>) -> Result<Self, Failure> {
        let main = if git(&["rev-parse", "--verify", "--quiet", "origin/main"]).is_ok() {
            "origin/main"
        } else {
            "main"
        };
        let since = since.unwrap_or(main);
        let base = git(&["merge-base", "HEAD", since]).map_err(|_| {
            Failure::new(format!(
                "--changed: git knows no revision {since}: name another, as in --changed=HEAD~3"
            ))
        })?;
        let mut files = git(&["diff", "--name-only", base.trim()])?;
        files += &git(&["ls-files", "--others", "--exclude-standard"])?;
        let metadata = place::metadata(&["--no-deps"])?;
        let packages = metadata["packages"].as_array().into_iter().flatten().filter_map(Package::read);
        Ok(Self { files: files.lines().map(PathBuf::from).collect(), packages: packages.collect() })
    }

    /// The tests that it can touch. Of the end-to-end tests, the rows of the table decide.
    pub fn touches<'a>(&self, rows: &'a [Row]) -> Touched<'a> {
        let (changed, packages) = self.reached();
        // A crate that no row is about is behind all of them.
        let is_behind_all = |name: &String| !rows.iter().any(|row| row.about.contains(name));
        let all = packages.contains(TESTS) && changed.iter().any(is_behind_all);
        let about = |row: &&Row| all || changed.iter().any(|name| row.about.contains(name));
        Touched {
            packages,
            modules: self.files.iter().filter_map(|file| module(file)).collect(),
            rows: rows.iter().filter(about).collect(),
        }
    }

    /// The folders' names of the packages that changed, and of the packages whose tests that can touch.
    fn reached(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut changed, mut reached) = (BTreeSet::new(), BTreeSet::new());
        for file in &self.files {
            let of = self.packages.iter().filter(|package| file.starts_with(&package.folder));
            match of.max_by_key(|package| package.folder.components().count()) {
                // Tests of one module touch nobody else.
                Some(package) if module(file).is_none() => {
                    changed.insert(last(&package.folder));
                    reached.insert(package.name.clone());
                }
                Some(_) => {}
                // These files change the build of every crate.
                None if is_everybodys(file) => {
                    changed.insert("workspace".to_owned());
                    reached.extend(self.packages.iter().map(|package| package.name.clone()));
                }
                None => {
                    changed.insert(file.iter().next().unwrap_or_default().to_string_lossy().into_owned());
                }
            }
        }
        loop {
            let more: Vec<String> = self
                .packages
                .iter()
                .filter(|package| !reached.contains(&package.name) && !package.needs.is_disjoint(&reached))
                .map(|package| package.name.clone())
                .collect();
            if more.is_empty() {
                break;
            }
            reached.extend(more);
        }
        let by_tests = self.packages.iter().filter(|package| !package.tests_need.is_disjoint(&reached));
        let by_tests: Vec<String> = by_tests.map(|package| package.name.clone()).collect();
        reached.extend(by_tests);
        // A page or an example changes no crate; its rows, where there are any, are about it.
        (changed, reached)
    }
}

/// The tests that a change can touch.
#[derive(Debug)]
pub struct Touched<'a> {
    /// All tests of these, but the end to end.
    packages: BTreeSet<String>,
    /// The end-to-end tests of these: program and module.
    modules: BTreeSet<(String, String)>,
    /// And those that these name.
    rows: Vec<&'a Row>,
}

impl Touched<'_> {
    pub fn has(&self, test: &Test) -> bool {
        if !test.is_end_to_end() {
            return self.packages.contains(&test.package);
        }
        let changed =
            |(program, module): &(String, String)| test.binary == *program && test.module() == module;
        self.modules.iter().any(changed) || self.rows.iter().any(|row| row.has(test))
    }
}

impl Package {
    fn read(told: &Value) -> Option<Self> {
        let manifest = Path::new(told["manifest_path"].as_str()?);
        let folder = manifest.parent()?.strip_prefix(place::top()).ok()?.to_owned();
        let mut kinds: BTreeMap<bool, BTreeSet<String>> = BTreeMap::new();
        for needed in told["dependencies"].as_array()? {
            if needed["path"].is_string() {
                let name = needed["name"].as_str()?.to_owned();
                kinds.entry(needed["kind"] == "dev").or_default().insert(name);
            }
        }
        Some(Self {
            name: told["name"].as_str()?.to_owned(),
            folder,
            needs: kinds.remove(&false).unwrap_or_default(),
            tests_need: kinds.remove(&true).unwrap_or_default(),
        })
    }
}

/// `tests/tests/power/survival/killed.rs` is of the module `survival` of `power`.
fn module(file: &Path) -> Option<(String, String)> {
    let words: Vec<_> = file.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match &words[..] {
        [tests, again, program, module, _, ..] if tests == "tests" && again == "tests" => {
            Some((program.clone(), module.clone()))
        }
        _ => None,
    }
}

fn is_everybodys(file: &Path) -> bool {
    ["Cargo.toml", "Cargo.lock"].iter().any(|name| file == Path::new(name))
        || [".cargo", ".config"].iter().any(|folder| file.starts_with(folder))
}

fn last(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn git(arguments: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(place::top());
    Ok(String::from_utf8_lossy(&run::output(command)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, folder: &str, needs: &[&str], tests_need: &[&str]) -> Package {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Package {
            name: name.to_owned(),
            folder: folder.into(),
            needs: names(needs),
            tests_need: names(tests_need),
        }
    }

    /// The programs, or the ends of the names, of those tests that a change of this file touches.
    fn touched(file: &str) -> Vec<&'static str> {
        let row = |name: &str, about: &[&str]| Row {
            promise: String::new(),
            before: String::new(),
            tests: vec![("devices".to_owned(), name.to_owned())],
            about: about.iter().map(|name| (*name).to_owned()).collect(),
        };
        let packages = vec![
            package("picket-core", "src/core", &[], &[]),
            package("picket-driver-aws", "drivers/aws", &["picket-core"], &[]),
            package("picket-cli", "src/cli", &[], &["picket-core"]),
            package(TESTS, "tests", &["picket-driver-aws"], &[]),
        ];
        let rows = [row("all", &[]), row("ec2", &["aws"]), row("chart", &["deploy"])];
        let change = Change { files: vec![file.into()], packages };
        let touched = change.touches(&rows);
        let units =
            ["picket-core", "picket-driver-aws", "picket-cli"].map(|package| (package, package, "unit"));
        let end_to_end = ["all", "ec2", "chart"].map(|name| (name, "devices", name));
        let survival = ("survival::x", "power", "survival::x");
        units
            .into_iter()
            .chain(end_to_end)
            .chain([survival])
            .filter(|(told, binary, name)| {
                let package = if *name == "unit" { told } else { TESTS };
                touched.has(&Test::of(package, binary, name))
            })
            .map(|(told, ..)| told)
            .collect()
    }

    #[test]
    fn a_driver_touches_itself_and_what_is_about_it() {
        assert_eq!(touched("drivers/aws/src/lib.rs"), ["picket-driver-aws", "ec2"]);
    }

    #[test]
    fn what_all_stand_on_touches_all() {
        let all = ["picket-core", "picket-driver-aws", "picket-cli", "all", "ec2", "chart"];
        assert_eq!(touched("src/core/src/lib.rs"), all);
        assert_eq!(touched("Cargo.lock"), all);
    }

    #[test]
    fn a_test_touches_its_module_and_a_page_what_is_about_it() {
        assert_eq!(touched("tests/tests/power/survival/killed.rs"), ["survival::x"]);
        assert_eq!(touched("docs/aws.md"), [""; 0]);
        assert_eq!(touched("deploy/helm/x.yaml"), ["chart"]);
    }
}
