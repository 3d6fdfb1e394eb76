//! Instances of EC2, as moto has it: fenced by the gateway, and by the driver alone where many are told at once. The driver is held to
//! the conformance suite in `tests/tests/devices/conformance`.

mod batch;
mod crash;
mod credentials;
mod ending;
mod fencing;
mod late;
mod owners;
mod pair;
mod racing;
mod releasing;
mod scene;
mod shipped;
mod spot;
mod stuck;
mod wrong;
