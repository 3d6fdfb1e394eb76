//! A simulated fleet: machines, the devices that see and cut their power, and all that goes wrong with
//! them.
//!
//! **Purpose.** A pure [`World`] (no runtime, no clock of its own: its caller says what time it is) and
//! [`SimDriver`], the driver on it within one process. What truly happened can be asked of the world
//! afterwards, apart from what any device said.
//! **Non-goals.** No wire format and no sockets (`drivers/fleet` puts BMCs on real ones in front of a
//! world); no policy. The driver is as good as an honest driver can be: it repeats reads and offs when no
//! answer comes, never an on, and tells a lost session from one it closed.
//!
//! # Invariants
//!
//! - The same seed and the same calls give the same history. Shown by
//!   `the_same_seed_gives_the_same_history`.
//! - Faults are data. Time in a world only grows. Shown by `acts_are_data_and_happen_when_they_are_due`.
//! - A packet of a closed session is never executed. Shown by `nothing_of_a_closed_session_is_executed`.

mod ask;
mod chaos;
mod children;
mod clock;
mod device;
mod driver;
mod events;
mod exchange;
mod fault;
mod kind;
mod link;
mod machine;
mod passage;
mod random;
mod session;
pub mod span;
mod volumes;
mod wire;
mod world;

pub use children::Moving;
pub use clock::SimClock;
pub use device::Received;
pub use driver::{SimDriver, SimOptions};
pub use fault::{Act, Fault, Login, Version};
pub use kind::SimKind;
pub use link::{Link, Packet};
pub use machine::{Edge, RestorePolicy};
pub use passage::{Passage, Way};
pub use random::Random;
pub use volumes::{Disk, Moved, Stuck, VolumeMove};
pub use wire::{Answer, Heard, HoldSettings, Request, Response, SessionId, Trouble, Verb};
pub use world::{SharedWorld, World};
