//! When a device is asked next.

use std::time::Duration;

use super::super::own_off::OwnOff;
use super::Trace;
use super::silence::SILENCE;
use crate::ids::DeviceId;
use crate::time::BootTime;

/// How fast a device that does not read Off yet is asked again, at most.
const PACE: Duration = Duration::from_millis(250);

impl Trace {
    fn asked_after(&self, pause: Duration) -> (DeviceId, BootTime) {
        (self.spec.id.clone(), self.last.map_or(BootTime::default(), |word| word.heard_at + pause))
    }

    /// When it is to be asked next, as a device of the level: at once when it took our off.
    pub(in crate::confirm) fn read_at(&self) -> (DeviceId, BootTime) {
        let unasked = |off: &OwnOff| self.last.is_none_or(|word| word.asked_at < off.answered_at);
        match self.off.filter(|off| self.run.is_none() && unasked(off)) {
            Some(off) => (self.spec.id.clone(), off.answered_at),
            None if self.run.is_some() => self.asked_after(self.listens()),
            None => self.asked_after(self.pace()),
        }
    }

    /// How soon it is asked again while it does not read Off.
    fn pace(&self) -> Duration {
        self.spec.asked_again(self.last.is_some_and(|word| word.answers), PACE)
    }

    /// When it is to be asked next, as one that may only object.
    pub(in crate::confirm) fn objects_at(&self) -> (DeviceId, BootTime) {
        self.asked_after(self.listens())
    }

    /// How soon it is asked again while nothing but another reading is waited for. Where nothing but a silence shows a restart a pause of
    /// our own must not look like one: it is asked within a longer dwell, too, and what it says then does not count.
    fn listens(&self) -> Duration {
        if self.hides_its_restarts() { self.spec.dwell.min(SILENCE / 2) } else { self.spec.dwell }
    }
}
