//! Programs of Debian packages, outside of the sources: unpacked and not installed, so that no service of theirs begins.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::{place, run};

/// Where a package puts a program, in the folder of that package. `otherwise`: what helps where there is no apt-get.
pub fn program(package: &str, program: &str, otherwise: &str) -> Result<PathBuf, Failure> {
    let home = place::cache()?.join("debian");
    let program = Path::new(package).join("usr/bin").join(program);
    let kept = home.join(&program);
    if kept.exists() {
        return Ok(kept);
    }
    if place::find("apt-get").is_none() {
        return Err(Failure::new(format!(
            "Debian's package {package} cannot be fetched, since this machine has no apt-get: {otherwise}"
        )));
    }
    let fetched = home.join(format!("{package}.fetched"));
    forget(&fetched)?;
    std::fs::create_dir_all(&fetched).map_err(Failure::of(fetched.display()))?;
    let mut download = Command::new("apt-get");
    download.args(["download", "-q", package]).current_dir(&fetched);
    run::shown(download)?;
    let brought = std::fs::read_dir(&fetched).map_err(Failure::of(fetched.display()))?;
    let file = brought
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|e| e == "deb"))
        .ok_or(Failure::new(format!("apt-get download {package} brought no package")))?;
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("--extract").arg(file).arg(fetched.join(package));
    run::shown(unpack)?;
    // The program alone, and that at the end: what was interrupted is not taken for whole.
    let folder = kept.parent().unwrap_or(&home);
    std::fs::create_dir_all(folder).map_err(Failure::of(folder.display()))?;
    std::fs::rename(fetched.join(&program), &kept).map_err(Failure::of(kept.display()))?;
    forget(&fetched)?;
    Ok(kept)
}

fn forget(fetched: &Path) -> Result<(), Failure> {
    match std::fs::remove_dir_all(fetched) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::of(fetched.display())(error))
        }
        _ => Ok(()),
    }
}
