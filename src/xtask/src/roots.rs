//! Systems in which packages are installed by tests: the files of a Debian, made by mmdebstrap, which a test unpacks and enters.

use std::path::PathBuf;
use std::process::Command;

use crate::failure::Failure;
use crate::{packages, place, run};

/// Their names are Debian's: 12 and 13.
const SUITES: [&str; 2] = ["bookworm", "trixie"];
/// What the package depends on and what a test looks with; nothing of Picket's.
const INCLUDED: &str = "--include=systemd,ca-certificates";

/// The folder with `bookworm.tar` and `trixie.tar`, made where they are missing: some 170 MB and two minutes each.
pub fn folder(yes: bool) -> Result<PathBuf, Failure> {
    if let Some(given) = std::env::var_os("PICKET_TEST_ROOTS") {
        return Ok(given.into());
    }
    let home = place::cache()?.join("roots");
    std::fs::create_dir_all(&home).map_err(Failure::of(home.display()))?;
    for suite in SUITES {
        let archive = home.join(format!("{suite}.tar"));
        if archive.exists() {
            continue;
        }
        packages::ensure(packages::FOR_ROOTS, yes)?;
        // What was interrupted is not taken for whole.
        let fresh = home.join(format!("{suite}.made.tar"));
        let mut make = Command::new("mmdebstrap");
        make.args(["--quiet", "--variant=essential", INCLUDED, suite]).arg(&fresh);
        run::shown(make)?;
        std::fs::rename(&fresh, &archive).map_err(Failure::of(archive.display()))?;
    }
    Ok(home)
}
