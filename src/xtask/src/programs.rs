//! The programs of the tests: which there are, and running them beside each other.

use std::io::{Read, pipe};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::failure::Failure;
use crate::{place, run, sim};

/// It takes a machine for itself, and has time limits: thirteen machines with kubelets and a database on each. What is only nice takes its share from
/// those (`sched(7)`: each is a session, of which the kernel makes a group).
const ALONE: &str = "kubernetes";
/// The same, but for what is nice: a whole OpenStack.
const FIRST: &str = "openstack";
/// Each of them takes most of a machine: a processor, or, where it has kubelets, most of the file watches that one user has on a machine as
/// Debian ships it. They run one after the other, and all else beside them.
const HEAVY: [&str; 4] = ["controller", "story", "deploy", "thousand"];
/// The documentation's examples: cargo builds and runs them.
const EXAMPLES: &str = "examples";
/// These compute, in a time of their own, and have what all else leaves of the processors: they run beside whatever waits, one after the other, as
/// long as there is anything else to run.
const QUIET: [&str; 5] = [sim::NAME, "histories", "picket_core", "properties", "sim"];
/// Of the rest what takes long begins first.
const LONG: [&str; 9] =
    [EXAMPLES, "hosts", "survival", "devices", "conformance", "aws", "agents", "gcp", "peers"];
/// After so long a program hangs: it is ended, and what it printed is shown. What gives way to all else may take longer.
const HANGS: Duration = Duration::from_secs(30 * 60);
const QUIET_HANGS: Duration = Duration::from_secs(3 * 60 * 60);
/// What a program started may hold on to where it prints to, after its end.
const REST: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(50);

/// One of them, or what cargo builds and runs in one.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// As cargo calls the target.
    name: String,
    /// As people find it: its source in the house.
    source: String,
    run: Run,
    arguments: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Run {
    Cargo,
    Built {
        program: PathBuf,
        /// The folder of its package.
        package: PathBuf,
    },
}

impl Program {
    /// Cargo's command with these words.
    pub fn of_cargo<'a>(name: &str, source: &str, words: impl IntoIterator<Item = &'a str>) -> Self {
        let arguments = words.into_iter().map(str::to_owned).collect();
        Self { name: name.to_owned(), source: source.to_owned(), run: Run::Cargo, arguments }
    }

    fn command(&self) -> Command {
        let mut command = match &self.run {
            // With our own variables of a package ring, and all above it, would be built anew.
            Run::Cargo => place::cargo(),
            Run::Built { program, package } => {
                let mut command = Command::new(program);
                command.current_dir(package).env("CARGO_MANIFEST_DIR", package);
                command
            }
        };
        command.args(&self.arguments).stdin(Stdio::null());
        if self.is_quiet() { nicely(&command) } else { command }
    }

    fn is_quiet(&self) -> bool {
        QUIET.contains(&self.name.as_str())
    }
}

/// The same, for when nobody else wants the processors.
fn nicely(command: &Command) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"]).arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    if let Some(folder) = command.get_current_dir() {
        nice.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => nice.env(name, value),
            None => nice.env_remove(name),
        };
    }
    nice
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

/// What cargo has built for `cargo test` of the workspace, in the order in which it should begin, after what is `more`.
///
/// # Errors
/// It cannot be built.
pub fn built(more: Option<Program>) -> Result<Vec<Program>, Failure> {
    let mut command = place::cargo();
    command.args(["test", "--workspace", "--locked", "--no-run", "--message-format"]);
    command.arg("json-render-diagnostics");
    let told = run::output(command)?;
    let told = String::from_utf8_lossy(&told);
    let built = told.lines().filter_map(|line| read(line, place::top()));
    let examples = ["test", "--workspace", "--doc", "--locked", "--"];
    let examples = Program::of_cargo(EXAMPLES, "the examples of the documentation", examples);
    let mut programs: Vec<Program> = more.into_iter().chain(built).chain([examples]).collect();
    let order = || [ALONE, FIRST].iter().chain(&QUIET).chain(&HEAVY).chain(&LONG);
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
        run: Run::Built {
            program: text(&told["executable"])?.into(),
            package: Path::new(&text(&told["manifest_path"])?).parent()?.to_owned(),
        },
        arguments: Vec::new(),
    })
}

