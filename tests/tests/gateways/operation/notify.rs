//! What the service manager is told.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use picket_tests::{Gateway, Result};

use crate::operation::{one_node, reload};

/// The next message with that word in it.
fn heard(manager: &UnixDatagram, word: &str) -> String {
    let mut buffer = [0; 4_096];
    loop {
        let length = manager.recv(&mut buffer).unwrap_or_else(|error| panic!("{word} was not told: {error}"));
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        if text.lines().any(|line| line.starts_with(word)) {
            return text;
        }
    }
}

#[tokio::test]
async fn it_tells_when_it_is_ready_reloads_lives_and_stops() -> Result<()> {
    let (_bmc, _webhook, fleet) = one_node().await?;
    let mut gateway = Gateway::new(&fleet)?;
    let path = gateway.directory().join("notify.sock");
    let manager = UnixDatagram::bind(&path).expect("bound");
    manager.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
    let name = path.display().to_string();
    gateway.begin(&[("NOTIFY_SOCKET", &name), ("WATCHDOG_USEC", "200000")]).await?;
    heard(&manager, "READY=1");
    heard(&manager, "WATCHDOG=1");
    heard(&manager, "WATCHDOG=1");
    reload(&mut gateway).await;
    let reloading = heard(&manager, "RELOADING=1");
    let since = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC=")).expect("since when");
    assert!(since.parse::<u64>().expect("a number") > 0);
    heard(&manager, "READY=1");
    assert!(gateway.stop().await?.success());
    heard(&manager, "STOPPING=1");
    Ok(())
}
