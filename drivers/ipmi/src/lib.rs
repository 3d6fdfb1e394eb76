//! IPMI 2.0 over LAN (RMCP+, UDP 623).
//!
//! **Purpose.** Power, identity and hold of a host by its BMC, over authenticated and encrypted sessions.
//! **Non-goals.** No IPMI 1.5, no sensors, no console, no cycle or reset.
//! **Invariants.** One request in flight a BMC. An epoch is one session: as long as it answers, the BMC did not restart.
//! Nothing without authentication, integrity and encryption (cipher suites 17, and 3 where the settings allow it).
//! What is not the answer to the request in flight is ignored.
//!
//! From the wire inwards: `wire` and `crypto` (packets), `handshake` and `session` (protocol, without I/O), `link`,
//! `pace`, `attempt`, `live_session` (one socket), `session_opener` (opening), `line` (one conversation), `power`, `hold`, `closing` (what is said
//! in it), `driver`. `wire` and `crypto` are open to the simulated BMCs of `drivers/fleet`, which speak the other side of it.

mod attempt;
mod closing;
mod command;
pub mod crypto;
mod driver;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod handshake;
mod hold;
mod inquiry;
mod kind;
mod line;
mod link;
mod live_session;
mod oddities;
mod power;
mod quirks;
mod session;
mod session_opener;
mod settings;
mod suites;
pub mod wire;

use std::sync::Arc;

use picket_driver::DriverKind;

pub use driver::IpmiDriver;
pub use kind::IpmiKind;
pub use link::Packets;
pub use settings::Settings;

/// Fills a buffer with unpredictable bytes.
type Random = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// The kind `ipmi` of the settings.
pub fn kind() -> &'static dyn DriverKind {
    &IpmiKind
}
