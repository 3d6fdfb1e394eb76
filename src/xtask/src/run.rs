//! Running other programs.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::failure::Failure;

/// The command line, to be shown.
fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Shows it, runs it before the user's eyes, and fails if it does.
pub fn shown(mut command: Command) -> Result<(), Failure> {
    let line = line(&command);
    eprintln!("\n+ {line}");
    let status = command.stdin(Stdio::null()).status().map_err(Failure::of(&line))?;
    if status.success() { Ok(()) } else { Err(Failure::new(format!("{line}: {status}"))) }
}

/// A program that is asked to end when we do, however we end: else it would run on behind a run that was killed.
pub fn with_us(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]).arg(program);
    command
}

/// Runs it and takes what it prints; what it complains of goes to the user.
pub fn output(mut command: Command) -> Result<Vec<u8>, Failure> {
    let line = line(&command);
    let output =
        command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().map_err(Failure::of(&line))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(Failure::new(format!("{line}: {}", output.status)))
    }
}
