//! The caller and the devices: calls on their way, what devices answer, what the judge is told.

use std::collections::{BTreeMap, BTreeSet};

use picket_core::confirm::{Judge, Verdict};
use picket_core::device::{DeviceClass, DeviceSpec, IdentityMatch};
use picket_core::ids::DeviceId;
use picket_core::ledger::Ledger;
use picket_core::power::{Began, Epoch, Power, Reading};
use picket_core::rules::Rules;
use picket_core::time::WallTime;

use super::world::World;
use super::{CALL, END, Ending, Fate, Levels, ON_LIFE, SHARE, START, Story, Time};
use crate::support::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Read,
    Off,
}

/// A call on its way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    call: Call,
    asked: Time,
    arrives: Time,
    ends: Time,
    fate: Fate,
    /// What the device said when the call arrived.
    answer: Option<(Power, Option<Epoch>)>,
}

struct Stage<'a> {
    story: &'a Story,
    world: World,
    judge: Judge,
    ledger: Ledger,
    specs: BTreeMap<DeviceId, DeviceSpec>,
    flights: BTreeMap<DeviceId, Flight>,
    not_before: BTreeMap<DeviceId, Time>,
    epochs: BTreeMap<DeviceId, Epoch>,
    /// How many restarts of its device a session has outlived.
    outlived: usize,
    luck: usize,
    /// The devices that refused the last off of a machine that is off.
    refused: BTreeSet<DeviceId>,
    level: usize,
    level_began: Time,
    said: Vec<String>,
}

fn levels(story: &Story) -> Vec<Vec<DeviceSpec>> {
    let bmc = DeviceSpec { has_epochs: !story.plain, ..host("bmc") };
    let other = host("other");
    match story.levels {
        Levels::Alone => vec![vec![bmc]],
        Levels::Beside => vec![vec![bmc, other]],
        Levels::After => vec![vec![bmc], vec![other]],
        Levels::Supplies => vec![vec![bmc], vec![supply("a"), supply("b")]],
    }
}

/// Lives through the story; what the judge confirms is compared with the truth.
pub fn live(story: &Story) -> Ending {
    let levels = levels(story);
    let slices: Vec<&[DeviceSpec]> = levels.iter().map(Vec::as_slice).collect();
    let mut player = Player::unfencing(&slices);
    if !story.late_ons.is_empty() {
        player.on_intent(&["bmc"]).unwrap();
    }
    let ledger = player.record().ledger.clone();
    player.fence(request(2, &slices, &[]));
    let term = player.leadership.term();
    let judge = Judge::new(player.record(), term, &Rules::default(), story.resumed).unwrap();
    let start = boot(START);
    let judge =
        judge.begun(if story.resumed { Began::Elsewhere { led_since: start } } else { Began::Here(start) });
    let mut due: Vec<(Time, bool)> = story.late_ons.iter().map(|at| (START + at % ON_LIFE, true)).collect();
    due.extend(story.cycle.map(|at| (START + at, true)));
    let world = World {
        now: START,
        power: story.on && story.cycle.is_none(),
        ignored: story.ignored,
        due,
        outlets: BTreeMap::from([(device("a"), true), (device("b"), true)]),
        dark_at: None,
    };
    let specs: BTreeMap<_, _> = levels.iter().flatten().map(|spec| (spec.id.clone(), spec.clone())).collect();
    let mut stage = Stage {
        story,
        world,
        judge,
        ledger,
        epochs: specs.keys().map(|id| (id.clone(), Epoch::FIRST)).collect(),
        specs,
        flights: BTreeMap::new(),
        not_before: BTreeMap::new(),
        outlived: 0,
        luck: 0,
        refused: BTreeSet::new(),
        level: 0,
        level_began: START,
        said: Vec::new(),
    };
    for id in stage.specs.keys() {
        stage.judge.identified(id, IdentityMatch::Match, None, boot(START));
        stage.judge.held(id, &[]);
    }
    stage.run()
}