/// Runs them, some beside each other, and gives each to `ended` as soon as it is over.
///
/// `set` says arguments and variables, by a program's name.
pub fn run(programs: Vec<Program>, set: impl Fn(&str, &mut Command) + Sync, ended: impl FnMut(Ended) + Send) {
    // As many as there are processors, and one that computes: more beside each other only wait for each other, and some of them for too long.
    let beside = std::thread::available_parallelism().map_or(1, usize::from).clamp(2, 4);
    let (queue, ended) = (Queue::of(programs, beside), Mutex::new(ended));
    std::thread::scope(|scope| {
        for _ in 0..=beside {
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
    let mut command = program.command();
    set(&program.name, &mut command);
    let printed = Arc::new(Mutex::new(Vec::new()));
    let hangs = if program.is_quiet() { QUIET_HANGS } else { HANGS };
    let status = watched(command, hangs, &printed);
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

fn watched(
    mut command: Command,
    hangs: Duration,
    printed: &Arc<Mutex<Vec<u8>>>,
) -> Result<ExitStatus, Failure> {
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
        if began.elapsed() > hangs {
            // What it started ends with it.
            let _ = child.kill();
            let _ = child.wait();
            break Err(Failure::new(format!("not over after {} minutes: ended", hangs.as_secs() / 60)));
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

struct State {
    /// So many run beside each other, but for what is quiet.
    beside: usize,
    waiting: Vec<Program>,
    running: Vec<String>,
}

impl Queue {
    fn of(waiting: Vec<Program>, beside: usize) -> Self {
        Self { state: Mutex::new(State { beside, waiting, running: Vec::new() }), changed: Condvar::new() }
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
        let runs = |names: &[&str]| self.running.iter().any(|name| names.contains(&name.as_str()));
        if runs(&[ALONE]) {
            return None;
        }
        let (first, heavy) = (runs(&[FIRST]), runs(&HEAVY));
        let quiet = self.running.iter().filter(|name| QUIET.contains(&name.as_str())).count();
        let others = self.running.len() - quiet;
        let is_last = self.waiting.iter().all(Program::is_quiet);
        let free = |program: &Program| match program.name.as_str() {
            ALONE => self.running.is_empty(),
            FIRST => others == 0,
            _ if program.is_quiet() => quiet == 0 || is_last,
            _ if others >= self.beside => false,
            name if HEAVY.contains(&name) => !first && !heavy,
            _ => !first,
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
            run: Run::Built { program: "/bin/sh".into(), package: "/".into() },
            arguments: ["-c", r#"echo out; echo err >&2; [ "$0" = x ] || exit 3"#].map(str::to_owned).into(),
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
        let run =
            Run::Built { program: "/target/debug/deps/locks-1".into(), package: "/house/src/core".into() };
        assert_eq!(program.run, run);
        assert_eq!(read(&told.replace(r#""test":true"#, r#""test":false"#), top), None);
        assert_eq!(read(&told.replace(r#""/target/debug/deps/locks-1""#, "null"), top), None);
        assert_eq!(read("warning: unused", top), None);
    }

    #[test]
    fn what_is_heavy_runs_one_after_the_other_and_the_rest_beside_it() {
        let waiting = [
            "kubernetes",
            "openstack",
            "histories",
            "picket_core",
            "sim",
            "story",
            "deploy",
            "units",
            "more",
        ];
        let queue = Queue::of(waiting.map(program).into(), 2);
        let next = || queue.next().map(|program| program.name).unwrap_or_default();
        let nothing_more = || queue.state.lock().expect("nobody panicked").next().is_none();
        assert_eq!(next(), "kubernetes");
        assert!(nothing_more(), "alone");
        queue.over("kubernetes");
        assert_eq!([next(), next()], ["openstack", "histories"]);
        assert!(nothing_more(), "one that computes, and no other");
        queue.over("openstack");
        assert_eq!([next(), next()], ["story", "units"]);
        assert!(nothing_more(), "two beside what computes");
        queue.over("histories");
        assert_eq!(next(), "picket_core");
        queue.over("story");
        assert_eq!(next(), "deploy");
        queue.over("units");
        assert_eq!([next(), next()], ["more", "sim"], "what computes has no one to wait for any more");
        assert!(queue.next().is_none());
    }

    #[test]
    fn what_is_quiet_gives_way() {
        let niceness = |name: &str| {
            let mut program = program(name);
            program.arguments = ["-c", "nice; pwd; echo $CARGO_MANIFEST_DIR"].map(str::to_owned).into();
            String::from_utf8(program.command().output().expect("it runs").stdout).expect("text")
        };
        let usual = niceness("units");
        let (own, _) = usual.split_once('\n').expect("a number");
        assert_eq!(niceness("histories"), usual.replacen(own, "19", 1), "{usual}");
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
