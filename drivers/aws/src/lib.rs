//! The driver `aws`: instances of EC2 as devices, and their volumes.
//!
//! **Purpose.** Off by `StopInstances`, by force and without asking the instance's system, proven by
//! `DescribeInstances`; on, a tag that keeps off; volumes by `DetachVolume`, and seen to be free by both
//! the instance and the volume. Many at once in one request.
//! **Non-goals.** No other service of AWS; replacing machines is an auto-scaling group's matter, or the
//! operator's.
//!
//! # Invariants
//!
//! - Only `stopped` without memory kept, and `terminated`, both seen with that id, are off (S1). Shown by
//!   `every_state_of_an_instance_is_on_off_or_unknown`, `what_was_hibernated_is_not_off`.
//! - A command goes once, signed with AWS's own time, so that AWS bounds its life (S8). An on and a detach
//!   bear the time of an answer from before the store's last word (`OnOrder::checked_at`,
//!   `ReleasePermit::checked_at`). Shown by
//!   `an_on_that_was_kept_between_its_permit_and_its_packet_is_not_taken`,
//!   `no_on_goes_without_a_reading_of_just_now`.
//! - The SDK signs and sends nothing: its requests are sent by `cloud/wire` alone. What an action is called
//!   in the SDK's words stands in `cloud/actions` alone.
//! - Everything names the instance by its id (S13).
//! - A program of a profile (`credential_process`) is run by the keeper of `picket_reach` alone.

mod cloud;
mod driver;
mod hold;
mod instance;
mod kind;
mod power;
mod remarks;
mod settings;
mod spot;
mod terminate;
#[cfg(test)]
mod tests;
mod volumes;

pub use kind::AwsKind;
