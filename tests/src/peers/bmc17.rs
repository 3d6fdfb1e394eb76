//! A second BMC, by other people: pyghmi's, with cipher suites 3 and 17 (`tests/peers/bmc17.py`).

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;

use super::{ADMIN, Knob, PASSWORD, Process, Truth, fresh_address, knob, peer_file, python, wait_for_bmc};
use crate::error::{PeerError, Result};

const KNOBS: &[&str] = &[
    "slow",
    "busy",
    "drop",
    "off_delay",
    "ignore_off",
    "lie_off",
    "fail",
    "refuse_again",
    "no_sessions",
    "drop_rakp4",
    "privilege",
];

/// A running `bmc17.py` with the account [`ADMIN`]; it starts switched on. Without holds, without a watchdog.
#[derive(Debug)]
pub struct Bmc17 {
    address: SocketAddr,
    guid: uuid::Uuid,
    suites: String,
    process: Process,
    directory: TempDir,
}

impl Bmc17 {
    /// One that speaks suites 3 and 17.
    pub async fn start() -> Result<Self> {
        Self::with_suites("3,17").await
    }

    /// One that speaks these suites, of 3 and 17.
    pub async fn with_suites(suites: &str) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("picket-bmc17-")
            .tempdir()
            .map_err(PeerError::io("create a BMC's directory"))?;
        let (address, guid) = (fresh_address(), uuid::Uuid::now_v7());
        knob::write_whole(&directory.path().join("power"), "1")?;
        let process = spawn(address, guid, suites, directory.path())?;
        let mut bmc = Self { address, guid, suites: suites.to_owned(), process, directory };
        wait_for_bmc(address, &mut bmc.process).await?;
        Ok(bmc)
    }

    /// Where it listens (UDP).
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its system GUID as 32 hexadecimal digits, as RAKP message 2 has it; Get System GUID swaps its first three fields.
    pub fn guid(&self) -> String {
        self.guid.simple().to_string()
    }

    /// Its process, to freeze, thaw or kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Starts it again after it was killed, at the same address; its power is as it was.
    pub async fn start_again(&mut self) -> Result<()> {
        self.process.kill();
        self.process = spawn(self.address, self.guid, &self.suites, self.directory.path())?;
        wait_for_bmc(self.address, &mut self.process).await
    }

    /// Sets a fault.
    pub fn set(&self, knob: Knob) -> Result<()> {
        knob::set(self.directory.path(), "bmc17.py", KNOBS, knob)
    }

    /// Takes a fault away.
    pub fn clear(&self, knob: Knob) -> Result<()> {
        knob::clear(self.directory.path(), knob)
    }

    /// Whether what it powers is on in truth, whatever it says.
    pub fn is_on(&self) -> Result<bool> {
        let path = self.directory.path().join("power");
        let text =
            std::fs::read_to_string(&path).map_err(PeerError::io(format!("read {}", path.display())))?;
        Ok(text.trim() == "1")
    }

    /// The same for whoever outlives this borrow. A state file that cannot be read counts as on.
    pub fn truth(&self) -> Truth {
        let path = self.directory.path().join("power");
        Arc::new(move || std::fs::read_to_string(&path).map_or(true, |text| text.trim() == "1"))
    }

    /// Somebody else's hand on the power button.
    pub fn press(&self, on: bool) -> Result<()> {
        knob::write_whole(&self.directory.path().join("power"), if on { "1" } else { "0" })
    }

    /// What it carried out, a line each: `session WHO`, `closed WHO`, `off`, `on`, `off ignored`, `off lied`, `off refused`.
    pub fn commands(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.directory.path().join("commands.log")).unwrap_or_default();
        text.lines().filter_map(|line| line.split_once(' ')).map(|(_, what)| what.to_owned()).collect()
    }
}

fn spawn(address: SocketAddr, guid: uuid::Uuid, suites: &str, directory: &Path) -> Result<Process> {
    let mut command = Command::new(python::interpreter()?);
    command.arg(peer_file("bmc17.py"));
    command.args([address.ip().to_string(), address.port().to_string()]).arg(directory);
    command.args(["--suites", suites, "--guid", &guid.to_string(), "--user", ADMIN, "--password", PASSWORD]);
    Process::start(command, &directory.join("bmc17.log"), "python3-venv")
}
