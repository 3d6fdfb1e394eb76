//! The Pythons of the peers that are written in it, with what `tests/peers/requirements.txt` asks for, or that of a peer's own.

use std::path::{Path, PathBuf};

use crate::error::{PeerError, Result};

/// Where what is made for tests is kept.
pub(super) fn cache() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    cache.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
}

/// `PICKET_TEST_PYTHON`, else the one that `cargo xtask test` makes.
pub fn interpreter() -> Result<PathBuf> {
    let given = std::env::var_os("PICKET_TEST_PYTHON").map(PathBuf::from);
    let python = given.or_else(|| Some(cache()?.join("picket/venv/bin/python"))).unwrap_or_default();
    if python.exists() {
        return Ok(python);
    }
    let what = format!(
        "a Python with tests/peers/requirements.txt ({} is not there: cargo xtask test makes it, and \
         PICKET_TEST_PYTHON may name another)",
        python.display()
    );
    Err(PeerError::Missing { what, package: "python3-venv" })
}

/// The one of a peer with a virtual environment of its own: what `variable` names, else the one that `cargo xtask test` makes of
/// `tests/peers/PEER/requirements.txt`.
pub(super) fn of(peer: &str, variable: &str) -> Result<PathBuf> {
    let given = std::env::var_os(variable).map(PathBuf::from);
    let made = || Some(cache()?.join("picket").join(peer).join("venv/bin/python"));
    let python = given.or_else(made).unwrap_or_default();
    if python.exists() {
        return Ok(python);
    }
    let what = format!(
        "a Python with tests/peers/{peer}/requirements.txt ({} is not there: cargo xtask test makes it, and {variable} may name \
         another)",
        python.display()
    );
    Err(PeerError::Missing { what, package: "python3-venv" })
}
