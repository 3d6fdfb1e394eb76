//! A gateway that says what a script tells it, and the real binary against it.

#![allow(dead_code, unused_imports, reason = "each test file uses a part of it")]

pub mod gateway;
pub mod make;
pub mod package;
pub mod terminal;

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::Pid;
use tokio::process::Command;

/// The binary with these arguments, away from the settings and the terminal of whoever runs the tests.
pub fn picket(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_picket"));
    command.args(line.split_whitespace());
    for name in ["PICKET_ENDPOINT", "PICKET_CONTEXT", "XDG_CONFIG_HOME", "HOME", "NO_COLOR", "TERM"] {
        command.env_remove(name);
    }
    command.env("USER", "alice").stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// What came of it.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// Runs it to its end, which must come within 30 s.
pub async fn run(mut command: Command) -> Ran {
    let done = tokio::time::timeout(Duration::from_secs(120), command.output());
    let Output { status, stdout, stderr } = done.await.expect("it ends").expect("it runs");
    Ran {
        code: status.code().expect("it exits"),
        out: String::from_utf8(stdout).expect("text"),
        err: String::from_utf8(stderr).expect("text"),
    }
}

/// Runs `picket LINE --endpoint ...` against a gateway.
pub async fn ask(gateway: &gateway::Gateway, line: &str) -> Ran {
    let mut command = picket(line);
    command.args(["--endpoint", &gateway.endpoint()]);
    run(command).await
}

/// Runs it on a terminal of so many columns: the exit code, and what stands there at its end.
pub async fn see(gateway: &gateway::Gateway, line: &str, columns: u16) -> (i32, String) {
    let mut command = picket(line);
    command.args(["--endpoint", &gateway.endpoint()]);
    see_of(command, columns).await
}

/// The same of a command that asks no gateway.
pub async fn see_of(mut command: Command, columns: u16) -> (i32, String) {
    command.env("NO_COLOR", "1");
    let (code, written) = terminal::Terminal::of(command, columns, 50).end().await;
    (code, terminal::screen(&written, columns.into()))
}

/// Compares with `tests/golden/NAME`; `PICKET_BLESS=1` writes it.
pub fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("PICKET_BLESS").is_some() {
        std::fs::write(&path, text).expect("the golden can be written");
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, wanted, "{} differs (PICKET_BLESS=1 takes the new one)", path.display());
}

/// The number of a process that writes it there, once it has: within a minute.
pub async fn number(file: &Path) -> Pid {
    let written = async {
        loop {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            // Whole with the end of its line.
            if text.ends_with('\n') {
                return text.trim().parse().ok().and_then(Pid::from_raw).expect("a number");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), written).await.expect("it is started")
}

/// Waits until a process has ended: for a minute.
pub async fn ended(pid: Pid) {
    let gone = async {
        while is_running(pid) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), gone).await.expect("it ends");
}

/// One that has ended and is not buried does not run: whoever has none above it may lie for a while.
fn is_running(pid: Pid) -> bool {
    let about = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    about.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}
