//! The programs of the tests: which there are, and running them beside each other.

use std::io::{Read, pipe};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::failure::Failure;
use crate::{place, run};

/// Each takes a machine for itself, and has time limits: thirteen machines with kubelets and a database on each; a whole OpenStack.
const ALONE: [&str; 2] = ["kubernetes", "openstack"];
/// Each of them takes most of a machine: a processor, or, where it has kubelets, most of the file watches that one user has on a machine as
/// Debian ships it. They run one after the other, and all else beside them.
const HEAVY: [&str; 4] = ["controller", "story", "deploy", "thousand"];
/// The documentation's examples: cargo builds and runs them.
const EXAMPLES: &str = "examples";
/// Of the rest what takes long begins first.
const LONG: [&str; 6] = [EXAMPLES, "picket_core", "hosts", "histories", "survival", "gcp"];
/// After so long a program hangs: it is ended, and what it printed is shown.
const HANGS: Duration = Duration::from_secs(30 * 60);
/// What a program started may hold on to where it prints to, after its end.
const REST: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(50);

/// One of them, or the documentation's examples.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// As cargo calls the target.
    name: String,
    /// As people find it: its source in the house.
    source: String,
    run: PathBuf,
    arguments: Vec<&'static str>,
    /// The folder of its package.
    package: PathBuf,
}

/// How one ended.
#[derive(Debug)]
pub struct Ended {
    /// Its source in the house.
    pub source: String,
    /// All that it printed, of both streams.
    pub printed: String,
    /// Whether it was content.
    pub succeeded: bool,
    /// How long it took.
    pub took: Duration,
}

/// What cargo has built for `cargo test` of the workspace.
///
/// # Errors
/// It cannot be built.
pub fn built() -> Result<Vec<Program>, Failure> {
    let mut command = place::cargo();
    command.args(["test", "--workspace", "--locked", "--no-run", "--message-format"]);
    command.arg("json-render-diagnostics");
    let told = run::output(command)?;
    let told = String::from_utf8_lossy(&told);
    let mut programs: Vec<Program> = told.lines().filter_map(|line| read(line, place::top())).collect();
    programs.push(Program {
        name: EXAMPLES.to_owned(),
        source: "the examples of the documentation".to_owned(),
        run: place::cargo().get_program().into(),
        arguments: vec!["test", "--workspace", "--doc", "--locked", "--"],
        package: place::top().to_owned(),
    });
    let order = || ALONE.iter().chain(&HEAVY).chain(&LONG);
    programs.sort_by_key(|program| order().position(|name| *name == program.name).unwrap_or(usize::MAX));
    Ok(programs)
}

/// A line of cargo's, where it is of a program with tests.
fn read(line: &str, top: &Path) -> Option<Program> {
    let told: Value = serde_json::from_str(line).ok()?;
    if told["reason"] != "compiler-artifact" || told["profile"]["test"] != true {
        return None;
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let source = PathBuf::from(text(&told["target"]["src_path"])?);
    Some(Program {
        name: text(&told["target"]["name"])?,
        source: source.strip_prefix(top).unwrap_or(&source).display().to_string(),
        run: text(&told["executable"])?.into(),
        arguments: Vec::new(),
        package: Path::new(&text(&told["manifest_path"])?).parent()?.to_owned(),
    })
}

/// Runs them, some beside each other, and gives each to `ended` as soon as it is over.
///
/// `set` says arguments and variables, by a program's name.
pub fn run(programs: Vec<Program>, set: impl Fn(&str, &mut Command) + Sync, ended: impl FnMut(Ended) + Send) {
    let lanes = std::thread::available_parallelism().map_or(1, usize::from).clamp(2, 4);
    let (queue, ended) = (Queue::of(programs), Mutex::new(ended));
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                while let Some(program) = queue.next() {
                    eprintln!("begins: {}", program.source);
                    let of_it = one(&program, &set);
                    queue.over(&program.name);
                    let mut tell = ended.lock().unwrap_or_else(PoisonError::into_inner);
                    tell(of_it);
                }
            });
        }
    });
}

/// Runs one of them, and ends it where it hangs.
fn one(program: &Program, set: &impl Fn(&str, &mut Command)) -> Ended {
    let began = Instant::now();
    let mut command = if program.name == EXAMPLES {
        // With our own variables of a package ring, and all above it, would be built anew.
        place::cargo()
    } else {
        let mut command = Command::new(&program.run);
        command.current_dir(&program.package).env("CARGO_MANIFEST_DIR", &program.package);
        command
    };
    command.args(&program.arguments).stdin(Stdio::null());
    set(&program.name, &mut command);
    let printed = Arc::new(Mutex::new(Vec::new()));
    let status = watched(command, &printed);
    let mut printed = std::mem::take(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner));
    match &status {
        Ok(status) if status.success() => {}
        Ok(status) => printed.extend(format!("{}: {status}\n", program.source).bytes()),
        Err(Failure(why)) => printed.extend(format!("{}: {why}\n", program.source).bytes()),
    }
    Ended {
        source: program.source.clone(),
        printed: String::from_utf8_lossy(&printed).into_owned(),
        succeeded: status.is_ok_and(|status| status.success()),
        took: began.elapsed(),
    }
}

