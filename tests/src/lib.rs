//! End to end, against peers that others wrote.
//!
//! **Purpose.** Start, hurt and watch the peers of `tests/peers` — BMCs, machines with a heartbeat, a
//! network that loses — and the real daemon before them, for the tests in `tests/tests`, the demonstration
//! and the benches.
//! **Non-goals.** No assertions: a test says what must hold. Nothing of Picket's own code judges here: the
//! observer reads disks and logs only.
//!
//! # Invariants
//!
//! - No root but for Kubernetes, no port below 1024 but in a network of its own, nothing but loopback and
//!   network namespaces of our own.
//! - Each peer has an address and a directory of its own, so that tests run side by side.
//! - What was started ends with its value, and at the latest with the test run, however that ends.
//! - Something that a test needs and cannot have is an error that says what to install, never a skipped
//!   test.

mod controller;
mod error;
mod fleet;
mod gateway;
mod gateways;
mod hooks;
mod once;
pub mod peers;
mod programs;
mod receiver;
mod seed;
mod told;
mod webhook;

pub use controller::{Controller, HOLDER};
pub use error::{PeerError, Result};
pub use fleet::{Bmc, Fleet, PASSWORD_VARIABLE};
pub use gateway::{Client, Daemon, Gateway, Said};
pub use gateways::{Gateways, one_of_several};
pub use hooks::{SelfHarm, When};
pub use once::{fence_picket, pasted, picket, picketd};
pub use programs::program;
pub use receiver::ExampleReceiver;
pub use seed::{Dice, soak};
pub use told::{Told, proven_at};
pub use webhook::{Answer, Hook, Webhook};
