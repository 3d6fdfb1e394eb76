//! The virtual environments of the Python peers, outside of the sources.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::{place, run};

/// A Python with what `tests/peers/requirements.txt` asks for; made anew when that file changed.
pub fn environment() -> Result<PathBuf, Failure> {
    with(&place::cache()?.join("venv"), &place::top().join("tests/peers/requirements.txt"), "grpc, pyghmi")
}

/// The one of the EC2 of the tests, with what `tests/peers/aws/requirements.txt` asks for (340 MB).
pub fn aws() -> Result<PathBuf, Failure> {
    with(
        &place::cache()?.join("aws/venv"),
        &place::top().join("tests/peers/aws/requirements.txt"),
        "moto, boto3",
    )
}

/// The one of the Compute Engine of the tests, with what `tests/peers/gcp/requirements.txt` asks for (270 MB).
pub fn gcp() -> Result<PathBuf, Failure> {
    with(
        &place::cache()?.join("gcp/venv"),
        &place::top().join("tests/peers/gcp/requirements.txt"),
        "aiohttp, cryptography, googleapiclient, google.cloud.compute_v1",
    )
}

/// A Python in `home` with what `requirements` ask for, which has these modules; made anew when that file changed.
pub fn with(home: &Path, requirements: &Path, modules: &str) -> Result<PathBuf, Failure> {
    let wanted = std::fs::read_to_string(requirements).map_err(Failure::of(requirements.display()))?;
    let (python, stamp) = (home.join("bin/python"), home.join("picket-requirements.txt"));
    // A system's upgrade may have taken the interpreter away from under it.
    let works = || {
        Command::new(&python)
            .args(["-c", &format!("import {modules}")])
            .output()
            .is_ok_and(|out| out.status.success())
    };
    if std::fs::read_to_string(&stamp).is_ok_and(|made| made == wanted) && works() {
        return Ok(python);
    }
    let mut make = Command::new("python3");
    make.args(["-m", "venv", "--clear"]).arg(home);
    run::shown(make)?;
    let mut install = Command::new(&python);
    install
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
        .arg(requirements);
    run::shown(install)?;
    std::fs::write(&stamp, wanted).map_err(Failure::of(stamp.display()))?;
    Ok(python)
}
