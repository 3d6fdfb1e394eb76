//! What is made from source when it is first needed: the simulator's modules and the boot sector.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

use super::peer_file;
use crate::error::{PeerError, Result};

/// A module of ipmi_sim, from `tests/peers/NAME.c`.
pub(super) fn module(name: &str) -> Result<PathBuf> {
    built(&format!("{name}.c"), &format!("{name}.so"), |source, target| {
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        if !Path::new("/usr/include/OpenIPMI/mcserv.h").exists() {
            return Err(PeerError::Missing { what: "OpenIPMI/mcserv.h".into(), package: "libopenipmi-dev" });
        }
        let mut command = Command::new(compiler);
        command.args(["-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-o"]).arg(target).arg(source);
        run(command, "gcc")
    })
}

/// The machine of `hb.asm`, 512 bytes.
pub(super) fn boot_sector() -> Result<PathBuf> {
    built("hb.asm", "hb.bin", |source, target| {
        let mut command = Command::new("nasm");
        command.args(["-f", "bin", "-o"]).arg(target).arg(source);
        run(command, "nasm")
    })
}

/// Makes `target` from `source` unless it is newer. A lock makes one test wait for the other's compiler.
fn built(source: &str, target: &str, make: impl FnOnce(&Path, &Path) -> Result<()>) -> Result<PathBuf> {
    let source = peer_file(source);
    let directory = directory()?;
    let target = directory.join(target);
    let lock =
        File::create(directory.join("lock")).map_err(PeerError::io("create the lock of built peers"))?;
    lock.lock().map_err(PeerError::io("lock the built peers"))?;
    if modified(&target) <= modified(&source) {
        let fresh = target.with_extension("fresh");
        make(&source, &fresh)?;
        std::fs::rename(&fresh, &target).map_err(PeerError::io(format!("place {}", target.display())))?;
    }
    Ok(target)
}

/// Beside the running test's executable, in the target folder.
fn directory() -> Result<PathBuf> {
    let profile = crate::programs::profile().map_err(PeerError::io("find the running executable"))?;
    let directory = profile.join("picket-peers");
    std::fs::create_dir_all(&directory).map_err(PeerError::io(format!("create {}", directory.display())))?;
    Ok(directory)
}

/// When a file was written; before everything if it is not there.
fn modified(path: &Path) -> SystemTime {
    path.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

fn run(mut command: Command, package: &'static str) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let Output { status, stdout, stderr } = command.output().map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => PeerError::Missing { what: program, package },
        _ => PeerError::Io { what: format!("run {program}"), source },
    })?;
    if status.success() {
        return Ok(());
    }
    let output = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Err(PeerError::Ended { program: format!("{command:?}"), status: status.to_string(), output })
}
