//! The driver `openstack`: servers of Nova as devices, and their volumes.
//!
//! **Purpose.** Off by `os-stop`, proven by what Nova says of the server *and* of its compute host; on,
//! lock, whereabouts; volumes by Nova's attachments, and seen to be free by Cinder.
//! **Non-goals.** No other service of OpenStack; evacuating is an operator's matter, or Masakari's. No
//! client crate: `docs/openstack-tells.md` says why.
//!
//! # Invariants
//!
//! - Nova's states are its database's: where the compute host is not seen to be up, only our own stop's
//!   finished action proves (S1). Shown by
//!   `our_own_stop_decides_where_nothing_came_after_it_that_switches`.
//! - No stop and no detach is sent to a host that is down: the host would do it when it is back. Shown by
//!   `no_stop_is_sent_to_a_host_that_is_down`,
//!   `nothing_is_told_to_a_host_that_was_switched_off_whatever_nova_says_of_it`.
//! - A command goes once, with a token that was there when the store said its last word, whose life stands
//!   in the ledger (S8).
//! - Everything names the server by its id, so that another one of its name is never touched (S13).

mod actions;
mod cloud;
mod copies;
mod deleted;
mod detaches;
mod driver;
mod evacuations;
#[cfg(test)]
mod fake_nova;
mod hold;
mod kind;
mod late;
mod live;
mod locked;
mod moves;
mod placement;
mod power;
mod power_commands;
mod refusals;
mod remarks;
#[cfg(test)]
mod secrets;
mod server;
mod service;
mod settings;
mod volumes;
#[cfg(test)]
mod wrong_state;

pub use kind::OpenstackKind;
