//! Our own off at one device: taken, refused, undone, sent again, and sealed at the window's end (S2).
//!
//! # Invariants
//!
//! - The long window is sealed by a second off that is taken. The device's own refusal seals it as well, if
//!   that device took an off of ours plainly in this epoch. Shown by `the_off_at_the_end_must_be_taken`,
//!   `a_refused_repeat_seals_the_window_of_an_off_that_was_taken`,
//!   `a_refused_off_proves_nothing_where_none_was_taken`.

use super::Trace;
use crate::confirm::own_off::{Long, OwnOff};
use crate::device::IdentityMatch;
use crate::power::{Power, Reading};
use crate::time::BootTime;

impl Trace {
    pub(in crate::confirm) fn off_taken(
        &mut self,
        asked_at: BootTime,
        answered_at: BootTime,
        epoch: Option<u64>,
        already: bool,
    ) {
        self.off_due = false;
        if self.off_repeated(asked_at, answered_at) {
            return;
        }
        let seen_on = self.prior.is_some_and(|(power, _)| power == Power::On)
            && self.look_serves_until().is_some_and(|until| answered_at <= until);
        let fell = seen_on && !already;
        let long = if self.lost && !fell {
            self.trust().map(Long::Restarted)
        } else if self.resumed {
            Some(Long::Resumed)
        } else if !self.spec.has_epochs {
            Some(Long::NoEpochs)
        } else if already {
            Some(Long::AlreadyOff)
        } else if !fell {
            Some(Long::NotSeenOn)
        } else {
            None
        };
        let is_acknowledged = !already;
        self.off =
            Some(OwnOff { answered_at, epoch, long, fell, is_acknowledged, worked: false, sealed_at: None });
        self.run = None;
    }

    /// The off was sent again while it reads Off, and answered: the run goes on. Only the one at the window's end seals it.
    fn off_repeated(&mut self, asked_at: BootTime, answered_at: BootTime) -> bool {
        let over = self.window_is_over();
        let (Some(off), Some(run)) = (&mut self.off, &mut self.run) else { return false };
        off.sealed_at = over.then_some(answered_at);
        if answered_at <= asked_at + self.spec.call {
            run.bridge(asked_at, answered_at, self.spec.dwell);
        }
        true
    }

    /// The device refused the off. Where it took one of ours in this life, and has read Off since, a refusal is how it answers an off
    /// that finds it off: the off was sent again, and the window stands. Otherwise no off was taken.
    pub(in crate::confirm) fn off_refused(&mut self, asked_at: BootTime, answered_at: BootTime) {
        let is_acknowledged = self.off.is_some_and(|off| off.is_acknowledged);
        if is_acknowledged && self.off_repeated(asked_at, answered_at) {
            self.off_due = false;
        } else {
            self.off_failed();
        }
    }

    /// The look is the last thing before the off: after one that was made long before, while the store was away for
    /// instance, a foreign power cycle may have begun.
    pub(in crate::confirm) fn look_serves_until(&self) -> Option<BootTime> {
        self.prior.map(|(_, asked_at)| asked_at + self.spec.call + self.spec.dwell * 3)
    }

    /// From zero: neither a look nor an off from before serves.
    pub(in crate::confirm) fn begin_anew(&mut self) {
        self.prior = None;
        self.off = None;
        self.off_due = true;
        self.run = None;
    }

    /// The off was not taken, or may not have been: after another look it must be sent again, and nothing counts
    /// until it is taken.
    pub(in crate::confirm) fn off_failed(&mut self) {
        self.off_due = true;
        self.prior = None;
        if self.run.is_none() {
            self.off = None;
        }
    }

    /// Whether an off is to be sent now: the first one, one that was not taken, one that was ignored or undone,
    /// or the one that seals the long window.
    pub(in crate::confirm) fn wants_off(&self) -> bool {
        let unsealed = self.off.is_some_and(|off| off.sealed_at.is_none());
        let due = self.off_due || self.window_is_over() && unsealed;
        self.prior.is_some() && due && self.is_identified() && self.identity != IdentityMatch::Mismatch
    }

    pub(in crate::confirm) fn window_is_over(&self) -> bool {
        let window = self.off.and_then(|off| off.window(self.spec.longest_cycle));
        window.zip(self.run).is_some_and(|(window, run)| run.lasted() > window)
    }

    /// It is caught at once: the look before the next off decides how long Off must last.
    pub(super) fn come_on(&mut self, heard_at: BootTime) {
        (self.run, self.fell_at) = (None, None);
        if self.off.is_some_and(|off| off.is_void_by_on(heard_at)) {
            self.off = None;
            self.off_due = true;
        }
    }

    /// Whether or not it counts: an On after it is somebody else's.
    pub(super) fn go_off(&mut self, reading: &Reading) {
        if let Some(off) = self.off.as_mut().filter(|off| off.is_before(reading)) {
            off.worked = true;
            self.fell_at.get_or_insert(reading.answered_at);
        }
    }

    /// When the off was taken again that seals the long window.
    pub(in crate::confirm) fn sealed_at(&self) -> Option<BootTime> {
        self.off.and_then(|off| off.sealed_at)
    }
}
