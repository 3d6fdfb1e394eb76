//! A directory with settings and secrets, and what is said of them.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use picket_tests::{Said, picketd};
use tempfile::TempDir;

/// The password of every BMC here.
pub const PASSWORD: &str = "secret12";

/// Two nodes, each behind a BMC of its own, and a release.
pub const GOOD: &str = r#"[listen]
unix = "{home}/picket.sock"
[store]
path = "{home}/picket.redb"
[templates.rack]
levels = [["bmc"]]
releases = ["detach"]
[templates.rack.devices.bmc]
driver = "ipmi"
host = "127.0.0.{number}"
username = "operator"
password_file = "{home}/password"
[nodes."n[1-2]"]
template = "rack"
[releases.detach]
kind = "webhook"
url = "http://127.0.0.1:9/release"
"#;

/// The directory. In texts `{home}` stands for its path.
pub struct Home(TempDir);

impl Home {
    /// With these settings, and the password in a file that only its owner may read.
    pub fn with(text: &str) -> Self {
        let home = Self(tempfile::tempdir().expect("a directory"));
        home.secret("password", PASSWORD, 0o600);
        home.write("picket.toml", text);
        home
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file in it.
    pub fn write(&self, name: &str, text: &str) {
        let text = text.replace("{home}", &self.0.path().display().to_string());
        std::fs::write(self.path(name), text).expect("it can be written");
        self.mode(name, 0o644);
    }

    /// A file with a secret, of this mode.
    pub fn secret(&self, name: &str, text: &str, mode: u32) {
        std::fs::write(self.path(name), text).expect("it can be written");
        self.mode(name, mode);
    }

    /// Changes a file's mode.
    pub fn mode(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(mode)).expect("it is ours");
    }

    /// The settings file.
    pub fn settings(&self) -> PathBuf {
        self.path("picket.toml")
    }

    /// What `picketd` says of them, run with these arguments until it ends; the directory's name is taken out.
    pub async fn says(&self, arguments: &[&str]) -> Said {
        let said = picketd(&self.settings(), arguments, &[]).await.expect("it ends by itself");
        let short = |text: String| text.replace(&format!("{}/", self.0.path().display()), "");
        Said { code: said.code, out: short(said.out), err: short(said.err) }
    }
}
