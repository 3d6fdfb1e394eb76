//! Machines that run on other machines (S22): a child's device of class parent asks the parent's own task.
//!
//! Its off opens or joins the parent's fence, with a hold of the child in the parent's record. It reads Off
//! only by a `ParentOff`, and the engine asks where the child runs after that. Its life is the proof: there
//! is no session that could be lost.
//! **Boundary.** The engine knows the nodes, and is seen from here as [`Nodes`] alone, which finds them by
//! what a cloud calls its machines. No driver but the engine's own has the class parent.
//!
//! # Invariants
//!
//! - A child's hold stands in its parent's record, placed by the event that opens or joins the parent's
//!   fence. A leader that dies between two steps leaves nothing that the next one does not find. Shown by
//!   `a_parent_s_task_that_begins_before_its_child_s_keeps_the_hold`.
//! - What was asked under one leadership is not done under another, and neither is what its asker does not
//!   wait for any more. Shown by `what_a_child_asked_of_its_parent_and_did_not_wait_for_is_not_done_later`.
//! - A parent has no parent of its own, so that none waits for itself.
//! - A breach of the parent voids what it proved of its children. Shown by
//!   `a_breach_of_the_parent_voids_what_it_proved_of_its_child`.

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
