//! An instance of a cloud, as a device.

use std::time::Duration;

use picket_core::device::{DeviceClass, Grade, MaxInFlight};
use picket_core::power::Epoch;
use picket_core::time::BootTime;
use picket_driver::Traits;

/// One call, unless the settings say otherwise (safety.md, Defaults: cloud).
pub const CALL: Duration = Duration::from_secs(15);
/// A cloud has one epoch: the instance's id, which is what every question names.
pub const EPOCH: Epoch = Epoch::FIRST;

/// Of the instance that is called so, whose commands may be taken for so long (S8).
pub fn traits(endpoint: String, life: Duration) -> Traits {
    Traits {
        class: DeviceClass::Host,
        grade: Grade::Hypervisor,
        has_epochs: true,
        max_in_flight: MaxInFlight { off: Some(life), on: Some(life) },
        call: CALL,
        endpoint,
    }
}

/// The findings of one look at an instance.
#[derive(Debug)]
pub struct Findings<Instance> {
    /// `Err`: the cloud says that there is none, in its words.
    pub found: Result<Instance, String>,
    /// When it was asked.
    pub asked_at: BootTime,
    /// When it answered.
    pub answered_at: BootTime,
}
