//! Sessions that nobody needs any more are closed shortly before their far side would end them by idleness.
//!
//! # Invariants
//!
//! - A session that we closed is no loss. A session that its far side ended is a loss as long as the driver
//!   cannot know that it ended by idleness (S2). Shown by
//!   `a_session_of_a_check_that_a_bmc_ended_by_its_idle_limit_is_no_loss`,
//!   `no_session_ends_by_idleness_while_the_end_of_an_on_is_waited_for`.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use picket_core::ids::DeviceId;
use picket_core::time::BootTime;

use super::NodeTask;
use super::hands::Doing;

/// When each device was last asked something in a session that was not closed since.
#[derive(Clone, Debug, Default)]
pub(super) struct Spoken(Arc<Mutex<Vec<(DeviceId, BootTime)>>>);

impl Spoken {
    fn last(&self) -> MutexGuard<'_, Vec<(DeviceId, BootTime)>> {
        self.0.lock()
    }

    /// Something is asked, whether the answer is waited for or not.
    pub(super) fn asks(&self, device: &DeviceId, now: BootTime) {
        let mut last = self.last();
        match last.iter_mut().find(|(known, _)| known == device) {
            Some((_, at)) => *at = now,
            None => last.push((device.clone(), now)),
        }
    }

    /// Whether any device was asked something from then on.
    pub(super) fn since(&self, then: BootTime) -> bool {
        self.last().iter().any(|(_, at)| *at >= then)
    }

    /// A close that began then has ended. What was asked since was asked in another session.
    pub(super) fn closed(&self, device: &DeviceId, began: BootTime) {
        self.last().retain(|(known, asked)| known != device || *asked > began);
    }
}

impl NodeTask {
    /// When each session that may be open is to be closed: the far side's clock and ours, and the way there, have a tenth of
    /// its idle limit.
    fn closes_at(&self) -> Vec<(DeviceId, BootTime)> {
        let last = self.spoken.last();
        let idle = |device| self.plan.drivers.get(device).and_then(|driver| driver.shortest_idle());
        last.iter().filter_map(|(device, at)| Some((device.clone(), *at + idle(device)? * 9 / 10))).collect()
    }

    /// The closes that are due.
    pub(super) fn idle_closes(&self) -> impl Iterator<Item = Doing> {
        let (now, hands) = (self.now(), self.hands.unheard(false));
        let due = self.closes_at().into_iter().filter(move |(_, at)| *at <= now);
        due.map(move |(device, _)| hands.quiesce_within_call(&device))
    }

    /// When the next one is.
    pub(super) fn next_idle_close(&self) -> Option<BootTime> {
        self.closes_at().into_iter().map(|(_, at)| at).min()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// By it a wait for a session's end is renewed: each question counts, and a close counts as none.
    #[test]
    fn whether_anything_was_asked_since_goes_by_every_question_and_by_nothing_else() {
        let (spoken, at) = (Spoken::default(), |secs| BootTime::from_boot(Duration::from_secs(secs)));
        let device = DeviceId::new("bmc").expect("a good name");
        assert!(!spoken.since(at(0)));
        spoken.asks(&device, at(5));
        assert!(spoken.since(at(5)) && !spoken.since(at(6)));
        spoken.asks(&device, at(9));
        spoken.closed(&device, at(7));
        assert!(spoken.since(at(6)), "asked since the close began");
        spoken.closed(&device, at(9));
        assert!(!spoken.since(at(0)));
    }
}
