//! What one device showed within one fence, and what follows from it (S2).

use std::time::Duration;

use self::silence::SILENCE;
use super::own_off::{Long, OwnOff};
use super::run::Run;
use crate::device::{DeviceClass, DeviceSpec, Grade, IdentityMatch};
use crate::power::{Began, Epoch, Power, Reading};
use crate::time::BootTime;

mod off;
pub(super) mod restart;
mod shape;
pub(super) mod silence;
mod when;

/// What a device said last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    /// `Unknown` for silence too.
    pub(super) power: Power,
    /// It answered, whatever it said.
    pub(super) answers: bool,
    pub(super) asked_at: BootTime,
    heard_at: BootTime,
}

#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) spec: DeviceSpec,
    pub(super) identity: IdentityMatch,
    /// Nothing but the device itself has said which machine it controls.
    is_learned: bool,
    /// It said so before, to whichever gateway: that it says nothing now is no answer.
    pub(super) was_identified: bool,
    /// In which life of the device it was asked whose machine it controls, and said so, or is not known ever to say it.
    asked_whose: Option<Option<u64>>,
    pub(super) hold: Vec<String>,
    pub(super) said: String,
    /// What lowers the grade of its Off, as it said that last.
    lowered_by: Option<String>,
    pub(super) lost: bool,
    /// A person looked at the machine after that, and saw it off.
    pub(super) seen_off: bool,
    /// When, if to this process.
    pub(super) seen_off_at: Option<BootTime>,
    /// What was engaged of its hold when it proved the node off before, in this generation.
    pub(super) proved_held: Vec<String>,
    /// All of that was found engaged still, after the loss.
    held_on: bool,
    pub(super) answered: bool,
    resumed: bool,
    /// When the fence began: what was lost before was not lost within it.
    began: Began,
    epoch: Option<u64>,
    /// When something other than power was answered last, whose epoch is not known.
    contacted_at: Option<BootTime>,
    /// When a device without epochs answered last, or may have taken a command first.
    heard_at: Option<BootTime>,
    /// Between two of these nothing was asked for as long as a session lives.
    was_left: bool,
    /// Nothing was answered to the last question in this epoch.
    quiet: bool,
    /// The last answer in this epoch since the last off that failed, or silence as Unknown, and when that was asked for.
    /// No off is sent without such a look: the one before the off decides whether the node was seen to fall.
    prior: Option<(Power, BootTime)>,
    last: Option<Word>,
    /// The newest On that no Off has taken back since: when it was asked for, and in which epoch.
    objection: Option<(BootTime, Option<u64>)>,
    pub(super) off: Option<OwnOff>,
    off_due: bool,
    run: Option<Run>,
    /// The first Off that was answered after an off of ours, since the device said On last.
    fell_at: Option<BootTime>,
}

impl Trace {
    /// `is_learned`: what the device must say of itself was learned from itself.
    pub(super) fn new(spec: DeviceSpec, is_learned: bool, resumed: bool, lost: bool) -> Self {
        let lost = lost && spec.class.has_sessions();
        Self {
            spec,
            identity: IdentityMatch::Unknown,
            is_learned,
            was_identified: false,
            asked_whose: None,
            hold: Vec::new(),
            said: String::new(),
            lowered_by: None,
            lost,
            seen_off: false,
            seen_off_at: None,
            proved_held: Vec::new(),
            held_on: false,
            answered: false,
            resumed,
            began: Began::default(),
            epoch: None,
            contacted_at: None,
            heard_at: None,
            was_left: false,
            quiet: false,
            prior: None,
            last: None,
            objection: None,
            off: None,
            off_due: true,
            run: None,
            fell_at: None,
        }
    }

    pub(super) fn began(&mut self, began: Began) {
        self.began = began;
    }

