//! IPMI 2.0 over LAN (RMCP+, UDP 623).
//!
//! **Purpose.** Power, identity and hold of a host by its BMC, over authenticated and encrypted sessions.
//! **Non-goals.** No IPMI 1.5, no sensors, no console, no cycle or reset.
//!
//! # Invariants
//!
//! - One request is in flight a BMC. What is not the answer to it is ignored. Shown by
//!   `an_answer_is_taken_once_and_a_late_one_never_for_another_request`.
//! - An epoch is one session: as long as it answers, the BMC did not restart (S2). Shown by
//!   `a_bmc_that_hung_did_not_restart`.
//! - Nothing goes without authentication, integrity and encryption (cipher suites 17, and 3 where the
//!   settings allow it). Shown by `nothing_but_the_allowed_suites_is_spoken`.
//!
//! # Files
//!
//! From the wire inwards: `wire` and `crypto` (packets), `handshake` and `session` (protocol, without I/O),
//! `link`, `pace`, `attempt`, `live_session` (one socket), `session_opener` (opening), `line` (one conversation), `power`,
//! `hold`, `closing` (what is said in it), `driver`. `wire` and `crypto` are open to the simulated BMCs of
//! `drivers/fleet`, which speak the other side of it.

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
