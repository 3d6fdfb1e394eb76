//! Waiting for what must come, without guessing how long.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep, timeout};

use super::Process;
use crate::error::{PeerError, Result};

/// Get Channel Authentication Capabilities for the present channel, outside of a session (IPMI 2.0, 22.13): the one
/// question that every BMC answers to anybody, and only once its management controller works.
const ANYBODY_THERE: [u8; 23] = [
    0x06, 0x00, 0xff, 0x07, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0x09, 0x20, 0x18, 0xc8, 0x81, 0x00, 0x38, 0x8e,
    0x04, 0xb5,
];

/// After so long somebody hangs who was to be ready, to answer or to end.
pub const HANGS: Duration = Duration::from_secs(300);

/// Whoever waits says how long that takes at most where a machine has nothing else to do; beside all the other tests it may take so many times as
/// long. It is a measure of nothing: what is slow is seen in benchmarks.
const BUSY: u32 = 3;

/// Waits until the BMC at `address` answers. If `process` ends meanwhile that is the error.
pub async fn wait_for_bmc(address: SocketAddr, process: &mut Process) -> Result<()> {
    let socket = UdpSocket::bind((address.ip(), 0)).await.map_err(PeerError::io("bind a client's socket"))?;
    socket.connect(address).await.map_err(PeerError::io("connect a client's socket"))?;
    let deadline = Instant::now() + HANGS;
    let mut answer = [0; 256];
    while Instant::now() < deadline {
        process.still_runs()?;
        // Nobody there yet: the kernel refuses at once, and the send after a refusal reports it.
        let _ = socket.send(&ANYBODY_THERE).await;
        match timeout(Duration::from_millis(100), socket.recv(&mut answer)).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(_refused)) => sleep(Duration::from_millis(5)).await,
            Err(_elapsed) => {}
        }
    }
    Err(PeerError::TimedOut {
        what: format!("a BMC answers at {address}"),
        within: HANGS,
        seen: process.log(),
    })
}

/// Asks `seen` until it says so, at most `within` of a machine that has nothing else to do; `what` is for the message.
pub async fn eventually(what: &str, within: Duration, mut seen: impl FnMut() -> bool) -> Result<()> {
    let within = within * BUSY;
    let deadline = Instant::now() + within;
    while !seen() {
        if Instant::now() >= deadline {
            return Err(PeerError::TimedOut { what: what.to_owned(), within, seen: String::new() });
        }
        sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// The same of what has to be asked of somebody else, who is not asked without a pause: that would take the processor from him.
pub async fn until(what: &str, within: Duration, mut seen: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let within = within * BUSY;
    let asked = async {
        while !seen().await? {
            sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    };
    let elapsed = |_| Err(PeerError::TimedOut { what: what.to_owned(), within, seen: String::new() });
    timeout(within, asked).await.unwrap_or_else(elapsed)
}