    /// Notes the life of the device in which something was answered. True if it is new and the one before was lost.
    pub(super) fn contact(&mut self, epoch: Option<Epoch>, at: BootTime) -> bool {
        self.answered = true;
        self.was_left |= self.is_left(at);
        let Some(epoch) = epoch else {
            self.contacted_at = Some(at);
            return false;
        };
        let quiet = std::mem::take(&mut self.quiet);
        if self.epoch == Some(epoch.id) {
            return false;
        }
        let before = self.epoch.replace(epoch.id);
        let first = before.is_none();
        // Also for the first one that is seen here: identity and hold were asked before any reading, and a device may
        // have restarted under them. Where we did not end the session before ourselves, it ended in a time of which
        // nobody knows anything: an Off after it is our doing only where our off was taken before.
        let fell_silent = || self.heard_at.is_some_and(|before| at.since(before) >= SILENCE);
        let unseen = if first { self.was_left || fell_silent() } else { quiet || self.off.is_none() };
        let after_loss = match before {
            None => epoch.was_lost_since(self.began) && !self.is_covered(epoch),
            Some(before) => epoch.begins_after_loss() || epoch.was_lost_after(before),
        };
        // A parent has no session: its life is the proof of another node, and another proof of that is no loss.
        let lost = (after_loss || unseen) && self.spec.class.has_sessions();
        if lost {
            self.lose();
        }
        // A first life that is told after our off is another one than that in which it was taken, as far as anybody knows.
        if !first || self.off.is_some() {
            self.begin_anew();
            self.resumed |= !epoch.begins_after_loss();
        }
        lost
    }

    /// Takes what comparing its identity said, which was asked in this life of the device. An identity that was known, and is
    /// not said again, is no lesser one: then it is still to be asked.
    pub(super) fn identified(&mut self, said: IdentityMatch) {
        if said == IdentityMatch::Unknown && self.was_identified {
            return;
        }
        self.was_identified |= said != IdentityMatch::Unknown;
        self.identity = if self.is_learned { said.learned() } else { said };
        self.asked_whose = Some(self.epoch);
    }

    /// Whether it said whose machine it controls in the life in which it answers now: another one may be another machine's, at
    /// the same address (S13). A supply has no identity, and a parent's is the node that was fenced.
    pub(super) fn is_identified(&self) -> bool {
        self.spec.class != DeviceClass::Host || self.asked_whose == Some(self.epoch)
    }

    /// The life in which it said so, and in which alone anything is sent to it. A parent's is no session, and a supply has no identity.
    pub(super) fn life(&self) -> Option<u64> {
        self.epoch.filter(|_| self.spec.class == DeviceClass::Host && self.is_identified())
    }

    /// Whether, after it had answered something in this fence, nothing was asked for as long as a session lives.
    fn is_left(&self, at: BootTime) -> bool {
        let life = self.spec.max_in_flight.off.unwrap_or(Duration::MAX);
        self.contacted_at.is_some_and(|before| at.since(before) >= life / 10 * 9)
    }

    /// Whether this is the life of the device in which it was identified and looked at.
    pub(super) fn knows(&self, epoch: Option<Epoch>) -> bool {
        self.epoch == epoch.map(|epoch| epoch.id) && self.is_identified()
    }

    /// Whether something was asked after this and is answered already. What comes so late is not in a row with it,
    /// and does not hide it.
    fn is_overtaken(&self, asked_at: BootTime) -> bool {
        self.last.is_some_and(|word| asked_at < word.asked_at)
    }

    pub(super) fn silence(&mut self, asked_at: BootTime, now: BootTime) {
        self.run = None;
        if self.is_overtaken(asked_at) {
            return;
        }
        self.quiet = self.epoch.is_some();
        self.prior = Some((Power::Unknown, asked_at));
        self.last = Some(Word { power: Power::Unknown, answers: false, asked_at, heard_at: now });
    }

    pub(super) fn not_asked(&mut self, asked_at: BootTime) {
        self.run = None;
        if !self.is_overtaken(asked_at) {
            // An off does not wait for what keeps the questions from leaving.
            self.prior = Some((Power::Unknown, asked_at));
        }
    }

