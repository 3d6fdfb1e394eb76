//! `cargo xtask mutants`: weakens each rule of the law in one line of the product, and looks whether the landing set sees it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::kept::Kept;
use super::nextest;
use crate::failure::Failure;
use crate::{place, run};

/// Where they stand.
const PLACE: &str = "tests/mutants.txt";

const NOT_TRIED: &str = "not tried";

/// The rules of the law: S1 and on, K1 and on.
const SAFETY: u8 = 23;
const KUBERNETES: u8 = 13;

/// A line that makes the product break a rule.
#[derive(Debug, PartialEq, Eq)]
struct Mutant {
    rule: String,
    file: String,
    /// A sentence about the weakened product.
    what: String,
    line: String,
    with: String,
}

/// The options of the command.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub yes: bool,
    pub which: Which,
    /// Those that earlier calls tried at this commit are not tried again.
    pub resume: bool,
}

/// Which mutants are tried.
#[derive(Debug, PartialEq, Eq)]
pub enum Which {
    /// The first of each rule.
    One,
    All,
    /// All of these rules.
    Of(Vec<String>),
}

/// Tries the wanted mutants, and fails if one of them was seen by no test.
pub fn mutants(options: &Options) -> Result<(), Failure> {
    check()?;
    let all = all()?;
    let wanted = options.which.among(&all)?;
    let kept = Kept::of("mutants", "", options.resume)?;
    let tried = kept.read()?;
    let earlier = |mutant: &Mutant| {
        let is_it = |line: &&Value| line["mutant"] == mutant.text();
        tried.iter().find(is_it).and_then(|line| line["by"].as_str()).map(str::to_owned)
    };
    let house = House::copy()?;
    let mut table = String::from("| rule | the weakened product | seen first by |\n| --- | --- | --- |\n");
    let mut unseen = Vec::new();
    for mutant in wanted {
        let by = match earlier(mutant) {
            Some(by) => by,
            None => {
                eprintln!("\n+ {} {}", mutant.rule, mutant.what);
                let by = house.sight(mutant, options.yes);
                // One that could not be tried is tried again.
                if !by.starts_with(NOT_TRIED) {
                    kept.add(&[json!({ "mutant": mutant.text(), "by": by })])?;
                }
                by
            }
        };
        if !by.starts_with('`') {
            let why = by.lines().next().unwrap_or_default();
            unseen.push(format!("{} {} ({why})", mutant.rule, mutant.what));
        }
        let row = format!("| {} | {} | {by} |\n", mutant.rule, mutant.what);
        print!("{row}");
        table += &row;
    }
    println!("\n{table}");
    if unseen.is_empty() { Ok(()) } else { Err(Failure::new(format!("not seen: {}", unseen.join("; ")))) }
}

impl Which {
    fn among<'a>(&self, all: &'a [Mutant]) -> Result<Vec<&'a Mutant>, Failure> {
        let first = |mutant: &&Mutant| {
            all.iter().find(|other| other.rule == mutant.rule).is_some_and(|one| one == *mutant)
        };
        Ok(match self {
            Self::One => all.iter().filter(first).collect(),
            Self::All => all.iter().collect(),
            Self::Of(rules) => {
                if let Some(unknown) = rules.iter().find(|rule| !all.iter().any(|one| one.rule == **rule)) {
                    return Err(Failure::new(format!("{PLACE} weakens no {unknown}")));
                }
                all.iter().filter(|mutant| rules.contains(&mutant.rule)).collect()
            }
        })
    }
}

/// Whether each is where it says, and none of the rules is without one: whoever changes such a line is told before an hour is over.
pub fn check() -> Result<(), Failure> {
    let all = all()?;
    let misplaced = all.iter().filter_map(|mutant| mutant.place(place::top()).err()).map(|Failure(why)| why);
    let rules = (1..=SAFETY).map(|n| format!("S{n}")).chain((1..=KUBERNETES).map(|n| format!("K{n}")));
    let unweakened = rules.filter(|rule| !all.iter().any(|mutant| mutant.rule == *rule));
    let wrong: Vec<String> =
        misplaced.chain(unweakened.map(|rule| format!("{PLACE}: no line weakens {rule}"))).collect();
    if wrong.is_empty() { Ok(()) } else { Err(Failure::new(wrong.join("; "))) }
}

