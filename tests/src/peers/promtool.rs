//! Prometheus' promtool, the real one.

use std::path::PathBuf;
use std::process::Stdio;

use super::{HANGS, python};
use crate::error::{PeerError, Result};
use crate::gateway::Said;

/// Where `cargo xtask test` puts Debian's, in its cache.
const UNPACKED: &str = "picket/debian/prometheus/usr/bin/promtool";

/// Runs it to its end.
pub async fn promtool(arguments: &[&str]) -> Result<Said> {
    let mut command = tokio::process::Command::new(program()?);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let what = format!("promtool {}", arguments.join(" "));
    let output = tokio::time::timeout(HANGS, command.output())
        .await
        .map_err(|_elapsed| PeerError::TimedOut { what: what.clone(), within: HANGS, seen: String::new() })?;
    output.map(Said::of).map_err(PeerError::io(&what))
}

/// The executable. An error says how to get it.
fn program() -> Result<PathBuf> {
    let named = std::env::var_os("PICKET_TEST_PROMTOOL").map(PathBuf::from);
    let program = named.unwrap_or_else(|| python::cache().unwrap_or_default().join(UNPACKED));
    if program.exists() {
        return Ok(program);
    }
    let what = format!(
        "promtool ({} is not there: cargo xtask test brings it, and PICKET_TEST_PROMTOOL may name another)",
        program.display()
    );
    Err(PeerError::Missing { what, package: "prometheus" })
}
