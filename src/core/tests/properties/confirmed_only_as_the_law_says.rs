//! S1, S2, S3, S13: whenever the judge confirms, an oracle that reads the law off the raw log agrees, grade and all.

use std::collections::BTreeMap;

use picket_core::confirm::{Judge, Verdict};
use picket_core::device::{DeviceSpec, Identity, IdentityMatch};
use picket_core::event::Event;
use picket_core::ids::DeviceId;
use picket_core::ledger::Ledger;
use picket_core::power::{Began, Epoch, Power, Reading};
use picket_core::rules::Rules;
use picket_core::time::{BootTime, WallTime};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::cases;
use crate::oracle::{Entry, Log, began};
use crate::support::*;

/// A device that is declared without epochs, and has one with most of what it says.
const TELLS_UNASKED: &str = "teller";

/// What happens next: a kind, a device, and a number.
type Move = (u8, u8, u8);

/// The judge and the log, told the same.
struct Court {
    judge: Judge,
    log: Log,
    open: Ledger,
    now: BootTime,
    epochs: BTreeMap<DeviceId, Epoch>,
    /// In which of them each said whose machine it controls.
    identified: BTreeMap<DeviceId, Option<Epoch>>,
    /// None is asked before it is looked at.
    is_careless: bool,
    /// What need not say its epoch says none.
    is_mute: bool,
    confirmations: usize,
}

fn topologies() -> Vec<Vec<Vec<DeviceSpec>>> {
    let trusting = DeviceSpec { trust_after_restart: Some(s(20)), longest_cycle: s(4), ..host("bmc") };
    let plain = DeviceSpec { has_epochs: false, longest_cycle: s(4), ..host("bmc") };
    let telling = DeviceSpec { id: device(TELLS_UNASKED), ..plain.clone() };
    let quick = |name| DeviceSpec { longest_cycle: s(4), ..host(name) };
    let learned = |spec| DeviceSpec { identity: Identity::default(), ..spec };
    let outlet = |name, verified| DeviceSpec { longest_cycle: s(4), verified, ..supply(name) };
    vec![
        vec![vec![quick("bmc")]],
        vec![vec![learned(quick("bmc"))]],
        vec![vec![learned(quick("bmc")), quick("agent")]],
        vec![vec![trusting]],
        vec![vec![plain]],
        vec![vec![telling]],
        vec![vec![quick("bmc"), quick("agent")]],
        vec![vec![quick("bmc")], vec![quick("agent")]],
        vec![vec![quick("bmc")], vec![outlet("a", true), outlet("b", true)]],
        vec![vec![outlet("a", true), outlet("b", false)]],
    ]
}

impl Court {
    fn new(topology: u8, resumed: bool, lost: bool) -> Self {
        let topologies = topologies();
        let levels = topologies[usize::from(topology) % topologies.len()].clone();
        let slices: Vec<&[DeviceSpec]> = levels.iter().map(Vec::as_slice).collect();
        let mut player = Player::unfencing(&slices);
        player.on_intent(&[levels[0][0].id.as_str()]).unwrap_or_default();
        let open = player.record().ledger.clone();
        player.fence(request(2, &slices, &[]));
        let first = levels[0][0].id.clone();
        let lost = lost && levels[0][0].has_epochs;
        if lost {
            player.apply(Event::Lost { device: first.clone() });
        }
        let rules = Rules { supply_hold_up: s(3), ..Rules::default() };
        let judge = Judge::new(player.record(), player.leadership.term(), &rules, resumed).unwrap();
        let judge = judge.begun(Began::Here(began()));
        let log = Log {
            levels,
            level: 0,
            resumed,
            lost_before: if lost { vec![first] } else { Vec::new() },
            hold_up: s(3),
            barred: false,
            entries: BTreeMap::new(),
        };
        Self {
            judge,
            log,
            open,
            now: boot(50_000),
            epochs: BTreeMap::new(),
            identified: BTreeMap::new(),
            is_careless: false,
            is_mute: false,
            confirmations: 0,
        }
    }

    fn devices(&self) -> Vec<DeviceSpec> {
        self.log.levels.iter().flatten().cloned().collect()
    }

    fn epoch(&mut self, spec: &DeviceSpec) -> Option<Epoch> {
        let tells = spec.has_epochs || spec.id.as_str() == TELLS_UNASKED && !self.is_mute;
        tells.then(|| *self.epochs.entry(spec.id.clone()).or_insert(Epoch::FIRST))
    }

    fn note(&mut self, id: &DeviceId, entry: Entry) {
        self.log.entries.entry(id.clone()).or_default().push(entry);
    }

    /// Whose machine it controls, in the life in which it answers now.
    fn says_whose(&mut self, spec: &DeviceSpec, said: IdentityMatch) {
        let epoch = self.epoch(spec);
        self.identified.insert(spec.id.clone(), epoch);
        self.judge.identified(&spec.id, said, epoch, self.now);
        self.note(&spec.id, Entry::Whose { said, epoch });
    }

    fn reads(&mut self, spec: &DeviceSpec, power: Power, ago: u64) {
        let epoch = self.epoch(spec);
        if !self.is_careless && self.identified.get(&spec.id) != Some(&epoch) {
            self.says_whose(spec, IdentityMatch::Match);
        }
        let asked = BootTime::from_boot(self.now.since_boot() - ms(ago));
        let (answered, epoch) = (self.now, self.epoch(spec));
        let ledger = if self.log.barred { self.open.clone() } else { Ledger::default() };
        let reading = Reading {
            power,
            asked_at: asked,
            answered_at: answered,
            epoch,
            said: String::new(),
            lowered_by: None,
        };
        self.judge.reading(&spec.id, &reading, &ledger);
        self.note(&spec.id, Entry::Answer { power, asked, answered, epoch, barred: self.log.barred });
    }

