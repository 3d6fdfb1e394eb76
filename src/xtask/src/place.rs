//! Where things are: the sources, the target folder, the cache.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

use crate::failure::Failure;
use crate::run;

/// The top of the sources: of those that cargo runs us from. Where two checkouts share a target folder the program may have been
/// built from the other.
pub fn top() -> &'static Path {
    static HERE: LazyLock<PathBuf> = LazyLock::new(|| {
        let here = std::env::var_os("CARGO_MANIFEST_DIR");
        here.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
    });
    HERE.ancestors().nth(2).unwrap_or(&HERE)
}

/// Cargo, the one that started us. What it told us of our own package is not passed on: build scripts that look at it would build
/// anew, and with them most of what there is, whenever somebody changes between `cargo xtask` and `cargo`.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(top());
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_our_package) {
            command.env_remove(name);
        }
    }
    command
}

fn is_of_our_package(variable: &str) -> bool {
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
}

/// `cargo metadata` with these further arguments.
pub fn metadata(arguments: &[&str]) -> Result<Value, Failure> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--locked"]).args(arguments);
    serde_json::from_slice(&run::output(command)?).map_err(Failure::of("cargo metadata"))
}

/// Where cargo puts all that it builds.
pub fn target() -> Result<PathBuf, Failure> {
    let metadata = metadata(&["--no-deps"])?;
    let target =
        metadata["target_directory"].as_str().ok_or(Failure::new("cargo metadata names no target folder"))?;
    Ok(PathBuf::from(target))
}

/// Where cargo puts what it builds in the development profile.
pub fn built() -> Result<PathBuf, Failure> {
    Ok(target()?.join("debug"))
}

/// Where we keep what takes long to fetch: `$XDG_CACHE_HOME/picket`, else `~/.cache/picket`.
pub fn cache() -> Result<PathBuf, Failure> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    base.map(|base| base.join("picket"))
        .ok_or(Failure::new("neither XDG_CACHE_HOME nor HOME is set: no place for a cache"))
}

/// The search path of what we start: with the folders for administrators, where Debian keeps ipmipower and sometimes
/// an ordinary user's path lacks them.
pub fn search_path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/local/sbin:/usr/sbin:/sbin")
}

/// Where a program is, on that path.
pub fn find(program: &str) -> Option<PathBuf> {
    search_path().split(':').map(|dir| Path::new(dir).join(program)).find(|file| file.is_file())
}
