//! The driver trait: one way to see or cut a node's power.
//!
//! **Purpose.** Three verbs and three courtesies, all bounded by the caller's deadline, none of them cached.
//! **Non-goals.** No policy: no retries over calls, no judgement whether a node is off, no state machine.
//! **Invariants.** Only absolute verbs, off and on (S9). Only an explicit, authenticated answer is `On` or `Off` (S1).
//! An error says whether the effect did not happen or is unknown (S10).
//! Before every control packet the driver asks [`Call::may_send`], also after a login (S6).

pub mod call;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod driver;
pub mod effort;
pub mod pace;
pub mod registry;
pub mod secret;
pub mod source;
pub mod table;
pub mod volumes;

pub use call::{Call, Witness};
pub use driver::{PowerDriver, Shared, Traits};
pub use effort::Effort;
pub use picket_answers::device::{
    Accepted, DriverError, Effect, ErrorKind, HoldFound, HoldReport, Identified, Refusal,
};
pub use registry::{Context, DriverKind, Random, SettingFault};
pub use secret::Secret;
pub use volumes::{Standing, Volume, VolumeAt, Volumes};