    /// Takes a reading whose epoch was noted already. `barred`: an on is open, and no Off counts.
    pub(super) fn reading(&mut self, reading: &Reading, barred: bool) {
        // A device that is declared without may tell of a loss all the same; for the rest it is one without.
        let has_epoch = reading.epoch.is_some() || !self.spec.has_epochs;
        let is_identified = self.is_identified();
        match reading.power {
            // Also one that is overtaken, or does not name its epoch: only Off must be earned.
            Power::On => {
                self.come_on(reading.answered_at);
                let objection = (reading.asked_at, reading.epoch.map(|epoch| epoch.id));
                self.objection = self.objection.max(Some(objection));
            }
            Power::Off => self.go_off(reading),
            Power::Unknown => self.run = None,
        }
        if self.is_overtaken(reading.asked_at) {
            self.run = None;
            return;
        }
        let is_off = reading.power == Power::Off && !barred && has_epoch;
        if is_off {
            // A device that restarted since cannot take back what it said before, nor can one in a life in which nobody asked it whose
            // machine it controls.
            let life = reading.epoch.map(|epoch| epoch.id);
            let stays = self.lost || !is_identified;
            self.objection = self.objection.filter(|(_, epoch)| stays && *epoch != life);
        }
        let power = match reading.power {
            Power::Off if !is_off || !is_identified => Power::Unknown,
            said => said,
        };
        match power {
            Power::Off => self.count(reading),
            Power::On => {}
            Power::Unknown => self.run = None,
        }
        self.said.clone_from(&reading.said);
        self.lowered_by.clone_from(&reading.lowered_by);
        let (asked_at, heard_at) = (reading.asked_at, reading.answered_at);
        self.last = Some(Word { power, answers: true, asked_at, heard_at });
        // An On that does not name its epoch does not show that the node was on in this one; one of who knows whose machine does
        // not show that it was this node.
        let look = (if has_epoch { power } else { Power::Unknown }, asked_at);
        self.prior = is_identified.then_some(look);
    }

    fn count(&mut self, reading: &Reading) {
        let Some(off) = self.off.as_mut().filter(|off| off.is_before(reading)) else { return };
        let dwell = self.spec.dwell;
        match self.run.as_mut().filter(|run| run.reaches(reading.asked_at, dwell)) {
            Some(run) => run.go_on(reading, dwell),
            None => {
                self.run = Some(Run::begin(reading));
                off.sealed_at = None;
            }
        }
    }

    /// Whether its Off cannot be believed: its session was lost and it was not seen on since (S2).
    pub(super) fn is_restarted(&self) -> bool {
        let trusted = self.trust().is_some();
        let off_again = self.off.is_some_and(|off| !off.fell) && self.run.is_some();
        self.lost && !trusted && off_again
    }

    /// The run, if it holds: long enough, often enough, sealed where that is asked for, and not older than three dwells.
    pub(super) fn holds(&self, now: BootTime) -> Option<&Run> {
        let (run, off) = (self.run.as_ref()?, self.off.as_ref()?);
        let sealed = match (off.long, off.sealed_at) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(_), Some(sealed_at)) => run.last_asked >= sealed_at && self.window_is_over(),
        };
        // An answer may lie there unheard while the process is stopped: what counts is when it was asked for, too.
        let asked = now.since(run.last_asked) < self.spec.call + self.spec.dwell * 3;
        let recent = asked && run.is_recent(now, self.spec.dwell);
        let believed = self.identity != IdentityMatch::Mismatch && !self.is_restarted() && !self.off_due;
        (run.count >= self.spec.readings && sealed && recent && believed).then_some(run)
    }

    pub(super) fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// Since when it says Off, or says nothing, after an off of ours: unlike the run it outlives a gap in the readings.
    pub(super) fn fell_at(&self) -> Option<BootTime> {
        self.fell_at
    }

    pub(super) fn epoch(&self) -> Option<u64> {
        self.off.and_then(|off| off.epoch)
    }

    pub(super) fn long(&self) -> Option<Long> {
        self.off.and_then(|off| off.long)
    }

    /// Whether what was asked since then was answered, or given up.
    pub(super) fn was_asked(&self, since: BootTime) -> bool {
        self.last.is_some_and(|word| word.asked_at >= since)
    }

    /// Whether it was asked since then, said On, and did not take that back with an Off: Unknown and silence do not.
    pub(super) fn objects(&self, since: BootTime) -> bool {
        self.objection.is_some_and(|(asked_at, _)| asked_at >= since)
    }

    /// What it said last.
    pub(super) fn last(&self) -> Option<Word> {
        self.last
    }

    /// The grade of its Off as it was read last, and what lowered it.
    pub(super) fn grade(&self) -> (Grade, Vec<String>) {
        let (mut grade, mut why) = self.grade_at_best();
        if let Some(told) = &self.lowered_by {
            grade = grade.lowered();
            why.push(format!("{}: {told}", self.spec.id));
        }
        (grade, why)
    }

    /// The same of a reading that says nothing against itself.
    pub(super) fn grade_at_best(&self) -> (Grade, Vec<String>) {
        let (mut grade, mut why) = self.spec.best_grade(self.identity);
        if matches!(self.long(), Some(Long::Restarted(_))) {
            grade = grade.min(Grade::Claimed);
            why.push(format!("{}: {}", self.spec.id, self.trusted_for()));
        }
        (grade, why)
    }
}