fn all() -> Result<Vec<Mutant>, Failure> {
    read(&text(&place::top().join(PLACE))?)
}

impl Mutant {
    /// What tells it from all others, and from itself before somebody changed it.
    fn text(&self) -> String {
        format!("{} {}: {}\n{}\n{}", self.rule, self.file, self.what, self.line, self.with)
    }

    /// The text of its file among these sources, weakened.
    fn place(&self, sources: &Path) -> Result<String, Failure> {
        let text = text(&sources.join(&self.file))?;
        self.weaken(&text).ok_or_else(|| {
            Failure::new(format!(
                "{PLACE}: {} {} has not this line once: {}",
                self.rule, self.file, self.line
            ))
        })
    }

    fn weaken(&self, text: &str) -> Option<String> {
        let is_it = |line: &&str| line.trim() == self.line;
        if text.lines().filter(is_it).count() != 1 {
            return None;
        }
        let lines = text.lines().map(|line| if is_it(&line) { self.with.as_str() } else { line });
        Some(lines.map(|line| format!("{line}\n")).collect())
    }
}

/// Blocks of a head, `RULE FILE: what`, the line with `- ` before it and what stands in its place with `+ `.
fn read(text: &str) -> Result<Vec<Mutant>, Failure> {
    let text: String =
        text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    text.split("\n\n").map(str::trim).filter(|block| !block.is_empty()).map(block).collect()
}

fn block(block: &str) -> Result<Mutant, Failure> {
    let lines: Vec<&str> = block.lines().collect();
    let read = || {
        let [head, line, with] = lines[..] else { return None };
        let (place, what) = head.split_once(": ")?;
        let (rule, file) = place.split_once(' ')?;
        let [rule, file, what] = [rule, file, what].map(str::to_owned);
        let (line, with) = (line.strip_prefix("- ")?, with.strip_prefix('+')?);
        Some(Mutant { rule, file, what, line: line.trim().to_owned(), with: with.trim().to_owned() })
    };
    read()
        .ok_or_else(|| Failure::new(format!("{PLACE}: a block is RULE FILE: WHAT, - LINE, + LINE: {block}")))
}

/// A copy of the sources, with a target folder of its own: ours stays as it is, whatever ends a run.
struct House {
    sources: PathBuf,
    target: PathBuf,
}

impl House {
    fn copy() -> Result<Self, Failure> {
        let home = place::cache()?.join("mutants");
        let (sources, target) = (home.join("sources"), home.join("target"));
        if sources.exists() {
            std::fs::remove_dir_all(&sources).map_err(Failure::of(sources.display()))?;
        }
        let mut list = Command::new("git");
        list.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(place::top());
        for file in String::from_utf8_lossy(&run::output(list)?).lines() {
            let (from, to) = (place::top().join(file), sources.join(file));
            if from.exists() {
                let folder = to.parent().unwrap_or(&sources);
                std::fs::create_dir_all(folder).map_err(Failure::of(folder.display()))?;
                std::fs::copy(&from, &to).map_err(Failure::of(from.display()))?;
            }
        }
        Ok(Self { sources, target })
    }

    fn with<T>(&self, mutant: &Mutant, look: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        let file = self.sources.join(&mutant.file);
        let before = text(&file)?;
        let write = |text: &str| std::fs::write(&file, text).map_err(Failure::of(file.display()));
        write(&mutant.place(&self.sources)?)?;
        let seen = look();
        write(&before)?;
        seen
    }

    /// The test that sees it, `nobody`, or why it could not be tried: that is told, and the others are tried all the same.
    fn sight(&self, mutant: &Mutant, yes: bool) -> String {
        match self.with(mutant, || self.sees(yes, mutant)) {
            Ok(Some(test)) => format!("`{test}`"),
            Ok(None) => "nobody".to_owned(),
            Err(Failure(why)) => format!("{NOT_TRIED}: {why}"),
        }
    }

