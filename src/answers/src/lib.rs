//! What the far sides of a node answer, and what they are asked about, as plain values.
//!
//! **Purpose.** Decide over the answers of devices, releases and liveness sources without the means to ask
//! them: the traits that ask bring an async runtime, these values bring none. Each trait's crate has its
//! own under the old name.
//! **Non-goals.** No trait, no call, no clock. No rule: what follows from an answer is said in the rules.
//!
//! # Invariants
//!
//! - Nothing here opens a door: all of it may be made, compared and copied by anybody.
//! - An error says whether the effect did not happen or is unknown (S10).
//! - No value holds a secret (S18).

pub mod device;
pub mod liveness;
pub mod release;
