//! Systems in which packages are installed by tests: the files of a Debian, made by mmdebstrap, which a test puts on a disk and boots.

use std::path::PathBuf;
use std::process::Command;

use crate::failure::Failure;
use crate::{packages, place, run};

/// Their names are Debian's: 12 and 13.
const SUITES: [&str; 2] = ["bookworm", "trixie"];
/// What the package depends on, what a virtual machine boots by, its agent, and who installs an .rpm; nothing of Picket's.
const INCLUDED: &str =
    "--include=systemd,ca-certificates,systemd-sysv,udev,dbus,linux-image-cloud-amd64,qemu-guest-agent,rpm";

/// The folder with `bookworm.tar` and `trixie.tar`, made where they are missing or are of other packages: at most 400 MB and, by the
/// mirror, two to eight minutes each.
pub fn folder(yes: bool) -> Result<PathBuf, Failure> {
    packages::ensure(packages::FOR_ROOTS, yes)?;
    if let Some(given) = std::env::var_os("PICKET_TEST_ROOTS") {
        return Ok(given.into());
    }
    let home = place::cache()?.join("roots");
    std::fs::create_dir_all(&home).map_err(Failure::of(home.display()))?;
    for suite in SUITES {
        let (archive, stamp) = (home.join(format!("{suite}.tar")), home.join(format!("{suite}.included")));
        if archive.exists() && std::fs::read_to_string(&stamp).is_ok_and(|made| made == INCLUDED) {
            continue;
        }
        // What was interrupted is not taken for whole.
        let fresh = home.join(format!("{suite}.made.tar"));
        let mut make = Command::new("mmdebstrap");
        make.args(["--quiet", "--variant=essential", INCLUDED, suite]).arg(&fresh);
        run::shown(make)?;
        std::fs::rename(&fresh, &archive).map_err(Failure::of(archive.display()))?;
        std::fs::write(&stamp, INCLUDED).map_err(Failure::of(stamp.display()))?;
    }
    Ok(home)
}
