//! Simulated BMCs on real sockets: a fleet to rehearse with.
//!
//! **Purpose.** The pure worlds of `drivers/sim` behind the protocols that real BMCs speak, thousands of
//! them in one process. Other people's clients take them for BMCs, and all that can go wrong with one goes
//! wrong when it is told to.
//! **Non-goals.** No safety: ids and random numbers follow from a seed, passwords guard nothing. Nothing is
//! served but on loopback addresses. No sensors, no event log, no console. It is no driver, and no part of
//! the daemon: a crate of its own keeps what only pretends out of the program that switches real machines.
//!
//! # Invariants
//!
//! - Each machine has a world of its own, so that none waits for another.
//! - What a client is told comes from the world. What truly happened is asked of the world, never of a
//!   protocol.
//! - Memory is bounded for each BMC: sessions, packets under way, history. Shown by
//!   `a_world_that_goes_on_for_days_keeps_a_bounded_history`.

mod account;
mod arguments;
mod bmc;
mod fleet;
mod ipmi;
mod pki;
mod redfish;
mod settings;
mod socket_limit;
#[cfg(test)]
mod tests;

pub use account::{Account, Role};
pub use arguments::Arguments;
pub use bmc::{Bmc, BmcOptions, RedfishPlace};
pub use fleet::{Fleet, StartError};
pub use ipmi::{IpmiBmc, IpmiOptions};
pub use pki::{Authority, PkiError};
pub use redfish::{RedfishBmc, RedfishOptions};
pub use settings::{Event, Settings, SettingsError, What};
pub use socket_limit::{SocketLimitError, room_for};
