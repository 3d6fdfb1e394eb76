//! A BMC by pyghmi, with cipher suites 3 and 17 (`tests/peers/bmc17.py`), as a process of the test.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use crate::address::fresh_address;
use crate::bmc::{PASSWORD, USER, wait_until_it_answers};

/// A running `bmc17.py`; ends with its value.
pub struct Pyghmi {
    address: SocketAddr,
    process: Child,
    directory: TempDir,
}

/// `PICKET_TEST_PYTHON`, else the one that `cargo xtask test` makes.
fn python() -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let made = cache.unwrap_or_default().join("picket/venv/bin/python");
    let python = std::env::var_os("PICKET_TEST_PYTHON").map_or(made, PathBuf::from);
    assert!(
        python.exists(),
        "a Python with pyghmi is needed, and {} is not there: PICKET_TEST_PYTHON may name another",
        python.display()
    );
    python
}

fn spawn(address: SocketAddr, suites: &str, (user, password): (&str, &str), directory: &Path) -> Child {
    let log = std::fs::File::create(directory.join("bmc17.log")).expect("a log");
    Command::new(python())
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/peers/bmc17.py"))
        .args([address.ip().to_string(), address.port().to_string()])
        .arg(directory)
        .args(["--suites", suites, "--user", user, "--password", password])
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("the log twice"))
        .stderr(log)
        .spawn()
        .expect("Python can be started")
}

impl Pyghmi {
    pub fn start(suites: &str) -> Self {
        Self::with_login(suites, (USER, PASSWORD))
    }

    pub fn with_login(suites: &str, login: (&str, &str)) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let address = fresh_address();
        std::fs::write(directory.path().join("power"), "1").expect("a state");
        let process = spawn(address, suites, login, directory.path());
        let bmc = Self { address, process, directory };
        wait_until_it_answers(address, &bmc.file("bmc17.log"));
        bmc
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Sets a fault; those that it knows stand at its head.
    pub fn set(&self, knob: &str, value: &str) {
        // Whole or not at all: it may be reading.
        let fresh = self.file("knob");
        std::fs::write(&fresh, value).expect("a knob");
        std::fs::rename(fresh, self.file(knob)).expect("a knob");
    }

    pub fn clear(&self, knob: &str) {
        let _ = std::fs::remove_file(self.file(knob));
    }

    pub fn is_on(&self) -> bool {
        std::fs::read_to_string(self.file("power")).expect("a state").trim() == "1"
    }

    /// What it carried out, a line each.
    pub fn commands(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.file("commands.log")).unwrap_or_default();
        log.lines().filter_map(|line| line.split_once(' ')).map(|(_, what)| what.to_owned()).collect()
    }

    /// When it did that first.
    pub fn did_at(&self, what: &str) -> Option<SystemTime> {
        let log = std::fs::read_to_string(self.file("commands.log")).unwrap_or_default();
        let (at, _) =
            log.lines().filter_map(|line| line.split_once(' ')).find(|(_, did)| did.starts_with(what))?;
        Some(UNIX_EPOCH + Duration::from_secs_f64(at.parse().ok()?))
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Pyghmi {
    fn drop(&mut self) {
        self.kill();
    }
}
