//! The driver `aws`: instances of EC2 as devices, and their volumes.
//!
//! **Purpose.** Off by `StopInstances`, by force and without asking the instance's system, proven by `DescribeInstances`; on, a tag
//! that keeps off; volumes by `DetachVolume`, and seen to be free by both the instance and the volume. Many at once in one request.
//! **Non-goals.** No other service of AWS; replacing machines is an auto-scaling group's matter, or the operator's.
//! **Invariants.** Only `stopped` without memory kept, and `terminated`, both seen with that id, are off (S1). A command goes once, signed
//! with AWS's own time from an answer that came before its order, so that AWS bounds its life (S8). The SDK repeats nothing: its
//! requests are sent by `cloud/wire` alone. Everything names the instance by its id.
//! A program of a profile (`credential_process`) is run by the keeper of `picket_reach` alone.

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
