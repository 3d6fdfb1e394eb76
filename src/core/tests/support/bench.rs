//! Devices that answer to the judge as the test says, on a clock of its own. An exchange takes 20 ms.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::confirm::{ConfirmedOff, Judge, Verdict};
use picket_core::device::{DeviceSpec, Grade, IdentityMatch};
use picket_core::ids::{DeviceId, Term};
use picket_core::ledger::Ledger;
use picket_core::power::{Began, Epoch, Power, Reading};
use picket_core::record::NodeRecord;
use picket_core::rules::Rules;
use picket_core::time::{BootTime, WallTime};

use super::{Player, boot, device, ms, request, s};

/// How long a question is under way, and its answer.
const TRIP: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub struct Bench {
    pub judge: Judge,
    pub ledger: Ledger,
    pub now: BootTime,
    /// Devices of which the judge said that their loss must be stored.
    pub lost: Vec<DeviceId>,
    record: NodeRecord,
    term: Term,
    epochs: BTreeMap<DeviceId, Option<Epoch>>,
    /// In which of them each said whose machine it controls, and what it says of it.
    identified: BTreeMap<DeviceId, Option<Epoch>>,
    says: IdentityMatch,
    /// What lowers the grade of an Off that is read.
    pub lowered_by: Option<String>,
    level: Vec<DeviceSpec>,
}

impl Bench {
    pub fn first_epoch() -> Epoch {
        Epoch::FIRST
    }

    /// A fence of these levels, opened just now; every device identified and held.
    pub fn of(levels: &[&[DeviceSpec]]) -> Self {
        Self::judging(Player::fencing(levels, &[]).record(), Term(1), false)
    }

    /// The same, for a caller who wants no less than this grade.
    pub fn wanting(min_grade: Grade, levels: &[&[DeviceSpec]]) -> Self {
        let mut player = Player::new();
        player.fence(picket_core::event::FenceRequest { min_grade, ..request(1, levels, &[]) });
        Self::judging(player.record(), Term(1), false)
    }

    /// The same, begun by another leadership.
    pub fn resumed(levels: &[&[DeviceSpec]]) -> Self {
        Self::judging(Player::fencing(levels, &[]).record(), Term(1), true)
    }

    /// The same of devices that never say whose machine they control.
    pub fn of_unknown(levels: &[&[DeviceSpec]]) -> Self {
        Self::of(levels).who_says_nothing()
    }

    /// All that was said so far of whose machines these are is taken back.
    pub fn who_says_nothing(mut self) -> Self {
        self.says = IdentityMatch::Unknown;
        let record = self.record.clone();
        self.judge = Judge::new(&record, self.term, &Rules::default(), false).unwrap();
        for spec in record.fence.iter().flat_map(|fence| fence.topology.devices()) {
            self.judge.identified(&spec.id, IdentityMatch::Unknown, None, self.now);
            self.judge.held(&spec.id, &["restore policy always-off".to_owned()]);
        }
        self
    }

    pub fn judging(record: &NodeRecord, term: Term, resumed: bool) -> Self {
        let judge = Judge::new(record, term, &Rules::default(), resumed).unwrap();
        let fence = record.fence.as_ref().unwrap();
        let epochs: BTreeMap<DeviceId, Option<Epoch>> = fence
            .topology
            .devices()
            .map(|spec| (spec.id.clone(), spec.has_epochs.then(Self::first_epoch)))
            .collect();
        let level = fence.topology.level(fence.level).unwrap().devices.clone();
        let ledger = record.ledger.clone();
        let mut bench = Self {
            judge,
            ledger,
            now: boot(100_000),
            lost: Vec::new(),
            record: record.clone(),
            term,
            identified: BTreeMap::new(),
            says: IdentityMatch::Match,
            lowered_by: None,
            epochs,
            level,
        };
        for spec in fence.topology.devices() {
            bench.judge.identified(&spec.id, IdentityMatch::Match, None, bench.now);
            bench.judge.held(&spec.id, &["restore policy always-off".to_owned()]);
        }
        bench
    }

