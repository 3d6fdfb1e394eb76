//! The driver `gcp`: instances of Compute Engine as devices, and their disks.
//!
//! **Purpose.** Off by `instances.stop` without a graceful shutdown, proven by the instance's own status
//! and by what is under way at it; on; disks by `instances.detachDisk`, and seen to be free by both the
//! instance and the disk. Many are asked of in one request.
//! **Non-goals.** No other service of Google's; replacing machines is an instance group's matter, or the
//! operator's. No crate of Google's: `docs/gcp-off.md` says why. The requests are sent by
//! `picket_reach::web`.
//!
//! # Invariants
//!
//! - Only `TERMINATED` is off, seen with the numeric id (S1). Our own stop has ended without an error, and
//!   nothing is under way that could start the instance. That an operation is done proves nothing. Shown by
//!   `only_terminated_with_nothing_under_way_that_may_start_it_is_off`,
//!   `off_is_told_where_it_is_stopped_still_once_nothing_was_under_way`.
//! - A command goes once, with a token that was there when the store said its last word, whose whole life
//!   stands in the ledger (S8). Shown by
//!   `an_on_goes_with_a_token_from_before_the_store_s_last_word_or_not_at_all`.
//! - Every path has the numeric id, so that an instance that took the name over is never touched (S13).
//!   Shown by `an_instance_that_took_the_name_over_is_seen_and_never_touched`.
//! - An instance is the node's where it has the number and the name of the settings. Shown by
//!   `an_instance_that_is_called_otherwise_is_neither_touched_nor_believed`.

mod cloud;
mod command_history;
mod driver;
mod instance;
mod kind;
mod operation;
mod power;
mod remarks;
mod requests;
mod settings;
#[cfg(test)]
mod tests;
mod volumes;

pub use kind::GcpKind;
