//! Where the programs are that a cluster is made of.

use std::path::{Path, PathBuf};

use super::super::{peer_file, python, tools};
use super::stamp;
use crate::error::{PeerError, Result};

/// The folder with `bin` and `images`: what `PICKET_TEST_KUBERNETES` names, else what `cargo xtask test` builds of the sources here.
pub(super) fn home() -> Result<PathBuf> {
    let built = || {
        let folder = stamp::folder(&peer_file("kubernetes"));
        let folder = folder.map_err(PeerError::io("read the sources of tests/peers/kubernetes"))?;
        Ok(python::cache().unwrap_or_default().join("picket").join(folder))
    };
    let home = std::env::var_os("PICKET_TEST_KUBERNETES").map_or_else(built, |given| Ok(given.into()))?;
    if home.join("bin/kubelet").exists() && home.join("images").exists() {
        return Ok(home);
    }
    let what = format!(
        "Kubernetes ({} has no bin/kubelet or no images: cargo xtask test builds it, and PICKET_TEST_KUBERNETES may name another)",
        home.display()
    );
    Err(PeerError::Missing { what, package: "containerd" })
}

/// That everything else is there, too.
pub(super) fn must_have_the_rest() -> Result<()> {
    for (program, package) in [
        ("containerd", "containerd"),
        ("runc", "runc"),
        ("ipmi_sim", "openipmi"),
        ("ipmitool", "ipmitool"),
        ("nsenter", "util-linux"),
        ("ip", "iproute2"),
        ("iptables", "iptables"),
    ] {
        tools::must_have(program, package)?;
    }
    if !Path::new("/usr/lib/cni/ptp").exists() {
        return Err(PeerError::Missing {
            what: "/usr/lib/cni/ptp".to_owned(),
            package: "containernetworking-plugins",
        });
    }
    if !rustix::process::geteuid().is_root() {
        let what = "start machines with containers, for which the tests of Kubernetes must run as root";
        return Err(PeerError::io(what)(std::io::ErrorKind::PermissionDenied.into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::stamp;

    #[test]
    fn other_sources_are_other_programs() {
        let folder = tempfile::tempdir().expect("a folder");
        let of = || stamp::of(folder.path()).expect("read");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        write("main.go", "one");
        write("deep/go.mod", "two");
        let first = of();
        assert_eq!(of(), first);
        write("deep/go.mod", "three");
        let changed = of();
        write("deep/go.mod", "two");
        assert_eq!(of(), first);
        std::fs::rename(folder.path().join("main.go"), folder.path().join("deep/main.go")).expect("moved");
        assert!(changed != first && of() != first && of() != changed);
    }
}