    /// The fence began at this very moment.
    pub fn begun_now(mut self) -> Self {
        self.judge = self.judge.begun(Began::Here(self.now));
        self
    }

    pub fn wait(&mut self, time: Duration) -> &mut Self {
        self.now = self.now + time;
        self
    }

    fn note(&mut self, id: DeviceId, lost: bool) -> &mut Self {
        if lost {
            self.lost.push(id);
        }
        self
    }

    fn epoch(&self, id: &DeviceId) -> Option<Epoch> {
        self.epochs.get(id).copied().flatten()
    }

    /// Asks now; the answer is there 20 ms later.
    pub fn reads(&mut self, name: &str, power: Power) -> &mut Self {
        let asked_at = self.now;
        self.wait(TRIP * 2).hears(name, power, asked_at)
    }

    /// An answer, now, to what was asked then. Whose machine it controls it says in each of its lives before.
    pub fn hears(&mut self, name: &str, power: Power, asked_at: BootTime) -> &mut Self {
        let epoch = self.epoch(&device(name));
        let is_asked = self.identified.insert(device(name), epoch) == Some(epoch);
        if !is_asked || epoch.is_none() && !self.judge.is_identified(&device(name)) {
            self.says_whose(name, self.says, asked_at);
        }
        self.hears_of_whoever(name, power, asked_at);
        if epoch.is_none() && !self.judge.is_identified(&device(name)) {
            // It may have restarted, as this answer shows.
            self.says_whose(name, self.says, asked_at);
        }
        self
    }

    /// It says whose machine it controls.
    pub fn says_whose(&mut self, name: &str, said: IdentityMatch, asked_at: BootTime) -> &mut Self {
        let id = device(name);
        self.says = said;
        let lost = self.judge.identified(&id, said, self.epoch(&id), asked_at);
        self.note(id, lost)
    }

    /// The same of a device that may be another machine's by now.
    pub fn hears_of_whoever(&mut self, name: &str, power: Power, asked_at: BootTime) -> &mut Self {
        let id = device(name);
        let (said, lowered_by) = (format!("{name} {power:?}"), self.lowered_by.clone());
        let reading =
            Reading { power, asked_at, answered_at: self.now, epoch: self.epoch(&id), said, lowered_by };
        let lost = self.judge.reading(&id, &reading, &self.ledger);
        self.note(id, lost)
    }

    /// No answer within the device's call.
    pub fn silent(&mut self, name: &str) -> &mut Self {
        let asked_at = self.now;
        self.wait(s(5));
        self.judge.silence(&device(name), asked_at, self.now);
        self
    }

    /// What was asked a moment ago is given up, beside everything else.
    pub fn unanswered(&mut self, name: &str) -> &mut Self {
        let asked_at = self.now;
        self.wait(ms(100));
        self.judge.silence(&device(name), asked_at, self.now);
        self
    }

    /// Sends our own off, which is taken.
    pub fn off(&mut self, name: &str) -> &mut Self {
        self.takes_off(name, false, TRIP * 2)
    }

    /// Sends our own off, which is answered "already off".
    pub fn already(&mut self, name: &str) -> &mut Self {
        self.takes_off(name, true, TRIP * 2)
    }

    /// The same, answered after that time.
    pub fn already_after(&mut self, name: &str, time: Duration) -> &mut Self {
        self.takes_off(name, true, time)
    }

    fn takes_off(&mut self, name: &str, already: bool, time: Duration) -> &mut Self {
        let id = device(name);
        let asked_at = self.now;
        self.wait(time);
        let epoch = self.epoch(&id);
        let lost = self.judge.off_taken(&id, asked_at, self.now, epoch, already);
        self.note(id, lost)
    }

    /// Our own off ends Unknown, or is refused.
    pub fn off_fails(&mut self, name: &str) -> &mut Self {
        self.judge.off_failed(&device(name));
        self
    }

