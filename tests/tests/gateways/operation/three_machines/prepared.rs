//! What `prepare.sh` makes, unpacked as on the machines.

use std::path::{Path, PathBuf};
use std::process::Command;

use picket_tests::{PeerError, Result};
use tempfile::TempDir;

/// Who may call.
pub const CALLER: &str = "alice@example.org";

/// deploy/three-machines.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/three-machines")
}

/// Runs it to its end: whether it succeeded, and what it said.
pub fn run(command: &mut Command) -> (bool, String) {
    let output = command.output().expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// A copy of deploy with other machines in it, and what was made of it.
pub struct Prepared {
    dir: TempDir,
}

impl Prepared {
    /// deploy as it is shipped, but for the file machines.
    fn shipped(machines: &[&str]) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("picket-three-").tempdir();
        let prepared = Self { dir: dir.map_err(PeerError::io("create a directory"))? };
        let copied = run(Command::new("cp").arg("-r").arg(folder().join("..")).arg(prepared.at("deploy")));
        assert!(copied.0, "{copied:?}");
        let text = format!("# of a test\n\n{}\n", machines.join("\n"));
        let file = prepared.at("deploy/three-machines/machines");
        std::fs::write(&file, text).map_err(PeerError::io("write machines"))?;
        Ok(prepared)
    }

    /// Prepared for these machines and the caller, and unpacked.
    pub fn with(machines: &[&str]) -> Result<Self> {
        let prepared = Self::shipped(machines)?;
        let made = prepared.again(&[])?;
        assert!(made.0, "{}", made.1);
        for machine in 0..3 {
            let root = prepared.root(machine);
            std::fs::create_dir(&root).map_err(PeerError::io("make a machine's root"))?;
            let tar = prepared.out().join(format!("g{}.tar", machine + 1));
            // Not as somebody else's: where the tests run as root they give nothing away.
            let unpacked = run(Command::new("tar")
                .args(["--no-same-owner", "--no-overwrite-dir", "-C"])
                .arg(&root)
                .arg("-xpf")
                .arg(tar));
            assert!(unpacked.0, "{unpacked:?}");
        }
        Ok(prepared)
    }

    /// What it says where it refuses; then it has made nothing.
    pub fn refused(machines: &[&str], callers: &[&str]) -> Result<String> {
        let prepared = Self::shipped(machines)?;
        let said = run(prepared.script().arg(prepared.out()).args(callers));
        assert!(!said.0, "{machines:?} and {callers:?} were taken");
        let left: Vec<_> = std::fs::read_dir(prepared.dir.path()).expect("it is there").flatten().collect();
        assert_eq!(left.len(), 1, "nothing but deploy is there: {left:?}");
        Ok(said.1)
    }

    fn script(&self) -> Command {
        Command::new(self.at("deploy/three-machines/prepare.sh"))
    }

    /// Runs the script for the same place.
    pub fn again(&self, options: &[&str]) -> Result<(bool, String)> {
        Ok(run(self.script().args(options).arg(self.out()).arg(CALLER)))
    }

    /// Runs it for another place by the CAs of the first, with one caller more; the folder of its callers.
    pub fn renewed(&self) -> Result<PathBuf> {
        let later = self.at("later");
        let made = run(self
            .script()
            .arg("--ca")
            .arg(self.out().join("ca"))
            .arg(&later)
            .args([CALLER, "bob@example.org"]));
        assert!(made.0, "{}", made.1);
        Ok(later.join("callers"))
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// What the script made.
    pub fn out(&self) -> PathBuf {
        self.at("out")
    }

    /// The root of a machine, 0 to 2.
    pub fn root(&self, machine: usize) -> PathBuf {
        self.at(&format!("m{}", machine + 1))
    }

    /// What the caller has in ~/.config/picket.
    pub fn caller(&self) -> PathBuf {
        self.out().join("callers").join(CALLER)
    }
}
