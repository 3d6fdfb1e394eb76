//! Who asked the BMCs something, and when, as their own host's network saw it (`tests/peers/calls.py`).

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::{Place, Process, eventually, peer_file};
use crate::error::{PeerError, Result};

/// A datagram that came to a BMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When.
    pub at: SystemTime,
    /// From which host.
    pub from: Ipv4Addr,
    /// To which BMC, by its port.
    pub port: u16,
}

/// A process of its own that listens on a host's interface, until it is dropped.
#[derive(Debug)]
pub struct Calls {
    process: Process,
    directory: TempDir,
}

impl Calls {
    /// Listens to what comes to these UDP ports of that host.
    pub async fn listen(place: &Place, ports: RangeInclusive<u16>) -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("picket-calls-")
            .tempdir()
            .map_err(PeerError::io("create a listener's directory"))?;
        let mut command = place.command("python3");
        command.arg(peer_file("calls.py")).arg("eth0");
        command
            .args([ports.start().to_string(), ports.end().to_string()])
            .arg(directory.path().join("calls"));
        let process = Process::start(command, &directory.path().join("calls.log"), "python3")?;
        let mut calls = Self { process, directory };
        let log = calls.directory.path().join("calls");
        eventually("the listener listens", Duration::from_secs(20), || {
            log.exists() || calls.process.ended().is_some()
        })
        .await?;
        calls.process.still_runs()?;
        Ok(calls)
    }

    /// All so far, in order.
    pub fn all(&self) -> Vec<Asked> {
        let text = std::fs::read_to_string(self.directory.path().join("calls")).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().filter_map(parse).collect()
    }
}

fn parse(line: &str) -> Option<Asked> {
    let mut words = line.split(' ');
    let at = SystemTime::UNIX_EPOCH + Duration::from_nanos(words.next()?.parse().ok()?);
    Some(Asked { at, from: words.next()?.parse().ok()?, port: words.next()?.parse().ok()? })
}