    /// Our own off is refused by the device itself, after that time.
    pub fn refuses_after(&mut self, name: &str, time: Duration) -> &mut Self {
        let id = device(name);
        let asked_at = self.now;
        self.wait(time);
        let epoch = self.epoch(&id);
        let lost = self.judge.off_refused(&id, asked_at, self.now, epoch);
        self.note(id, lost)
    }

    /// The same, soon.
    pub fn refuses(&mut self, name: &str) -> &mut Self {
        self.refuses_after(name, TRIP * 2)
    }

    /// Its session was lost: from now on it answers in a new one.
    pub fn restarts(&mut self, name: &str) -> &mut Self {
        let now = self.now;
        self.new_epoch(name, |before| before.next_after_loss(now))
    }

    /// We ended its session: from now on it answers in a new one.
    pub fn reconnects(&mut self, name: &str) -> &mut Self {
        self.new_epoch(name, Epoch::next)
    }

    fn new_epoch(&mut self, name: &str, next: impl FnOnce(Epoch) -> Epoch) -> &mut Self {
        let id = device(name);
        let epoch = self.epoch(&id).map_or(Epoch::FIRST, next);
        self.epochs.insert(id, Some(epoch));
        self
    }

    /// From now on its answers carry this epoch, whatever its spec says.
    pub fn answers_in(&mut self, name: &str, epoch: Option<Epoch>) -> &mut Self {
        self.epochs.insert(device(name), epoch);
        self
    }

    /// Reads Off once a dwell, `times` times. Sends the off again where the judge wants it.
    pub fn reads_off(&mut self, name: &str, times: usize) -> &mut Self {
        for _ in 0..times {
            self.wait(s(1)).reads(name, Power::Off);
            if self.wants_off(name) {
                self.already(name);
            }
        }
        self
    }

    /// Reads Off for so long without sending anything.
    pub fn stays_off(&mut self, name: &str, time: Duration) -> &mut Self {
        let until = self.now + time;
        while self.now < until {
            self.wait(s(1)).reads(name, Power::Off);
        }
        self
    }

    /// The usual fall: seen on, our own off, off twice.
    pub fn falls(&mut self, name: &str) -> &mut Self {
        self.reads(name, Power::On).off(name).reads_off(name, 2)
    }

    pub fn wants_off(&self, name: &str) -> bool {
        self.judge.wants_off().contains(&device(name))
    }

    pub fn verdict(&self) -> Verdict {
        let wall = WallTime::from_millis(1_700_000_000_000 + self.now.since_boot().as_millis() as u64);
        self.judge.verdict(&self.ledger, self.now, wall)
    }

    pub fn is_confirmed(&self) -> bool {
        matches!(self.verdict(), Verdict::Confirmed(_))
    }

    pub fn is_open(&self) -> bool {
        matches!(self.verdict(), Verdict::Open)
    }

    #[track_caller]
    pub fn confirmed(&self) -> ConfirmedOff {
        match self.verdict() {
            Verdict::Confirmed(proof) => proof,
            other => panic!("not confirmed: {other:?}"),
        }
    }

    /// Every device of the level falls, one after the other, and goes on reading Off until that proves; all others are
    /// silent.
    #[track_caller]
    pub fn proves(self) -> ConfirmedOff {
        match self.comes_to() {
            Verdict::Confirmed(proof) => proof,
            other => panic!("never confirmed: {other:?}"),
        }
    }

    /// What the judge says in the end if every device of the level falls and all others are silent.
    pub fn comes_to(mut self) -> Verdict {
        let names: Vec<String> = self.level.iter().map(|spec| spec.id.to_string()).collect();
        let others: Vec<String> =
            self.epochs.keys().map(ToString::to_string).filter(|name| !names.contains(name)).collect();
        for name in &names {
            self.reads(name, Power::On).off(name);
        }
        for _ in 0..100 {
            self.wait(ms(500));
            for name in &names {
                self.reads(name, Power::Off);
                if self.wants_off(name) {
                    self.already(name);
                }
            }
            for name in &others {
                self.unanswered(name);
            }
            match self.verdict() {
                Verdict::Open => {}
                verdict => return verdict,
            }
        }
        Verdict::Open
    }
}
