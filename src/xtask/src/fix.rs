//! `cargo xtask fix`: formats, and lets clippy mend what it can.

use crate::failure::Failure;
use crate::{place, run};

/// Writes to the sources, also where they are not committed.
pub fn fix() -> Result<(), Failure> {
    let mut clippy = place::cargo();
    clippy.args(["clippy", "--fix", "--workspace", "--all-targets", "--allow-dirty", "--allow-staged"]);
    run::shown(clippy)?;
    let mut format = place::cargo();
    format.args(["fmt", "--all"]);
    run::shown(format)
}
