//! What keeps a fence from its end by a device, as its check found it: such a device is not ready.

use std::sync::Arc;

use picket_core::device::{DeviceClass, DeviceSpec};
use picket_core::ground::LOOK_LIFE;
use picket_core::ids::DeviceId;
use picket_core::power::Power;

use super::NodeTask;

impl NodeTask {
    /// All of them, each with what ends it.
    pub(super) fn obstacles(&self, device: &DeviceId) -> Vec<String> {
        let mut all = self.plan.drivers.get(device).map(|driver| driver.obstacles()).unwrap_or_default();
        all.extend(self.unread(device));
        all.extend(self.answers_late(device));
        all.extend(self.too_slow(device));
        all.extend(self.bars_programs(device));
        all
    }

    /// An answer that is neither on nor off: no Off of it can be read. A parent's is read for the child, once that is kept off.
    fn unread(&self, device: &DeviceId) -> Option<String> {
        let live = self.live.devices.get(device).filter(|live| live.fault.is_none())?;
        let spec = self.plan.topology.device(device)?;
        let is_unread = spec.class != DeviceClass::Parent && matches!(live.power, Some((Power::Unknown, _)));
        let said = if live.said.is_empty() { "nothing of its power" } else { &live.said };
        is_unread.then(|| {
            format!(
                "it says {said}, which is neither on nor off: as long as that is so, no Off of it can be read"
            )
        })
    }

    /// A release needs a look that was asked for within [`LOOK_LIFE`] (S4): by one that answers later none is made.
    fn answers_late(&self, device: &DeviceId) -> Option<String> {
        let reading = self.live.devices.get(device)?.reading.as_ref()?;
        let took = reading.answered_at.since(reading.asked_at);
        (took > LOOK_LIFE).then(|| {
            format!(
                "its reading took {:.1} s, and a release needs one within {LOOK_LIFE:?}: a fence by it is proven, and lets nothing go",
                took.as_secs_f64()
            )
        })
    }

    /// What a release needs is read within [`LOOK_LIFE`] (S4): where a shared unit is too slow for that, no fence by it lets go.
    fn too_slow(&self, device: &DeviceId) -> Option<String> {
        let unit = self.plan.units.get(device)?;
        let at_unit =
            |spec: &&DeviceSpec| self.plan.units.get(&spec.id).is_some_and(|one| Arc::ptr_eq(one, unit));
        let levels = self.plan.topology.levels().iter();
        let level =
            levels.map(|level| &level.devices).find(|level| level.iter().any(|spec| spec.id == *device))?;
        let devices = level.iter().filter(at_unit).count();
        let round = unit.round(devices);
        (round > LOOK_LIFE).then(|| {
            format!(
                "its level's {devices} devices at {} are read in {:.1} s, and a release needs that within {:?}: let more go \
                 side by side (at_once), or ask it by something faster",
                unit.name(),
                round.as_secs_f64(),
                LOOK_LIFE
            )
        })
    }
}
