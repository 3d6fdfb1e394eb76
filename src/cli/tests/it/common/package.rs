//! A folder with `picket` and programs beside it that a test plays: as a package puts them side by side.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::Command;

/// The folder.
pub struct Package(TempDir);

impl Package {
    /// `picket` alone.
    pub fn new() -> Self {
        Self::of(tempfile::tempdir().expect("a directory"))
    }

    /// The same in a folder whose name is as long as that of any other run.
    pub fn of_one_length() -> Self {
        let folder = tempfile::Builder::new().prefix("package-").rand_bytes(6).tempdir_in("/tmp");
        Self::of(folder.expect("a directory"))
    }

    fn of(folder: TempDir) -> Self {
        let (own, here) = (env!("CARGO_BIN_EXE_picket"), folder.path().join("picket"));
        // A link is enough where both are on one file system.
        if std::fs::hard_link(own, &here).is_err() {
            std::fs::copy(own, &here).expect("copied");
        }
        Self(folder)
    }

    /// With a program that is this shell script.
    pub fn with(self, name: &str, script: &str) -> Self {
        let path = self.at(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}")).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        self
    }

    /// A file in it.
    pub fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Its `picket`, which finds nothing in PATH but the system's own programs.
    pub fn picket(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.at("picket"));
        command.args(words).env_clear().env("PATH", "/usr/bin:/bin").env("TMPDIR", self.path());
        command.env("PACKAGE", self.path()).stdin(Stdio::null()).kill_on_drop(true);
        command
    }
}