    fn takes_off(&mut self, spec: &DeviceSpec, already: bool, ago: u64) {
        let asked = BootTime::from_boot(self.now.since_boot() - ms(ago));
        let (answered, epoch) = (self.now, self.epoch(spec));
        self.judge.off_taken(&spec.id, asked, answered, epoch, already);
        self.note(&spec.id, Entry::Off { asked, answered, epoch, already });
    }

    fn refuses_off(&mut self, spec: &DeviceSpec, ago: u64) {
        let asked = BootTime::from_boot(self.now.since_boot() - ms(ago));
        let (answered, epoch) = (self.now, self.epoch(spec));
        self.judge.off_refused(&spec.id, asked, answered, epoch);
        self.note(&spec.id, Entry::Refused { asked, answered, epoch });
    }

    fn passes(&mut self, millis: u64) {
        self.now = self.now + ms(millis);
        self.look();
    }

    /// The very thing: what the judge confirms, the law allows.
    fn look(&mut self) {
        let ledger = if self.log.barred { self.open.clone() } else { Ledger::default() };
        if let Verdict::Confirmed(proof) = self.judge.verdict(&ledger, self.now, WallTime::default()) {
            self.confirmations += 1;
            if let Some(objection) = self.log.objection(&proof, self.now) {
                panic!("confirmed at {:?}, and the law forbids it: {objection}\n{}", self.now, self.log);
            }
        }
    }

    fn next(&mut self, (kind, which, number): Move) {
        let devices = self.devices();
        let spec = devices[usize::from(which) % devices.len()].clone();
        let waits = [10, 250, 700, 980, 1_000, 1_020, 2_900, 3_000];
        let wait = waits[usize::from(number) % waits.len()];
        match kind {
            0 | 1 => self.passes(wait),
            2 => self.reads(&spec, Power::On, 10),
            3 => self.reads(&spec, Power::Unknown, 10),
            4 | 5 => self.reads(&spec, Power::Off, 10),
            6 => self.reads(&spec, Power::Off, wait),
            7 => {
                self.reads(&spec, Power::On, 10);
                self.takes_off(&spec, false, 10);
            }
            8 => self.takes_off(&spec, number > 3, wait),
            9 if number > 5 => self.is_mute = !self.is_mute,
            9 if number > 2 => self.refuses_off(&spec, 10),
            9 => self.judge.off_failed(&spec.id),
            10 => {
                self.judge.held(&spec.id, &[]);
                self.note(&spec.id, Entry::Held);
            }
            11 => {
                // One loss in four is from before the fence began.
                let since = if number == 0 { boot(0) } else { began() };
                if let Some(before) = self.epoch(&spec) {
                    let next = if number > 3 { before.next() } else { before.next_after_loss(since) };
                    self.epochs.insert(spec.id.clone(), next);
                }
            }
            12 => self.log.barred = number < 2,
            13 if number == 0 && self.log.level + 1 < self.log.levels.len() => {
                self.log.level += 1;
                self.judge.try_level(self.log.level);
            }
            14 => {
                let asked = self.now;
                self.judge.silence(&spec.id, asked, self.now);
                self.note(&spec.id, Entry::Silence { asked });
            }
            15 => {
                let said = [IdentityMatch::Match, IdentityMatch::Unknown, IdentityMatch::Mismatch];
                let said = said[usize::from(number / 2) % 3];
                self.says_whose(&spec, said);
                self.is_careless = number > 5;
            }
            // As a patient caller would: everything reads Off for a while, and what is wanted is sent.
            _ => {
                for round in 0..u64::from(number) + 1 {
                    self.passes(1_000 + 10 * round);
                    for spec in &devices {
                        self.reads(spec, Power::Off, 10);
                        if self.judge.wants_off().contains(&spec.id) && which != 3 {
                            match which {
                                2 => self.refuses_off(spec, 10),
                                _ => self.takes_off(spec, which > 4, 10),
                            }
                        }
                    }
                    self.look();
                }
            }
        }
        self.look();
    }
}

fn history() -> impl Strategy<Value = (u8, bool, bool, Vec<Move>)> {
    let moves = prop::collection::vec((0..22u8, 0..8u8, 0..8u8), 1..60);
    (0..10u8, prop::bool::weighted(0.2), prop::bool::weighted(0.2), moves)
}

fn hear((topology, resumed, lost, moves): &(u8, bool, bool, Vec<Move>)) -> usize {
    let mut court = Court::new(*topology, *resumed, *lost);
    for step in moves {
        court.next(*step);
    }
    court.confirmations
}

proptest! {
    #![proptest_config(cases(400))]
    #[test]
    fn confirmed_only_as_the_law_says(history in history()) {
        hear(&history);
    }
}

/// The histories are worth their name: many of them are confirmed.
#[test]
fn many_histories_are_confirmed() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let confirmed =
        (0..200).filter(|_| hear(&history().new_tree(&mut runner).unwrap().current()) > 0).count();
    assert!(confirmed >= 40, "{confirmed} of 200");
}
