//! The edge of every bench: its runtime, how it ends, and how busy the machine was meanwhile.

use std::process::ExitCode;

/// What ends a bench. It is an edge: whatever it is, it is printed once.
pub type Wrong = Box<dyn std::error::Error + Send + Sync>;

/// As the daemon's.
pub fn runtime() -> Result<tokio::runtime::Runtime, Wrong> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

/// The end of the bench of this name, with what went wrong.
pub fn exit(bench: &str, ended: Result<(), Wrong>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("{bench} bench: {wrong}");
            ExitCode::FAILURE
        }
    }
}

/// How busy the machine is.
pub fn print_load(when: &str) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split_whitespace().take(2).collect();
    println!("  load {when}: {} (1 and 5 minutes)", load.join(" "));
}
