//! `picketd`: the wiring of all rooms, and the list of drivers.
//!
//! **Purpose.** Settings in, a running gateway out; every fault of the settings at once.
//! **Non-goals.** No rule and no protocol of its own.
//!
//! # Invariants
//!
//! - Nothing is sent to a device before the store is open and leadership won.
//! - The shipped `main` passes no hooks.

mod access_settings;
mod arguments;
mod backup;
mod build;
mod drivers;
mod failure;
mod journal;
mod log;
mod measured;
mod needs;
mod notify;
mod observe;
mod parent;
mod print;
mod probe;
mod reload;
mod reloads;
mod run;
mod socket_limit;
mod sources;
mod store_choice;
mod units;

pub use arguments::{Arguments, Output, Task};
pub use drivers::Trial;
pub use run::{main, main_on_trial};
