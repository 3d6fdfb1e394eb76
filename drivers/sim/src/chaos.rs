//! Misfortune at random, and its end: for tests that live through many histories.

use std::time::Duration;

use picket_core::device::DeviceClass;
use picket_core::time::BootTime;

use crate::children::Moving;
use crate::fault::{Act, Fault};
use crate::random::Random;
use crate::wire::Verb;
use crate::world::World;

/// The longest of the delays that are drawn.
const LONGEST: Duration = Duration::from_secs(30);

impl World {
    /// Something that may happen to one of the machines or devices, drawn from `random`: everything of [`Act`], and of
    /// [`Fault`], but what no fence can survive by its own means: an outlet plugged elsewhere (S13), and a device that
    /// claims another machine, or whose address leads to one ([`Act::Lead`]). A device that lies while its session lives is drawn
    /// only with `lies`.
    pub fn misfortune(&self, random: &mut Random, lies: bool) -> Option<Act> {
        let machine = pick(random, self.machines.keys())?.clone();
        let device = pick(random, self.devices.keys())?.clone();
        if self.is_child(&machine) && random.percent(50) {
            return Some(Act::Move { moving: self.moving(random, &machine), machine });
        }
        let is_outlet = self.class(&device) == Some(DeviceClass::Supply);
        let short = random.between(Duration::ZERO, LONGEST);
        Some(match random.below(14) {
            0 if is_outlet => Act::ForeignOutlet { outlet: device, verb: verb(random) },
            0 => Act::RestartBmc { device, down: short, estranged: lies && random.percent(50) },
            1 => Act::LoseSessions { device },
            2 => Act::ForgetHold { machine },
            3 => Act::ForeignCycle { machine, off_for: short },
            4 => Act::Foreign { machine, verb: verb(random) },
            5 => Act::Watchdog { machine, off_for: short },
            6 => Act::PressButton { machine },
            7 => Act::LoseMains { machine },
            8 => Act::RestoreMains { machine },
            9 | 10 => Act::Mend { device },
            _ => Act::Fault { device, fault: fault(random, short, lies) },
        })
    }

    /// A migration begins, ends where it began, or ends elsewhere.
    fn moving(&self, random: &mut Random, child: &str) -> Moving {
        let others = self.machines.keys().filter(|other| !self.is_child(other) && *other != child);
        let to = pick(random, others.cloned().collect::<Vec<_>>().iter()).cloned();
        match (random.below(3), to) {
            (0, Some(to)) => Moving::Arrives(to),
            (1, _) => Moving::Ends,
            _ => Moving::Begins("somebody migrates it".to_owned()),
        }
    }

    /// All misfortune ends: every device works, believes and says the truth, and has its mains.
    /// What is under way still comes.
    pub fn heal(&mut self, now: BootTime) -> &mut Self {
        self.advance(now);
        self.mend_volumes();
        self.leads.clear();
        for device in self.devices.values_mut() {
            device.faults.clear();
            (device.estranged, device.lying, device.down_until) = (None, false, now);
        }
        self.places.values_mut().for_each(|place| place.moving = None);
        let machines: Vec<String> = self.machines.keys().cloned().collect();
        for machine in machines {
            self.act(Act::RestoreMains { machine });
        }
        self
    }
}

fn pick<'a, T>(random: &mut Random, from: impl ExactSizeIterator<Item = &'a T>) -> Option<&'a T> {
    let mut from = from;
    let index = random.below(from.len() as u64);
    from.nth(usize::try_from(index).ok()?)
}

fn verb(random: &mut Random) -> Verb {
    if random.percent(50) { Verb::Off } else { Verb::On }
}

fn fault(random: &mut Random, after: Duration, lies: bool) -> Fault {
    let times = u32::try_from(1 + random.below(3)).unwrap_or(1);
    let span = (Duration::ZERO, after);
    match random.below(if lies { 23 } else { 19 }) {
        0 => Fault::OffTakes { least: span.0, most: span.1 },
        1 => Fault::OnTakes { least: span.0, most: span.1 },
        2 => Fault::OffIgnored,
        3 => Fault::OffRefused,
        4 => Fault::OnDropped { times },
        5 => Fault::SaysNothing,
        6 => Fault::SaysTransition,
        7 => Fault::AlreadyIsError,
        8 => Fault::Silent,
        9 => Fault::Slow(after / 4),
        10 => Fault::Late { verb: verb(random), after, answered: random.percent(50), times },
        11 => Fault::Twice { verb: verb(random), after, times },
        12 => Fault::AnswerLost { times },
        13 => Fault::RequestLost { times },
        14 => Fault::Loss { percent: u8::try_from(random.below(60)).unwrap_or(0) },
        15 => Fault::HoldUnsupported,
        16 => Fault::SessionsFull,
        17 => Fault::Busy { times },
        18 => Fault::Doubled,
        19 => Fault::OffLied,
        20 => Fault::SaysOff,
        21 => Fault::SaysOn,
        _ => Fault::HoldIgnored,
    }
}
