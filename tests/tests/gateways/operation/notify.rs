//! What the service manager is told.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use picket_tests::{Gateway, Result, picketd};

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

/// systemd before 253 has no `Type=notify-reload`: the unit's command waits, and its exit code says what became of the settings.
#[tokio::test]
async fn whoever_asks_for_a_reload_is_told_when_it_has_ended_and_how() -> Result<()> {
    let (_bmc, _webhook, fleet) = one_node().await?;
    let mut gateway = Gateway::new(&fleet)?;
    let directory = gateway.directory().display().to_string();
    gateway.begin(&[("RUNTIME_DIRECTORY", &directory)]).await?;
    let pid = gateway.process()?.id().to_string();
    let unit = [("RUNTIME_DIRECTORY", directory.as_str()), ("MAINPID", pid.as_str())];
    let file = gateway.settings_file();
    let taken = picketd(&file, &["reload"], &unit).await?;
    assert_eq!(taken.code, 0, "{taken:?}");
    assert!(gateway.log().contains("the new settings hold"));
    let right = std::fs::read_to_string(&file).expect("read");
    std::fs::write(&file, format!("{right}\n[rules]\ncheck_every = \"soon\"\n")).expect("written");
    let refused = picketd(&file, &["reload"], &unit).await?;
    assert_eq!(refused.code, 78, "{refused:?}");
    assert!(
        refused.err.contains("the running ones stay") && refused.err.contains("check_every"),
        "{refused:?}"
    );
    let alone = picketd(&file, &["reload"], &[]).await?;
    assert!(alone.code == 73 && alone.err.contains("systemctl reload picketd"), "{alone:?}");
    assert!(gateway.stop().await?.success());
    Ok(())
}
