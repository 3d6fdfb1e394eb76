//! A host device without epochs that fell silent: it may have restarted, and nothing of its own shows it (S2).

use std::time::Duration;

use super::Trace;
use crate::device::DeviceClass;
use crate::time::BootTime;

/// A device whose restarts nothing shows may have restarted where it answered nothing for so long: no BMC restarts faster.
pub const SILENCE: Duration = Duration::from_secs(10);

impl Trace {
    /// Whether nothing but its silence shows that it restarted: also of a host device that tells of its lives, and has told of none in this fence.
    pub(in crate::confirm) fn hides_its_restarts(&self) -> bool {
        let untold = self.spec.class == DeviceClass::Host && !self.spec.is_cloud() && self.epoch.is_none();
        self.spec.hides_its_restarts() || untold
    }

    /// It answered at `answered_at` what was asked at `asked_at`. True if nothing was heard of it for so long before that question that
    /// it may have restarted. The time in which a call of ours ran that it answered is no silence.
    pub(in crate::confirm) fn heard(&mut self, asked_at: BootTime, answered_at: BootTime) -> bool {
        if !self.hides_its_restarts() {
            return false;
        }
        // An answer that lay there unheard is not of now.
        let answered_at = answered_at.min(asked_at + self.spec.call);
        let was_silent = self.heard_at.is_some_and(|before| asked_at.since(before) >= SILENCE);
        self.heard_at = self.heard_at.max(Some(answered_at));
        was_silent && self.restarted()
    }

    /// A command whose end is not known: from then on it is to be heard.
    pub(in crate::confirm) fn may_have_taken(&mut self, asked_at: BootTime) {
        self.heard_at.get_or_insert(asked_at);
    }

    /// Its life from before is over, and nobody saw how: from zero. Its Off counts again once it said anew whose machine it controls,
    /// and read On and fell.
    pub(in crate::confirm) fn restarted(&mut self) -> bool {
        self.lose();
        self.begin_anew();
        self.asked_whose = None;
        // In a life of its own, which no Off shares: what it said before it cannot take back.
        self.objection = self.objection.map(|(asked_at, _)| (asked_at, Some(u64::MAX)));
        true
    }
}
