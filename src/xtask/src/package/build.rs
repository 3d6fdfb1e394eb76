//! Programs for systems older than this one: cargo-zigbuild links them against the glibc of [`super::glibc::LIMIT`].

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::commit::Commit;
use super::{PROGRAMS, glibc};
use crate::failure::Failure;
use crate::tool::Tool;
use crate::{place, run};

const ZIGBUILD: Tool = Tool { name: "cargo-zigbuild", version: "0.24.1", options: &["--debug"] };
/// Zig as a Python package: compiler and linker, and what each glibc exports.
const ZIG: &str = "ziglang==0.17.0";

/// Builds all of them; the folder in which they are.
pub fn build(target: &Path, commit: &Commit) -> Result<PathBuf, Failure> {
    let (major, minor) = glibc::LIMIT;
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut cargo = quiet(&ZIGBUILD.program()?);
    cargo.current_dir(place::top());
    cargo.args(["zigbuild", "--locked", "--release", "--target", &format!("{triple}.{major}.{minor}")]);
    cargo.arg("--target-dir").arg(target);
    for (package, program) in PROGRAMS {
        cargo.args(["--package", package, "--bin", program]);
    }
    cargo.env("CARGO_ZIGBUILD_ZIG_PATH", zig()?);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", without_paths(target)?);
    // What a panic tells is its place, which is no symbol.
    cargo.env("CARGO_PROFILE_RELEASE_STRIP", "symbols").env("CARGO_INCREMENTAL", "0");
    cargo.env("PICKET_COMMIT", &commit.name).env("SOURCE_DATE_EPOCH", &commit.time);
    run::shown(cargo)?;
    Ok(target.join(triple).join("release"))
}

/// A command of cargo's, without what cargo told us of our own package.
pub fn quiet(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, value) in place::cargo().get_envs() {
        if value.is_none() {
            command.env_remove(name);
        }
    }
    command
}

/// Zig's program, in a virtual environment of its own.
fn zig() -> Result<PathBuf, Failure> {
    let cache = place::cache()?;
    let wanted = cache.join("zig.requirements");
    std::fs::write(&wanted, format!("{ZIG}\n")).map_err(Failure::of(wanted.display()))?;
    let python = crate::python::with(&cache.join("zig"), &wanted, "ziglang")?;
    let mut ask = Command::new(python);
    ask.args(["-c", "import ziglang, os; print(os.path.dirname(ziglang.__file__))"]);
    let folder = run::output(ask)?;
    Ok(Path::new(String::from_utf8_lossy(&folder).trim()).join("zig"))
}

/// Where the sources, the crates and the target folder lie on this machine is in no program.
fn without_paths(target: &Path) -> Result<OsString, Failure> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let crates = home.ok_or(Failure::new("neither CARGO_HOME nor HOME is set: where are the crates?"))?;
    let mut flags = OsString::new();
    // Of two that fit, the last one holds: a target folder within the sources is the target folder.
    for (path, name) in [(place::top(), "/picket"), (&crates, "/cargo"), (target, "/target")] {
        if !flags.is_empty() {
            flags.push("\u{1f}");
        }
        flags.push("--remap-path-prefix=");
        flags.push(path);
        flags.push(format!("={name}"));
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_folder_within_the_sources_is_renamed_after_them() {
        let flags = without_paths(&place::top().join("target")).expect("known").into_string().expect("text");
        let flags: Vec<&str> = flags.split('\u{1f}').collect();
        assert_eq!(flags.len(), 3);
        assert!(flags[0].ends_with("=/picket") && flags[2].ends_with("=/target"), "{flags:?}");
    }
}
