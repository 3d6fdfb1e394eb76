//! The etcds of the tests, outside of the sources: the present one from its Go module, an old one from Debian.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::go::Go;
use crate::{debian, place};

/// What is built. `tests/src/peers/etcd.rs` looks for it under this name.
const VERSION: &str = "v3.6.16";

/// etcd 3.6, built once: about half a minute, and two where its sources have to be fetched.
pub fn present() -> Result<PathBuf, Failure> {
    if let Some(given) = std::env::var_os("PICKET_TEST_ETCD") {
        return Ok(given.into());
    }
    let home = place::cache()?.join("go").join(format!("etcd-{VERSION}"));
    let program = home.join("bin/etcd");
    if program.exists() {
        return Ok(program);
    }
    let go = Go::find()?;
    if program.exists() {
        return Ok(program);
    }
    let module = home.join("module");
    std::fs::create_dir_all(&module).map_err(Failure::of(module.display()))?;
    std::fs::write(module.join("go.mod"), "module etcdpeer\n\ngo 1.24.0\n")
        .map_err(Failure::of(module.display()))?;
    go.run(&module, &["get", &format!("go.etcd.io/etcd/server/v3@{VERSION}")])?;
    // Under another name first, so that one that was interrupted is not taken for whole.
    let made = home.join("etcd.made");
    go.build(&module, "go.etcd.io/etcd/server/v3", "", &made)?;
    place_at(&made, &program)?;
    go.forget()?;
    Ok(program)
}

/// Debian's etcd 3.4.23, which Picket refuses. Its package is unpacked and not installed, so that no service begins.
pub fn old() -> Result<PathBuf, Failure> {
    if let Some(given) = std::env::var_os("PICKET_TEST_OLD_ETCD") {
        return Ok(given.into());
    }
    debian::program("etcd-server", "etcd", "name any etcd before 3.4.31 in PICKET_TEST_OLD_ETCD")
}

fn place_at(made: &Path, at: &Path) -> Result<(), Failure> {
    let directory = at.parent().unwrap_or(at);
    std::fs::create_dir_all(directory).map_err(Failure::of(directory.display()))?;
    std::fs::rename(made, at).map_err(Failure::of(at.display()))
}
