//! The driver `gcp`: instances of Compute Engine as devices, and their disks.
//!
//! **Purpose.** Off by `instances.stop` without a graceful shutdown, proven by the instance's own status and by what is under way at it;
//! on; disks by `instances.detachDisk`, and seen to be free by both the instance and the disk. Many are asked of in one request.
//! **Non-goals.** No other service of Google's; replacing machines is an instance group's matter, or the operator's.
//! **Invariants.** Only `TERMINATED`, seen with the numeric id and with nothing under way that could start it, is off (S1); that an
//! operation is done proves nothing. A command goes once, with a token whose life stands in the ledger (S8). Every path has the
//! numeric id, so that an instance that took the name over is never touched.
//!
//! Google's own crates were tried and are not used. `google-cloud-compute-v1` has an HTTP client of its own, which cannot be given
//! another: what it keeps open, repeats or follows is its matter, and nothing can be asked right before a packet leaves (S6).
//! `google-cloud-auth` does not tell when a token ends, which is what bounds a command (S8), gets new ones in the background, and goes
//! through whatever proxy the environment names. So the few requests that are needed are sent by `picket_reach::web`.

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
