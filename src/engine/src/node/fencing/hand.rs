//! What a run knows of one device.

use std::sync::Arc;
use std::time::Duration;

use picket_core::order::OffOrder;
use picket_core::time::BootTime;

use crate::paces::Backoff;

/// How far a device of the level is on its way to the off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Identify,
    Inspect,
    /// It left a question unanswered again: does it answer anything?
    Probe(Question),
    Live,
}

/// What a device may not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    Identity,
    Hold,
}

/// What this run knows of one device.
#[derive(Debug)]
pub(super) struct Hand {
    pub(super) stage: Stage,
    /// Its hold was tried: once it has said anew whose machine it controls, it is looked at.
    pub(super) held: bool,
    /// How long it took to say what of its hold is engaged.
    pub(super) hold_took: Option<Duration>,
    /// It took a command since its hold was read.
    pub(super) hold_is_unread: bool,
    /// The last off that it took was not the first one of this run.
    pub(super) is_repeated: bool,
    /// So many holds never left, perhaps as its session was a new one.
    pub(super) unsent_holds: u32,
    pub(super) busy: bool,
    /// How often this run asked it anything, or told it.
    pub(super) asked: u32,
    /// When the command under way was begun; `None`: what is under way changes nothing.
    commanded_at: Option<BootTime>,
    /// Calls of this stage that were not answered.
    pub(super) unanswered: u32,
    /// It answered when it was asked for power in between.
    pub(super) answers: bool,
    /// When it was reached last.
    pub(super) reached_at: Option<BootTime>,
    /// When it answered last: what it was asked, or with an error in a session of ours.
    pub(super) answered_at: Option<BootTime>,
    pub(super) not_before: BootTime,
    /// Between tries of what failed.
    pub(super) backoff: Backoff,
    pub(super) pause: Duration,
    /// After an off that was taken, and that it does not read, the next one waits so long.
    pub(super) off_pause: Duration,
    pub(super) off_not_before: BootTime,
    pub(super) off: Option<Arc<OffOrder>>,
    /// It took an off of this run, or may have.
    pub(super) may_have_taken: bool,
    /// When the last one was taken.
    pub(super) taken_at: Option<BootTime>,
    /// Why the last off was not taken; `None` once one was.
    pub(super) refused: Option<String>,
    /// It lets nobody in, or refuses each off, until a person changes what it does so for.
    pub(super) refuses_for_good: bool,
}

impl Hand {
    /// Of a device that was asked nothing yet.
    pub(super) fn new(backoff: Backoff) -> Self {
        Self {
            stage: Stage::Identify,
            held: false,
            hold_took: None,
            hold_is_unread: false,
            is_repeated: false,
            unsent_holds: 0,
            busy: false,
            asked: 0,
            commanded_at: None,
            unanswered: 0,
            answers: false,
            reached_at: None,
            answered_at: None,
            not_before: BootTime::default(),
            backoff,
            pause: backoff.first,
            off_pause: backoff.first,
            off_not_before: BootTime::default(),
            off: None,
            may_have_taken: false,
            taken_at: None,
            refused: None,
            refuses_for_good: false,
        }
    }

    /// A call to it is begun that changes nothing.
    pub(super) fn asks(&mut self) {
        (self.busy, self.asked) = (true, self.asked + 1);
    }

    /// A command to it is begun.
    pub(super) fn commands(&mut self, now: BootTime) {
        self.asks();
        self.commanded_at = Some(now);
    }

    /// Nothing is under way any more. When what was under way was begun, if it was a command.
    pub(super) fn ended(&mut self) -> Option<BootTime> {
        self.busy = false;
        self.commanded_at.take()
    }

    pub(super) fn was_reached_since(&self, since: BootTime) -> bool {
        self.reached_at.is_some_and(|at| at >= since)
    }

    /// Whether it took an off of this run, or may have, or is being sent one.
    pub(super) fn is_sent_an_off(&self) -> bool {
        self.may_have_taken || self.commanded_at.is_some()
    }

    pub(super) fn answered_since(&self, since: BootTime) -> bool {
        self.answered_at.is_some_and(|at| at >= since)
    }

    /// It answered: what fails next is tried again soon.
    pub(super) fn calm(&mut self) {
        self.pause = self.backoff.first;
    }
}
