//! What systemd is told (sd_notify(3)): ready, reloading, stopping, alive.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The way to the service manager; without one nothing is told.
#[derive(Debug, Default)]
pub(crate) struct Notify {
    manager: Option<(UnixDatagram, SocketAddr)>,
    /// How often a sign of life is wanted.
    watchdog: Option<Duration>,
}

impl Notify {
    /// From `NOTIFY_SOCKET` and `WATCHDOG_USEC`, as the service manager sets them.
    pub(crate) fn of_environment() -> Self {
        let Some(name) = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return Self::default();
        };
        let address = match name.as_bytes() {
            [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
            path => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path)),
        };
        let manager = match address.and_then(|address| Ok((UnixDatagram::unbound()?, address))) {
            Ok(manager) => Some(manager),
            Err(error) => {
                tracing::warn!(%error, "NOTIFY_SOCKET cannot be used: the service manager is told nothing");
                None
            }
        };
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        // Meant for another process of the unit, it is not ours.
        let ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog =
            number("WATCHDOG_USEC").filter(|micros| ours && *micros > 0).map(Duration::from_micros);
        Self { manager, watchdog }
    }

    fn tell(&self, words: &str) {
        let Some((socket, address)) = &self.manager else { return };
        if let Err(error) = socket.send_to_addr(words.as_bytes(), address) {
            tracing::warn!(%error, "the service manager could not be told");
        }
    }

    /// It serves, and its settings hold.
    pub(crate) fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={status}"));
    }

    /// It reads its settings anew; [`Notify::ready`] ends that, whether they were taken or not.
    pub(crate) fn reloading(&self) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}\nSTATUS=reading the settings anew"));
    }

    /// It ends.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=letting end what was sent");
    }

    /// Signs of life, twice as often as they are wanted, for as long as it is polled.
    pub(crate) async fn keep_alive(&self) {
        let Some(every) = self.watchdog.filter(|_| self.manager.is_some()) else {
            return std::future::pending().await;
        };
        loop {
            self.tell("WATCHDOG=1");
            tokio::time::sleep(every / 2).await;
        }
    }
}
