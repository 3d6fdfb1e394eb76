//! A directory with settings, and what is said of them.
#![allow(dead_code, clippy::unwrap_used)] // Each test binary uses a part of it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use picket_config::{Faults, Settings, Sources};
use picket_core::ids::{DeviceId, NodeId};
use tempfile::TempDir;

/// A directory with settings.
pub struct Home(pub TempDir);

impl Home {
    pub fn with(text: &str) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        home.file("picket.toml", text);
        home
    }

    pub fn file(&self, name: &str, text: &str) -> &Self {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        self
    }

    pub fn load_with(&self, variables: &[(&str, &str)]) -> Result<Settings, Faults> {
        let environment = variables.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        let file = self.0.path().join("picket.toml");
        Settings::load(&Sources { directory: self.0.path().join("conf.d"), file, environment })
    }

    pub fn load(&self) -> Result<Settings, Faults> {
        self.load_with(&[])
    }

    /// The faults, with the directory's name taken out.
    pub fn faults(&self, variables: &[(&str, &str)]) -> Vec<String> {
        let faults = self.load_with(variables).expect_err("there must be faults");
        let home = format!("{}/", self.0.path().display());
        faults.to_string().lines().map(|line| line.replace(&home, "")).collect()
    }
}

/// Two nodes with one BMC each; tests add to it, or put something in the place of a part.
pub const GOOD: &str = r#"
[templates.r1]
levels = [["bmc"]]
releases = ["detach"]
[templates.r1.devices.bmc]
driver = "ipmi"
host = "10.1.0.{number}"
username = "picket"
password_file = "/etc/picket/bmc.password"
[nodes."r1n[07-08]"]
template = "r1"
[releases.detach]
kind = "webhook"
url = "https://storage.example"
"#;

#[track_caller]
pub fn says(faults: &[String], wanted: &[&str]) {
    for want in wanted {
        let (place, what) = want.split_once(" ~ ").expect("place ~ what");
        let found = faults.iter().any(|fault| fault.starts_with(place) && fault.contains(what));
        assert!(found, "no {want:?} in\n{}", faults.join("\n"));
    }
    assert_eq!(faults.len(), wanted.len(), "\n{}", faults.join("\n"));
}

pub fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

pub fn device(name: &str) -> DeviceId {
    DeviceId::new(name).unwrap()
}
