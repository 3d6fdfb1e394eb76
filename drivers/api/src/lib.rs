//! The driver trait: one way to see or cut a node's power.
//!
//! **Purpose.** Three verbs and three courtesies, all bounded by the caller's deadline, none of them
//! cached.
//! **Non-goals.** No policy: no retries over calls, no judgement whether a node is off, no state machine.
//! **Boundary.** A driver sees core's orders and times, and nothing of the engine.
//!
//! # Invariants
//!
//! - Only absolute verbs, off and on (S9).
//! - Only an explicit, authenticated answer is `On` or `Off` (S1). Shown by
//!   `each_wrong_driver_is_seen_by_the_check_that_is_there_for_it`.
//! - An error says whether the effect did not happen or is unknown (S10). Shown by
//!   `silence_ends_in_time_and_says_what_it_means`.
//! - Before every control packet the driver asks [`Call::may_send`], also after a login (S6). Shown by
//!   `without_a_permit_nothing_is_sent`,
//!   `leadership_that_ends_between_two_copies_leaves_the_effect_unknown`.
//! - What goes to a cloud asks once more when its connection stands, right before its first byte
//!   ([`Call::may_leave`]). Shown by `without_the_word_nothing_goes_on_the_connection`.
//! - No session is opened for an on. Shown by `no_session_is_opened_for_an_on`.

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
