//! What is otherwise at a provider's interface.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use picket_config::NodeSettings;
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
