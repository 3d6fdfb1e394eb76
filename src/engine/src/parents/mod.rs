//! Machines that run on other machines (S22): a child's device of class parent asks the parent's own task.
//!
//! **Invariants.** A child's hold stands in its parent's record, placed by the event that opens or joins the parent's fence: a
//! leader that dies between two steps leaves nothing that the next one does not find. What was asked under one leadership is
//! not done under another. A parent has no parent of its own, so that none waits for itself.
//! **Boundary.** The engine knows the nodes, and is seen from here as [`Nodes`] alone, which finds them by what a cloud calls its machines.

mod asks;
mod copies;
mod driver;
mod nodes;
mod proof;
mod refusals;

pub(crate) use asks::{ParentAnswer, ParentAsk, ParentSeen};
pub(crate) use copies::{Copies, CopyHosts, Looker};
pub use driver::{ParentDriver, ParentSettings};
pub use nodes::{CLOUD_LABEL, LABEL, Parents, called};
pub(crate) use nodes::{CopyHost, NOT_SEEN, Nodes};
