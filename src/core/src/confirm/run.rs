//! Readings in a row that said Off (S2).

use std::time::Duration;

use super::shape::Shape;
use crate::power::Reading;
use crate::time::BootTime;

/// Readings in a row that said Off, each asked for after our own off was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) first_asked: BootTime,
    pub(super) first_answered: BootTime,
    pub(super) last_asked: BootTime,
    pub(super) last_answered: BootTime,
    /// When it was heard last: by such a reading, or by a command that it answered in between.
    heard_at: BootTime,
    /// When the last one that counted was answered.
    counted_at: BootTime,
    pub(super) count: u32,
}

impl Run {
    pub(super) fn begin(reading: &Reading) -> Self {
        let (asked, answered) = (reading.asked_at, reading.answered_at);
        Self {
            first_asked: asked,
            first_answered: answered,
            last_asked: asked,
            last_answered: answered,
            heard_at: answered,
            counted_at: answered,
            count: 1,
        }
    }

    /// Whether what is asked at `asked_at` is still in a row with it: a gap of three dwells is one too long.
    pub(super) fn reaches(&self, asked_at: BootTime, dwell: Duration) -> bool {
        asked_at.since(self.heard_at) < dwell * 3
    }

    /// Whether the last reading is not older than that.
    pub(super) fn is_recent(&self, now: BootTime, dwell: Duration) -> bool {
        now.since(self.last_answered) < dwell * 3
    }

    /// A command was asked for and answered: the time that it took is no gap (S2).
    pub(super) fn bridge(&mut self, asked_at: BootTime, answered_at: BootTime, dwell: Duration) {
        if self.reaches(asked_at, dwell) {
            self.heard_at = self.heard_at.max(answered_at);
        }
    }

    pub(super) fn go_on(&mut self, reading: &Reading, dwell: Duration) {
        if reading.asked_at.since(self.counted_at) >= dwell {
            self.count += 1;
            self.counted_at = reading.answered_at;
        }
        self.last_asked = reading.asked_at;
        self.last_answered = reading.answered_at;
        self.heard_at = reading.answered_at;
    }

    /// For how long Off surely lasted: it was so before the first answer, and still when the last question was asked.
    pub(super) fn lasted(&self) -> Duration {
        self.last_asked.since(self.first_answered)
    }
}

impl Run {
    /// What decides how it goes on, where no rule asks for more than `lasted` and `readings`.
    pub(super) fn shape(&self, to: &mut Shape, lasted: Duration, readings: u32) {
        let Self { first_asked, first_answered, last_asked, last_answered, heard_at, counted_at, count } =
            self;
        for at in [first_asked, first_answered, last_asked, last_answered, heard_at, counted_at] {
            to.age(*at);
        }
        to.put(self.lasted().min(lasted).as_secs());
        to.put(u64::from(readings.min(*count)));
    }
}
