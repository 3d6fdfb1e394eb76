//! Instances of Compute Engine, as the peer of the tests has it, which other people's clients must agree with first: fenced by the gateway, and
//! by the driver alone. The driver is held to the conformance suite in `tests/tests/devices/conformance`.

mod asking;
mod clients;
mod driven;
mod fencing;
mod late;
mod law;
mod mended;
mod racing;
mod releasing;
mod replaced;
mod scene;
mod stuck;
mod world;
mod wrong;
