//! Holds are read once more between two readings of Off (S11): what was sent since they were engaged may have undone them.

use picket_core::ids::DeviceId;
use picket_core::power::Power;
use picket_core::time::BootTime;
use picket_driver::{DriverError, HoldFound};

use super::Run;
use super::hand::Stage;
use crate::node::{Fatal, NodeTask};

impl NodeTask {
    /// Reads the holds of devices that took an off and read Off, once for each off. One that answers too slowly for that is let be: the next
    /// reading would come so late that the proof began anew.
    pub(super) fn read_holds(&mut self, run: &mut Run, now: BootTime) {
        let due = run.judge.readings_due();
        for (device, at) in due.into_iter().filter(|(_, at)| *at > now) {
            let spec = self.open_fence().and_then(|fence| fence.topology.device(&device));
            let Some(dwell) = spec.map(|spec| spec.dwell) else { continue };
            let reading = self.live.devices.get(&device).and_then(|live| live.reading.as_ref());
            let hand = run.hand(&device);
            let reads_off = reading.zip(hand.taken_at).is_some_and(|(reading, taken_at)| {
                reading.power == Power::Off && reading.asked_at >= taken_at
            });
            let fits = hand.hold_took.is_some_and(|took| now + took <= at + dwell);
            let is_free = hand.stage == Stage::Live && !hand.busy && hand.not_before <= now;
            let engaged = self.hold_of(&device).is_some_and(|hold| !hold.engaged.is_empty());
            if hand.hold_is_unread && reads_off && fits && is_free && engaged {
                hand.hold_is_unread = false;
                hand.asks();
                run.doing.push(self.hands.inspect(&device, run.judge.life(&device)));
            }
        }
    }

    /// The same of one that took the off again, before its next reading: that may be the last one.
    pub(super) fn hold_comes_first(&self, run: &mut Run, device: &DeviceId) -> bool {
        let dwell = self.open_fence().and_then(|fence| fence.topology.device(device)).map(|spec| spec.dwell);
        let engaged = self.hold_of(device).is_some_and(|hold| !hold.engaged.is_empty());
        let hand = run.hand(device);
        let fits = hand.hold_took.zip(dwell).is_some_and(|(took, dwell)| took <= dwell);
        let is_due = hand.hold_is_unread && hand.is_repeated && hand.stage == Stage::Live && engaged && fits;
        hand.hold_is_unread &= !is_due;
        is_due
    }

    /// What stands of the hold after the off. What does not is out of the evidence, told, and engaged again while the node is watched.
    pub(super) async fn hold_was_read(
        &mut self,
        run: &mut Run,
        device: DeviceId,
        found: Result<HoldFound, DriverError>,
    ) -> Result<(), Fatal> {
        let (Ok(found), Some(driver)) = (found, self.plan.drivers.get(&device)) else { return Ok(()) };
        let stands = driver.engaged(&found);
        run.judge.hold_stands(&device, &stands);
        self.note_undone(&device, &stands).await.map(drop)
    }
}