fn watched(mut command: Command, printed: &Arc<Mutex<Vec<u8>>>) -> Result<ExitStatus, Failure> {
    let (mut from, to) = pipe().map_err(Failure::of("a pipe"))?;
    let into = Arc::clone(printed);
    command.stdout(to.try_clone().map_err(Failure::of("a pipe"))?).stderr(to);
    let mut child = command.spawn().map_err(Failure::of("it cannot be started"))?;
    // Its ends of the pipe, which are open as long as it is.
    drop(command);
    let reader = std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(read @ 1..) = from.read(&mut part) {
            into.lock().unwrap_or_else(PoisonError::into_inner).extend(&part[..read]);
        }
    });
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(Failure::of("it cannot be waited for"))? {
            break Ok(status);
        }
        if began.elapsed() > HANGS {
            // What it started ends with it.
            let _ = child.kill();
            let _ = child.wait();
            break Err(Failure::new(format!("not over after {} minutes: ended", HANGS.as_secs() / 60)));
        }
        std::thread::sleep(LOOK);
    };
    let over = Instant::now();
    while !reader.is_finished() && over.elapsed() < REST {
        std::thread::sleep(LOOK);
    }
    status
}

/// What is still to be run, and what runs.
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<Program>,
    running: Vec<String>,
}

impl Queue {
    fn of(waiting: Vec<Program>) -> Self {
        Self { state: Mutex::new(State { waiting, running: Vec::new() }), changed: Condvar::new() }
    }

    /// The next that may run beside those that do; none once nothing waits.
    fn next(&self) -> Option<Program> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.waiting.is_empty() {
                return None;
            }
            if let Some(program) = state.next() {
                return Some(program);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn over(&self, name: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = state.running.iter().position(|running| running == name) {
            state.running.remove(place);
        }
        self.changed.notify_all();
    }
}

impl State {
    fn next(&mut self) -> Option<Program> {
        let heavy = |name: &str| HEAVY.contains(&name);
        let alone = |name: &str| ALONE.contains(&name);
        if self.running.iter().any(|name| alone(name)) {
            return None;
        }
        let (is_taken, is_empty) = (self.running.iter().any(|name| heavy(name)), self.running.is_empty());
        let free = |program: &Program| match program.name.as_str() {
            name if alone(name) => is_empty,
            name => !(is_taken && heavy(name)),
        };
        let program = self.waiting.remove(self.waiting.iter().position(free)?);
        self.running.push(program.name.clone());
        Some(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str) -> Program {
        Program {
            name: name.to_owned(),
            source: format!("tests/{name}.rs"),
            run: "/bin/sh".into(),
            arguments: vec!["-c", r#"echo out; echo err >&2; [ "$0" = x ] || exit 3"#],
            package: "/".into(),
        }
    }

    #[test]
    fn of_what_cargo_tells_those_with_tests_are_taken() {
        let told = r#"{"reason":"compiler-artifact","manifest_path":"/house/src/core/Cargo.toml",
            "target":{"name":"locks","src_path":"/house/src/core/tests/locks/main.rs"},"profile":{"test":true},
            "executable":"/target/debug/deps/locks-1"}"#
            .replace('\n', "");
        let top = Path::new("/house");
        let program = read(&told, top).expect("a program");
        assert_eq!(
            (program.name.as_str(), program.source.as_str()),
            ("locks", "src/core/tests/locks/main.rs")
        );
        assert_eq!(program.package, Path::new("/house/src/core"));
        assert_eq!(read(&told.replace(r#""test":true"#, r#""test":false"#), top), None);
        assert_eq!(read(&told.replace(r#""/target/debug/deps/locks-1""#, "null"), top), None);
        assert_eq!(read("warning: unused", top), None);
    }

    #[test]
    fn what_is_heavy_runs_one_after_the_other_and_the_rest_beside_it() {
        let waiting = ["kubernetes", "story", "deploy", "units", "more"].map(program);
        let mut state = State { waiting: waiting.into(), ..State::default() };
        let mut next = || state.next().map(|program| program.name);
        assert_eq!([next(), next()], [Some("kubernetes".to_owned()), None], "alone");
        let queue = Queue { state: Mutex::new(state), changed: Condvar::new() };
        let next = || queue.next().map(|program| program.name).unwrap_or_default();
        queue.over("kubernetes");
        assert_eq!([next(), next(), next()], ["story", "units", "more"]);
        queue.over("story");
        assert_eq!(next(), "deploy");
        assert!(queue.next().is_none());
    }

    #[test]
    fn each_is_told_of_with_all_that_it_printed() {
        let programs = ["well", "badly"].map(program).into();
        let mut told = Vec::new();
        let set = |_: &str, command: &mut Command| {
            command.arg("y");
        };
        run(programs, set, |ended| told.push(ended));
        assert_eq!(told.len(), 2);
        for ended in told {
            assert!(!ended.succeeded, "{ended:?}");
            assert!(ended.printed.starts_with("out\nerr\n"), "{ended:?}");
            assert!(ended.printed.ends_with("exit status: 3\n"), "{ended:?}");
        }
    }
}