    /// The test that fails first: of the package's own, which are built in seconds; of the engine's simulation, if the package is
    /// part of it; or else of the whole landing set.
    fn sees(&self, yes: bool, mutant: &Mutant) -> Result<Option<String>, Failure> {
        let package = self.package(&mutant.file)?;
        let engine = text(&self.sources.join("tests/engine/Cargo.toml"))?;
        let beside = engine.lines().any(|line| line == format!("{package}.workspace = true"));
        let mut alone = Command::new(nextest::program()?);
        alone.args([
            "nextest",
            "run",
            "--profile",
            "mutants",
            "--fail-fast",
            "--locked",
            "--package",
            &package,
        ]);
        if beside {
            alone.args(["--package", "picket-engine-tests"]);
        }
        if let Some(test) = self.first(alone, "        FAIL [", "     TIMEOUT [")? {
            return Ok(Some(test));
        }
        let mut landing = place::cargo();
        landing.args(["xtask", "test", "--first"]).args(yes.then_some("--yes"));
        self.first(landing, "failed: ", "failed: ")
    }

    /// The first test that failed, as a line tells that begins so; `None`: none failed.
    ///
    /// # Errors
    /// It failed, and no test did: the mutant does not compile.
    fn first(&self, mut command: Command, begins: &str, or: &str) -> Result<Option<String>, Failure> {
        command.current_dir(&self.sources).env("CARGO_TARGET_DIR", &self.target).stdin(Stdio::null());
        let output = command.output().map_err(Failure::of("a mutant's tests"))?;
        if output.status.success() {
            return Ok(None);
        }
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let told = said.lines().find_map(|line| line.strip_prefix(begins).or(line.strip_prefix(or)));
        let name = told.map(|told| told.rsplit(") ").next().unwrap_or_default().to_owned());
        name.map(Some).ok_or_else(|| {
            let last: Vec<&str> = said.lines().rev().take(40).collect();
            Failure::new(format!(
                "no test failed, and yet:\n{}",
                last.into_iter().rev().collect::<Vec<_>>().join("\n")
            ))
        })
    }

    /// The name in the nearest manifest above.
    fn package(&self, file: &str) -> Result<String, Failure> {
        let found = Path::new(file).ancestors().skip(1).find_map(|folder| {
            let manifest = std::fs::read_to_string(self.sources.join(folder).join("Cargo.toml")).ok()?;
            let name = manifest.lines().find_map(|line| line.strip_prefix("name = "))?;
            Some(name.trim_matches('"').to_owned())
        });
        found.ok_or_else(|| Failure::new(format!("{file} is of no package")))
    }
}

fn text(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(Failure::of(file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mutant_is_a_line_of_a_file_and_what_stands_in_its_place() {
        let mutants =
            read("# head\n\nS1 a/b.rs: it believes silence\n- let off = false;\n+ let off = true;\n")
                .expect("right");
        assert_eq!((mutants[0].rule.as_str(), mutants[0].file.as_str()), ("S1", "a/b.rs"));
        let weak = mutants[0].weaken("fn a() {\n    let off = false;\n}\n");
        assert_eq!(weak.as_deref(), Some("fn a() {\nlet off = true;\n}\n"));
        assert_eq!(mutants[0].weaken("let off = false;\nlet off = false;\n"), None);
        assert!(read("S1 a/b.rs\n- x\n+ y").is_err());
    }

    #[test]
    fn one_of_each_rule_is_tried_or_all_of_some_or_all() {
        let all = read("S1 a: x\n- a\n+ b\n\nS1 a: y\n- a\n+ b\n\nK2 a: z\n- a\n+ b\n").expect("right");
        let names = |which: &Which| {
            which.among(&all).map(|of| of.iter().map(|mutant| mutant.what.as_str()).collect::<String>())
        };
        assert_eq!(names(&Which::One), Ok("xz".to_owned()));
        assert_eq!(names(&Which::All), Ok("xyz".to_owned()));
        assert_eq!(names(&Which::Of(vec!["S1".to_owned()])), Ok("xy".to_owned()));
        assert!(names(&Which::Of(vec!["S9".to_owned()])).is_err_and(|Failure(why)| why.contains("no S9")));
    }
}