impl Stage<'_> {
    fn run(mut self) -> Ending {
        while self.world.now < START + END {
            if self.world.now >= START + ON_LIFE {
                self.ledger = Ledger::default();
            }
            self.send();
            let next = self.next();
            self.world.advance(next);
            self.arrive();
            self.end();
            let now = boot(self.world.now);
            match self.judge.verdict(&self.ledger, now, WallTime::default()) {
                Verdict::Confirmed(_) => {
                    let (at, fault) = (self.world.now - START, self.world.fault());
                    return self.ending(Some(at), fault);
                }
                Verdict::Open if self.world.now < self.level_began + SHARE => {}
                verdict => {
                    self.note(format!("{verdict:?}"));
                    if self.level > 0
                        || self.story.levels == Levels::Alone
                        || self.story.levels == Levels::Beside
                    {
                        return self.ending(None, None);
                    }
                    self.level += 1;
                    self.level_began = self.world.now;
                    self.judge.try_level(self.level);
                }
            }
        }
        self.ending(None, None)
    }

    fn ending(self, confirmed_at: Option<Time>, fault: Option<String>) -> Ending {
        Ending { confirmed_at, fault, said: self.said.join("\n") }
    }

    fn note(&mut self, what: String) {
        self.said.push(format!("{:7} {what}", self.world.now - START));
    }

    /// Begins every call that is due.
    fn send(&mut self) {
        let now = self.world.now;
        let mut calls: Vec<(DeviceId, Call)> =
            self.judge.wants_off().into_iter().map(|id| (id, Call::Off)).collect();
        let due = self.judge.readings_due().into_iter().filter(|(_, at)| *at <= boot(now));
        calls.extend(due.map(|(id, _)| (id, Call::Read)));
        for (id, call) in calls {
            let waits = self.not_before.get(&id).is_some_and(|at| *at > now);
            if self.flights.contains_key(&id) || waits {
                continue;
            }
            let mut luck = self.story.luck[self.luck % self.story.luck.len()];
            self.luck += 1;
            // Where nothing but another device can show that one lies, that other one is asked, and answers.
            let unmasked = self.story.plain && !self.story.restarts.is_empty();
            if (self.story.liar.is_some() || unmasked) && id == device("other") {
                luck.fate = Fate::Fine;
            }
            let arrives = now + luck.there;
            let flight = Flight {
                call,
                asked: now,
                arrives,
                ends: arrives + luck.back,
                fate: luck.fate,
                answer: None,
            };
            self.flights.insert(id, flight);
        }
    }

    fn next(&self) -> Time {
        let now = self.world.now;
        let flights = self.flights.values().flat_map(|flight| [flight.arrives, flight.ends]);
        let due = self.judge.readings_due().into_iter().map(|(_, at)| at.since_boot().as_millis() as Time);
        let waits = self.not_before.values().copied();
        let world = self.world.due.iter().map(|(at, _)| *at);
        let all = flights.chain(due).chain(waits).chain(world).chain(self.world.dark_at);
        all.filter(|at| *at > now).min().unwrap_or(now + 100).min(now + 1_000)
    }

    /// The device's answer to what arrives now.
    fn arrive(&mut self) {
        let now = self.world.now;
        let arriving: Vec<DeviceId> = self
            .flights
            .iter()
            .filter(|(_, flight)| flight.arrives == now && flight.answer.is_none())
            .map(|(id, _)| id.clone())
            .collect();
        for id in arriving {
            let flight = self.flights[&id];
            if flight.fate != Fate::Lost {
                let answer = self.answer(&id, flight);
                if let Some(flight) = self.flights.get_mut(&id) {
                    flight.answer = answer;
                }
            }
        }
    }

    /// Does what is asked, and says what the device says. `None`: it is silent.
    fn answer(&mut self, id: &DeviceId, flight: Flight) -> Option<(Power, Option<Epoch>)> {
        let spec = self.specs[id].clone();
        if spec.class == DeviceClass::Supply {
            return Some((self.outlet(id, flight.call), None));
        }
        if !self.world.plugged() {
            return None;
        }
        let now = self.world.now - START;
        let restarting = device(if self.story.other_restarts { "other" } else { "bmc" });
        let restarts = if *id == restarting { self.story.restarts.as_slice() } else { &[] };
        let last = restarts.iter().rev().find(|restart| restart.at <= now);
        if last.is_some_and(|restart| now < restart.at + restart.silent) {
            return None;
        }
        let lives = restarts.iter().filter(|restart| restart.at <= now).count();
        let reconnects = flight.fate == Fate::Reconnects;
        let epoch = self.epochs.get_mut(id).unwrap();
        if lives > self.outlived {
            self.outlived = lives;
            *epoch = epoch.next_after_loss(boot(self.world.now));
        } else if reconnects {
            *epoch = epoch.next();
        }
        let epoch = spec.has_epochs.then_some(*epoch);
        let lies = last.is_some_and(|restart| now < restart.at + restart.silent + restart.lies)
            || *id == device("bmc") && self.story.liar.is_some_and(|from| now >= from);
        if flight.call == Call::Off && !lies {
            if self.world.ignored > 0 {
                self.world.ignored -= 1;
            } else {
                self.world.due.push((self.world.now + self.story.fall, false));
            }
        }
        let truth = if self.world.power && !lies { Power::On } else { Power::Off };
        let word = if flight.fate == Fate::Unknown { Power::Unknown } else { truth };
        Some((word, epoch))
    }

    fn outlet(&mut self, id: &DeviceId, call: Call) -> Power {
        let now = self.world.now;
        if call == Call::Off {
            self.world.outlets.insert(id.clone(), false);
            if self.world.outlets.values().all(|on| !on) {
                self.world.dark_at.get_or_insert(now + self.story.hold_up);
            }
        }
        if self.world.outlets[id] { Power::On } else { Power::Off }
    }

    /// Tells the judge what calls came to.
    fn end(&mut self) {
        let now = self.world.now;
        let silent = |flight: &Flight| flight.answer.is_none() || flight.fate == Fate::AnswerLost;
        let over: Vec<DeviceId> = self
            .flights
            .iter()
            .filter(
                |(_, flight)| if silent(flight) { now >= flight.asked + CALL } else { now >= flight.ends },
            )
            .map(|(id, _)| id.clone())
            .collect();
        for id in over {
            let Some(flight) = self.flights.remove(&id) else { continue };
            let answer = flight.answer.filter(|_| !silent(&flight));
            self.note(format!("{id} {:?} asked {} -> {answer:?}", flight.call, flight.asked - START));
            match (flight.call, answer) {
                (Call::Read, Some((power, epoch))) => {
                    let (asked_at, answered_at) = (boot(flight.asked), boot(now));
                    let reading = Reading {
                        power,
                        asked_at,
                        answered_at,
                        epoch,
                        said: String::new(),
                        lowered_by: None,
                    };
                    if self.judge.life(&id) != epoch.map(|epoch| epoch.id) {
                        // Asked before it is looked at, in each of its lives.
                        self.judge.identified(&id, IdentityMatch::Match, epoch, asked_at);
                    }
                    self.judge.reading(&id, &reading, &self.ledger);
                }
                (Call::Read, None) => self.judge.silence(&id, boot(flight.asked), boot(now)),
                (Call::Off, Some((word, epoch))) => {
                    // Some devices say that it was off already, and some refuse the off then, but for the next one: of who takes none of
                    // ours nothing is confirmed. Others take it.
                    let (asked, is_off) = (boot(flight.asked), word == Power::Off);
                    if is_off && self.luck % 3 == 1 && self.refused.insert(id.clone()) {
                        self.judge.off_refused(&id, asked, boot(now), epoch);
                        self.not_before.insert(id, now + 250);
                    } else {
                        self.refused.remove(&id);
                        let already = is_off && self.luck.is_multiple_of(3);
                        self.judge.off_taken(&id, asked, boot(now), epoch, already);
                    }
                }
                (Call::Off, None) => {
                    self.judge.off_failed(&id);
                    self.not_before.insert(id, now + 250);
                }
            }
        }
    }
}
