//! A machine with a true power state, devices that speak of it well or badly, and a caller who feeds the judge as the
//! engine does: identity and hold, a look, the off, readings; one call in flight a device.
//!
//! What "What remains" of the safety page names is left out: a foreign power cycle begins before the first look, a BMC
//! restarts within the fence, and one that lies without a restart is not alone.

mod stage;
mod story;
mod world;

pub use stage::live;
pub use story::{Ending, Fate, Levels, Luck, Restart, Story};

/// Milliseconds since the fence was opened.
pub type Time = u64;

/// When the fence was opened, on the boot-time clock.
const START: Time = 1_000_000;
/// How long a call may take.
const CALL: Time = 5_000;
/// How long a level is tried.
const SHARE: Time = 60_000;
/// After this the caller gives up.
pub const END: Time = 240_000;

/// The longest late on stands in the ledger.
pub const ON_LIFE: Time = 20_000;
