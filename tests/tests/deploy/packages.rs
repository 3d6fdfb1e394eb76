//! The .deb, in systems of Debian that others made: it is installed, upgraded with a fence open, removed and purged. Wants root.
//!
//! Nothing boots in them. What systemd does by the unit (its folders, who runs picketd, an end by SIGTERM) is done by hand in
//! [`System::gateway`]: a test that boots such a system in a virtual machine begins there, and asks systemctl instead.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use picket_tests::peers::{HANGS, Process, until};
use picket_tests::{PeerError, Result, Said, program};
use serde_json::Value;
use tempfile::TempDir;

/// Its machine falls long after whoever asked has gone, and the gateway with the old program too.
const FLEET: &str = "\
[accounts.operator]
password = \"secret12\"
role = \"operator\"

[groups.n]
count = 1
ipmi = \"127.6.1.1:10623\"
faults = [{ off_takes = { least = \"60s\", most = \"60s\" } }]
";

const SETTINGS: &str = "\
[gateway]
simulated = true

[nodes.n1.devices.bmc]
driver = \"ipmi\"
host = \"127.6.1.1\"
port = 10623
username = \"operator\"
password_file = \"/etc/picket/bmc.password\"
";

/// The programs under test, as a build for packages leaves them: without symbols, so that packing is no matter of minutes.
fn stripped() -> Result<TempDir> {
    let folder = tempfile::tempdir().map_err(PeerError::io("create a folder for programs"))?;
    for name in ["picketd", "picket", "fence_picket", "picket-controller", "picket-fleet", "picket-manual"] {
        let mut command = Command::new("strip");
        command.arg("-o").arg(folder.path().join(name)).arg(program(name)?);
        let said = Said::of(command.output().map_err(PeerError::io("run strip"))?);
        assert_eq!(said.code, 0, "{said:?}");
    }
    Ok(folder)
}

/// The .deb of that revision, as `cargo xtask package` makes it of these programs.
fn packed(programs: &Path, revision: u8, out: &Path) -> Result<PathBuf> {
    let mut command = Command::new(program("xtask")?);
    // As cargo runs it.
    command.env("CARGO_MANIFEST_DIR", Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/xtask"));
    command
        .args(["package", "--revision", &revision.to_string(), "--from"])
        .arg(programs)
        .arg("--out")
        .arg(out);
    let said = Said::of(command.output().map_err(PeerError::io("run xtask package"))?);
    assert_eq!(said.code, 0, "{said:?}");
    let entries = std::fs::read_dir(out).map_err(PeerError::io("look for the package"))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    Ok(files.find(|file| file.extension().is_some_and(|is| is == "deb")).expect("there is a .deb"))
}

/// A Debian in a folder.
struct System {
    folder: TempDir,
}

impl System {
    /// Unpacks the one of that name, which `cargo xtask test` has made.
    fn of(suite: &str) -> Result<Self> {
        let what = "systems to install in (PICKET_TEST_ROOTS: cargo xtask test makes them)".to_owned();
        let roots = std::env::var_os("PICKET_TEST_ROOTS");
        let roots = roots.ok_or(PeerError::Missing { what, package: "mmdebstrap" })?;
        let folder = tempfile::tempdir().map_err(PeerError::io("create a folder for a system"))?;
        let mut command = Command::new("tar");
        command.args(["--extract", "--numeric-owner", "--file"]);
        command.arg(Path::new(&roots).join(format!("{suite}.tar"))).arg("--directory").arg(folder.path());
        let said = Said::of(command.output().map_err(PeerError::io("unpack a system"))?);
        assert_eq!(said.code, 0, "{said:?}");
        Ok(Self { folder })
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.at(path), text).expect("written");
    }

    /// A command that runs `words` in it, with a /proc of its own. `before` stands in front of all: another network.
    fn enter(&self, before: &[&str], words: &[&str]) -> Command {
        let script = "mount -t proc proc \"$0/proc\" && exec chroot \"$0\" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \"$@\"";
        let line = [before, &["unshare", "--mount", "sh", "-c", script]].concat();
        let (first, rest) = line.split_first().expect("it is not empty");
        let mut command = Command::new(first);
        command.args(rest).arg(self.folder.path()).args(words);
        command
    }

    fn runs(&self, words: &[&str]) -> Result<Said> {
        Ok(Said::of(self.enter(&[], words).output().map_err(PeerError::io("enter a system"))?))
    }

    fn succeeds(&self, words: &[&str]) -> Result<Said> {
        let said = self.runs(words)?;
        assert_eq!(said.code, 0, "{words:?}: {said:?}");
        Ok(said)
    }

    /// Simulated machines, in a network of their own.
    fn fleet(&self) -> Result<Process> {
        self.write("/root/fleet.toml", FLEET);
        let own = ["unshare", "--net", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""];
        let command = self.enter(&own, &["picket-fleet", "/root/fleet.toml"]);
        Process::start(command, &self.at("/root/fleet.log"), "util-linux")
    }

    /// picketd by the user of the package, in the folders that the unit makes, within the network of `fleet`.
    async fn gateway(&self, fleet: &Process) -> Result<Process> {
        for (mode, folder) in [("700", "/var/lib/picket"), ("750", "/run/picket")] {
            self.succeeds(&["install", "-d", "-o", "picket", "-g", "picket", "-m", mode, folder])?;
        }
        let net = format!("--net=/proc/{}/ns/net", fleet.id());
        let by = ["setpriv", "--reuid=picket", "--regid=picket", "--clear-groups", "picketd"];
        let command = self.enter(&["nsenter", &net, "--"], &by);
        let mut gateway = Process::start(command, &self.at("/root/picketd.log"), "util-linux")?;
        until("the gateway answers", HANGS, async || {
            gateway.still_runs()?;
            Ok(self.runs(&["picket", "nodes"])?.code == 0)
        })
        .await?;
        Ok(gateway)
    }

    fn node(&self) -> Result<Value> {
        let said = self.succeeds(&["picket", "status", "n1", "-o", "json"])?;
        let told: Value = serde_json::from_str(&said.out).expect("JSON");
        Ok(told["nodes"][0].clone())
    }

    fn install(&self, package: &Path) -> Result<()> {
        std::fs::copy(package, self.at("/root/picket.deb")).map_err(PeerError::io("copy the package"))?;
        self.succeeds(&["dpkg", "--install", "/root/picket.deb"]).map(drop)
    }
}

/// Installed, it is right as it stands, starts nothing, and has a user.
fn is_right_as_it_stands(system: &System) -> Result<()> {
    let version = system.succeeds(&["picketd", "--version"])?;
    assert!(version.out.contains("\nfeatures: ") && version.out.contains(" aws "), "{version:?}");
    for program in ["picket", "picket-controller", "picket-fleet", "fence_picket"] {
        let said = system.succeeds(&[program, "--version"])?;
        assert!(said.out.starts_with(&format!("{program} {}", env!("CARGO_PKG_VERSION"))), "{said:?}");
    }
    let settings = std::fs::metadata(system.at("/etc/picket")).expect("it is there");
    assert_eq!(settings.permissions().mode() & 0o7777, 0o750);
    for (mode, folder) in [("700", "/var/lib/picket"), ("750", "/run/picket")] {
        system.succeeds(&["install", "-d", "-o", "picket", "-g", "picket", "-m", mode, folder])?;
    }
    let checked = ["setpriv", "--reuid=picket", "--regid=picket", "--clear-groups", "picketd", "--check"];
    system.succeeds(&checked)?;
    let begins = system.at("/etc/systemd/system/multi-user.target.wants/picketd.service");
    assert!(!begins.is_symlink(), "it would start at the next boot");
    for page in ["man1/picket-fence.1.gz", "man8/picketd.8.gz", "man8/fence_picket.8.gz"] {
        assert!(system.at("/usr/share/man").join(page).is_file(), "{page}");
    }
    Ok(())
}

async fn lives_through_its_life(suite: &str) -> Result<()> {
    let programs = stripped()?;
    let out = tempfile::tempdir().map_err(PeerError::io("create a folder for packages"))?;
    let first = packed(programs.path(), 1, &out.path().join("1"))?;
    let second = packed(programs.path(), 2, &out.path().join("2"))?;
    let system = System::of(suite)?;
    system.install(&first)?;
    is_right_as_it_stands(&system)?;

    system.write("/etc/picket/picket.toml", SETTINGS);
    system.write("/etc/picket/bmc.password", "secret12");
    system.succeeds(&["chown", "picket:picket", "/etc/picket/bmc.password"])?;
    system.succeeds(&["chmod", "600", "/etc/picket/bmc.password"])?;
    let fleet = system.fleet()?;
    let mut gateway = system.gateway(&fleet).await?;
    // It gives up long before the machine falls, and the fence goes on.
    let mut before = Value::Null;
    for _ in 0..10 {
        // On a busy machine it may give up before it has asked.
        if before["phase"] != "fencing" {
            let asked = ["picket", "fence", "n1", "--yes", "--reason", "an upgrade", "--timeout", "5s"];
            let asked = system.runs(&asked)?;
            assert_ne!(asked.code, 0, "{asked:?}");
            before = system.node()?;
        }
    }
    assert_eq!(before["phase"], "fencing", "{before}");

    system.install(&second)?;
    let installed = system.succeeds(&["dpkg-query", "--show", "--showformat=${Version}", "picket"])?;
    assert!(installed.out.ends_with("-2"), "{installed:?}");
    let kept = std::fs::read_to_string(system.at("/etc/picket/picket.toml")).expect("it is there");
    assert_eq!(kept, SETTINGS);
    gateway.terminate(HANGS).await?;
    let mut gateway = system.gateway(&fleet).await?;
    until("the fence that was open is over", Duration::from_secs(200), async || {
        Ok(system.node()?["phase"] == "released")
    })
    .await?;
    let after = system.node()?;
    assert_eq!(after["fence_id"], before["fence_id"], "another fence: {after}");
    gateway.terminate(HANGS).await?;

    system.succeeds(&["dpkg", "--remove", "picket"])?;
    assert!(!system.at("/usr/bin/picketd").exists());
    for kept in ["/etc/picket/picket.toml", "/etc/picket/bmc.password", "/var/lib/picket/picket.redb"] {
        assert!(system.at(kept).is_file(), "{kept} went with the programs");
    }
    let purged = system.succeeds(&["dpkg", "--purge", "picket"])?;
    for folder in ["/var/lib/picket", "/etc/picket"] {
        assert!(!system.at(folder).exists(), "{folder} is there after a purge");
        assert!(purged.err.contains(&format!("removing {folder}")), "{purged:?}");
    }
    Ok(())
}

#[tokio::test]
async fn debian_12_installs_upgrades_with_a_fence_open_removes_and_purges_it() -> Result<()> {
    lives_through_its_life("bookworm").await
}

#[tokio::test]
async fn debian_13_installs_upgrades_with_a_fence_open_removes_and_purges_it() -> Result<()> {
    lives_through_its_life("trixie").await
}
