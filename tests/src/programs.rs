//! The real programs of this workspace, as fresh as its sources.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::error::{PeerError, Result};

/// Where the programs are: `PICKET_BIN_DIR`, which `cargo xtask` sets when it has built them; else they are built now,
/// once a process. Taking whatever lies in the target folder would test yesterday's daemon.
static PROGRAMS: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    if let Some(given) = std::env::var_os("PICKET_BIN_DIR") {
        return Ok(PathBuf::from(given));
    }
    let profile = profile().map_err(|error| format!("find the running executable: {error}"))?;
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args([
        "build",
        "--quiet",
        "--bin",
        "picketd",
        "--bin",
        "picket",
        "--bin",
        "fence_picket",
        "--bin",
        "picket-controller",
        "--bin",
        "picket-fleet",
        "--bin",
        "picket-manual",
        "--bin",
        "xtask",
        "--target-dir",
    ]);
    command
        .arg(profile.parent().unwrap_or(&profile))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    if profile.ends_with("release") {
        command.arg("--release");
    }
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("run cargo: {error}"))?;
    if output.status.success() {
        Ok(profile)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
});

/// One of them.
pub fn program(name: &str) -> Result<PathBuf> {
    let failed = |output: String| PeerError::Ended {
        program: "cargo build of picketd, picket, fence_picket, picket-controller and xtask".to_owned(),
        status: "no programs to test".to_owned(),
        output,
    };
    let path = PROGRAMS.as_ref().map_err(|why| failed(why.clone()))?.join(name);
    if path.exists() { Ok(path) } else { Err(failed(format!("{} is not there", path.display()))) }
}

/// The daemon with hooks. It is of this package, so cargo has built it with the tests that run.
pub(crate) fn hooked() -> Result<PathBuf> {
    let profile = profile().map_err(PeerError::io("find the running executable"))?;
    Ok(profile.join("picketd-hooked"))
}

/// Where cargo put what runs now: the folder of the profile.
pub(crate) fn profile() -> std::io::Result<PathBuf> {
    let exe = std::env::current_exe()?;
    Ok(exe.ancestors().skip(1).find(|dir| !dir.ends_with("deps")).unwrap_or(Path::new(".")).to_owned())
}
