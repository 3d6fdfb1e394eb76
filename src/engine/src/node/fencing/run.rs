//! What one run of a fence knows, from the phase's beginning until it is left.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::stream::FuturesUnordered;
use picket_core::confirm::Judge;
use picket_core::ids::DeviceId;
use picket_core::time::BootTime;
use picket_driver::{DriverError, ErrorKind};

use super::hand::{Hand, Question, Stage};
use super::last_look::LastLook;
use super::rounds::Round;
use super::survey::Surveys;
use super::waits::Turns;
use crate::node::hands::Doing;
use crate::paces::Backoff;

/// One run: from the phase's beginning until it is left.
pub(super) struct Run {
    pub(super) judge: Judge,
    pub(super) hands: BTreeMap<DeviceId, Hand>,
    /// Between tries of a device that failed.
    pub(super) backoff: Backoff,
    /// The first pauses of devices that have one of their own.
    pub(super) retries: BTreeMap<DeviceId, Duration>,
    pub(super) doing: FuturesUnordered<Doing>,
    pub(super) last_look: LastLook,
    pub(super) surveys: Surveys,
    pub(super) turns: Turns,
    pub(super) level: usize,
    pub(super) level_began: BootTime,
    pub(super) deadline: BootTime,
    pub(super) restarted: bool,
    pub(super) round: Round,
    /// Others have its place among the fences meanwhile.
    pub(super) lent: bool,
    /// Levels whose last turn ended without an answer.
    pub(super) silent: BTreeSet<usize>,
    /// It sent the first off of the fence: no other run sent one.
    pub(super) sent_the_first: bool,
    /// Its sessions were ended to wait something out: whatever follows begins anew.
    pub(super) is_over: bool,
    /// Why the off could not be stored; `None` once one was.
    pub(super) away: Option<String>,
    /// The pause, or the limit, for whose end the fence waits: it cannot be ended by that, since somebody holds the node (S7).
    pub(super) barred: Option<String>,
}

impl Run {
    pub(super) fn hand(&mut self, device: &DeviceId) -> &mut Hand {
        let Backoff { first, longest } = self.backoff;
        let first = self.retries.get(device).copied().unwrap_or(first);
        let backoff = Backoff { first, longest: longest.max(first) };
        self.hands.entry(device.clone()).or_insert_with(|| Hand::new(backoff))
    }

    /// Drops the calls under way: nothing goes on with them while a command asks the same devices, which would wait for them
    /// in vain. What was sent may have been taken or not.
    pub(super) fn let_go(&mut self) {
        self.doing.clear();
        self.surveys.let_go();
        for (device, hand) in self.hands.iter_mut().filter(|(_, hand)| hand.busy) {
            if let Some(asked_at) = hand.ended() {
                self.judge.may_have_taken(device, asked_at);
                hand.may_have_taken = true;
            }
            self.judge.off_failed(device);
        }
    }

    pub(super) fn enter(&mut self, device: &DeviceId, stage: Stage) {
        let hand = self.hand(device);
        (hand.stage, hand.unanswered, hand.answers) = (stage, 0, false);
    }

    /// Notes a question that a device did not answer, or was too busy for. After the second one it is asked for power, and
    /// then once more. True if it answers that and never the question: it does not know it.
    pub(super) fn leaves_unanswered(
        &mut self,
        device: &DeviceId,
        question: Question,
        error: &DriverError,
    ) -> bool {
        // A service that only starts may say that it knows no such question.
        if !matches!(error.kind, ErrorKind::TimedOut | ErrorKind::Throttled | ErrorKind::Unsupported) {
            return false;
        }
        let hand = self.hand(device);
        hand.unanswered += 1;
        let knows_it_not = hand.answers;
        if hand.unanswered >= 2 && !knows_it_not {
            self.enter(device, Stage::Probe(question));
        }
        knows_it_not
    }

    /// In a new life of the device, which it showed just now, it is asked first whose machine it controls (S13).
    pub(super) fn asks_whose_again(&mut self, device: &DeviceId) {
        let is_asked = matches!(self.hand(device).stage, Stage::Identify | Stage::Probe(Question::Identity));
        if !is_asked && !self.judge.is_identified(device) {
            self.enter(device, Stage::Identify);
        }
    }

    /// What a device that was asked for power between two questions came to.
    pub(super) fn probed(&mut self, device: &DeviceId, answers: bool) {
        let back = match self.hand(device).stage {
            Stage::Probe(Question::Identity) => Stage::Identify,
            Stage::Probe(Question::Hold) => Stage::Inspect,
            _ => return,
        };
        self.enter(device, back);
        self.hand(device).answers = answers;
    }

    /// An off was taken: one that says "already off" and reads On is not sent one after the other.
    pub(super) fn off_taken(&mut self, device: &DeviceId, now: BootTime) {
        let hand = self.hand(device);
        hand.refused = None;
        hand.is_repeated = hand.taken_at.is_some();
        hand.taken_at = Some(now);
        hand.hold_is_unread = true;
        hand.off_not_before = now + hand.off_pause;
        hand.off_pause = hand.backoff.after(hand.off_pause);
    }

    /// What came to nothing by its own time limit took its pause already: what is back then is asked soon.
    pub(super) fn failed_by(&mut self, device: &DeviceId, now: BootTime, error: &DriverError) {
        match error.kind {
            ErrorKind::TimedOut => {
                let hand = self.hand(device);
                hand.not_before = now + hand.backoff.first;
            }
            _ => self.failed(device, now),
        }
    }

    pub(super) fn failed(&mut self, device: &DeviceId, now: BootTime) {
        let hand = self.hand(device);
        hand.not_before = now + hand.pause;
        hand.pause = hand.backoff.after(hand.pause);
    }
}
