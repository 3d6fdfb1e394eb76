//! The rules of fencing, and nothing else.
//!
//! **Purpose.** Decide when a node is proven off, what may be sent next, and what must be stored before it
//! is sent.
//! **Non-goals.** No I/O, no clock, no async runtime: time, stores and electors are passed in.
//!
//! # Invariants
//!
//! - The values that open the doors that kill are made in this crate alone, each in one function, after the
//!   check that it stands for. They are [`Saved`](step::Saved), [`Leadership`](election::Leadership),
//!   [`ConfirmedOff`](confirm::ConfirmedOff), [`ReleasePermit`](ground::ReleasePermit),
//!   [`SeenOff`](receipt::SeenOff), [`ParentOff`](parent::ParentOff) and the orders of [`order`]. Shown by
//!   `nobody_else_makes_what_opens_a_door`.
//! - These values are not `Clone` and cannot be deserialized, so they die with the process (S4).

pub mod budget;
pub mod cluster_node;
pub mod confirm;
pub mod device;
pub mod election;
pub mod event;
pub mod gate;
pub mod ground;
pub mod groups;
pub mod hostlist;
pub mod ids;
pub mod ledger;
pub mod machine;
pub mod near;
pub mod order;
pub mod outcome;
pub mod parent;
pub mod power;
pub mod receipt;
pub mod record;
pub mod restore;
pub mod roles;
pub mod rules;
pub mod step;
pub mod store;
pub mod target;
pub mod time;
pub mod topology;

// The tests inside and beside this crate share their fixtures, which name it from outside.
#[cfg(test)]
extern crate self as picket_core;
#[cfg(test)]
mod model;
#[cfg(test)]
#[path = "../tests/support/mod.rs"]
mod support;
