//! When devices are asked next while On is waited for: each at its own pace, as long before the first Off of a fence.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::ids::DeviceId;
use picket_core::time::BootTime;

use crate::node::NodeTask;

/// When each of some devices is asked next. One that was never heard of is asked at once.
#[derive(Debug)]
pub(super) struct Rounds {
    /// How soon what is a machine's own is asked again, at most.
    pace: Duration,
    next: BTreeMap<DeviceId, BootTime>,
}

impl Rounds {
    pub(super) fn new(pace: Duration) -> Self {
        Self { pace, next: BTreeMap::new() }
    }

    /// It was asked, and heard by `now`, if it `answers`.
    pub(super) fn heard(&mut self, task: &NodeTask, device: &DeviceId, answers: bool, now: BootTime) {
        let next = now + task.asked_again(device, answers, self.pace);
        self.next.insert(device.clone(), next);
    }

    fn at(&self, device: &DeviceId) -> BootTime {
        self.next.get(device).copied().unwrap_or_default()
    }

    /// When the first of these is to be asked; `None`: there are none.
    pub(super) fn first<'d>(&self, devices: impl IntoIterator<Item = &'d DeviceId>) -> Option<BootTime> {
        devices.into_iter().map(|device| self.at(device)).min()
    }

    /// Those of them that are to be asked now.
    pub(super) fn due<'d>(
        &self,
        devices: impl IntoIterator<Item = &'d DeviceId>,
        now: BootTime,
    ) -> Vec<DeviceId> {
        devices.into_iter().filter(|device| self.at(device) <= now).cloned().collect()
    }
}

impl NodeTask {
    /// How soon the device is asked, or told, again: a provider's interface not faster than it is polled, anything else after `pace`.
    pub(super) fn asked_again(&self, device: &DeviceId, answers: bool, pace: Duration) -> Duration {
        let of_fence = self.record().fence.as_ref().and_then(|fence| fence.topology.device(device));
        match of_fence.or_else(|| self.plan.topology.device(device)) {
            Some(spec) if spec.is_cloud() => spec.asked_again(answers, pace).max(pace),
            _ => pace,
        }
    }
}
