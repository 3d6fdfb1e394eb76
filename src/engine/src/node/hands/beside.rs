//! What a fence changed beside its machine.

use picket_core::ids::DeviceId;
use picket_driver::HoldFound;

use super::Hands;
use super::turns::bounded;

impl Hands {
    /// What stays changed beside the machine since the device's hold found that, in words; `None`: nothing.
    pub(in crate::node) async fn left_beside(&self, device: &DeviceId, found: &HoldFound) -> Option<String> {
        let time = self.time(device);
        let asking = self.ask(device, "what is left changed");
        let result = match self.ready(device, time).await {
            Ok((driver, call, _turn)) => bounded(time, driver.left_beside(found, &call)).await,
            Err(error) => Err(error),
        };
        asking.answered(&result, |left| left.clone().unwrap_or_else(|| "nothing".to_owned()));
        match result {
            Ok(left) => left,
            Err(error) => Some(format!("what {device} changed beside the machine is not told: {error}")),
        }
    }
}
