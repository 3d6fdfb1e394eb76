//! Programs of crates that a task runs: built once, and kept beside the other tools.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::{place, run};

/// A crate with a command of cargo's.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// The crate, and its program.
    pub name: &'static str,
    /// Exactly this one, so that what it makes does not change by itself.
    pub version: &'static str,
    /// What is said to `cargo install` besides: `--debug` for one that only waits and asks, and does not compress.
    pub options: &'static [&'static str],
}

impl Tool {
    /// The program, built on first use.
    pub fn program(&self) -> Result<PathBuf, Failure> {
        let short = self.name.trim_start_matches("cargo-");
        let home = place::cache()?.join(format!("{short}-{}", self.version));
        let program = home.join("bin").join(self.name);
        if program.exists() {
            return Ok(program);
        }
        let building = home.join("building");
        let mut install = place::cargo();
        install.args(["install", self.name, "--version", self.version, "--locked", "--quiet"]);
        install.args(self.options).args(["--no-track", "--root"]);
        install.arg(&home).arg("--target-dir").arg(&building);
        // A folder that no setting of the workspace reaches: the workspace's own lock and profile are not the tool's.
        install.current_dir(Path::new("/"));
        run::shown(install)?;
        std::fs::remove_dir_all(&building).map_err(Failure::of(building.display()))?;
        Ok(program)
    }
}
