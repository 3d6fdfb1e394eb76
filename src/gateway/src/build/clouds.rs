//! What is otherwise at a provider's interface.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use picket_config::{Fault, NodeSettings};
use picket_core::device::Grade;
use picket_core::ids::DeviceId;
use picket_driver::PowerDriver;

/// Between the first two tries of what failed there, where the device has no `retry`: what a provider refuses it refuses a moment
/// later as well, and counts.
const RETRY: Duration = Duration::from_secs(1);

/// The first pauses of the devices that have one of their own.
pub(super) fn retries(
    node: &NodeSettings,
    drivers: &BTreeMap<DeviceId, Arc<dyn PowerDriver>>,
) -> BTreeMap<DeviceId, Duration> {
    let pause = |id: &DeviceId, own: Option<Duration>| {
        let cloud = drivers.get(id).is_some_and(|driver| driver.traits().grade == Grade::Hypervisor);
        own.or(cloud.then_some(RETRY))
    };
    node.devices.iter().filter_map(|(id, device)| Some((id.clone(), pause(id, device.retry)?))).collect()
}

/// The devices of a node that are another machine than its `provider_id` says. A fence asked for by that id would switch them off.
pub(super) fn misnamed(
    node: &NodeSettings,
    drivers: &BTreeMap<DeviceId, Arc<dyn PowerDriver>>,
) -> Vec<Fault> {
    let Some(provider_id) = &node.provider_id else { return Vec::new() };
    let others = drivers.iter().filter(|(_, driver)| driver.is_provided_as(provider_id) == Some(false));
    let told = others.map(|(id, driver)| {
        let is = driver.names().serial.map(|serial| format!(" ({serial})")).unwrap_or_default();
        node.fault(
            "provider_id",
            &format!("{provider_id:?} is another machine than device {id} switches{is}"),
        )
    });
    told.collect()
}
