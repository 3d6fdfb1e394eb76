//! What goes wrong in a history, drawn.

use std::time::Duration;

use picket_core::record::Phase;
use picket_driver_sim::{Act, Fault, Random, Stuck, Verb};

use crate::cast::Cast;
use crate::gate::{Leaving, Stop};
use crate::gateway::Gateway;
use crate::scene::{ms, s};
use crate::shape::{IDLE, PLACE, Weakness};
use crate::sky::Weather;
use crate::trace::{Blow, What};

/// Draws one misfortune after the other.
#[derive(Debug)]
pub(crate) struct Misfortune(Random);

impl Misfortune {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    fn few(&mut self, most: u64) -> u32 {
        u32::try_from(1 + self.0.below(most)).unwrap_or(1)
    }

    /// A time that is short, about a lease, or longer than what lives anywhere.
    fn while_(&mut self) -> Duration {
        match self.0.below(3) {
            0 => self.0.between(ms(100), s(4)),
            1 => self.0.between(s(3), s(12)),
            _ => self.0.between(s(10), s(140)),
        }
    }

    pub(crate) async fn strike(&mut self, cast: &mut Cast) {
        if cast.scene.shape.weakness != Weakness::None && self.0.percent(50) {
            return self.probe(cast);
        }
        if cast.scene.shape.volumes && self.0.percent(15) {
            return self.volume(cast);
        }
        match self.0.below(100) {
            0..5 => return self.astray(cast),
            5..9 => return self.restart(cast),
            9..11 => return self.darkness(cast),
            _ => {}
        }
        if self.0.percent(cast.scene.shape.device_trouble) {
            return if self.0.percent(10) { self.late(cast) } else { self.device(cast) };
        }
        let which = self.0.below(cast.gateways.len() as u64) as usize;
        // More often than not it strikes whoever leads.
        let leader = cast.scene.past(|past| past.leader.map(|(gateway, _)| gateway));
        let which = leader.filter(|_| self.0.percent(70)).unwrap_or(which);
        let (kind, time) = (self.0.below(20), self.while_());
        let gateway = &mut cast.gateways[which];
        match kind {
            0 => gateway.kill().await,
            1 => gateway.end().await,
            2..10 => self.process(gateway, time),
            10 => {
                let millis = i64::try_from(self.0.below(20_000)).unwrap_or(0) - 10_000;
                cast.scene.say(|| format!("the wall clock of g{which} jumps by {millis} ms"));
                gateway.clock.jump_wall(millis);
                cast.scene.note(What::Jumped { gateway: which });
            }
            11 => {
                cast.scene.say(|| format!("the store has no quorum for {time:?}"));
                cast.scene.note(What::Struck(Blow::NoQuorum));
                cast.quorum.away(time);
            }
            12..16 => {
                let weather = Weather::draw(&mut self.0);
                cast.scene.say(|| format!("between g{which} and the store: {weather:?}"));
                cast.scene.note(What::Struck(Blow::ToStore));
                gateway.sky.set_store(weather);
            }
            16 => {
                let weather = Weather::draw(&mut self.0);
                cast.scene.say(|| format!("between g{which} and the devices: {weather:?}"));
                cast.scene.note(What::Struck(Blow::ToDevices));
                gateway.sky.set_devices(weather);
            }
            _ => self.relent(cast).await,
        }
    }

    /// What brings the world's weakness to light, so that few histories are enough.
    fn probe(&mut self, cast: &mut Cast) {
        let shape = cast.scene.shape.clone();
        let leader = cast.scene.past(|past| past.leader.map(|(gateway, _)| gateway));
        let leading = leader.and_then(|leader| cast.gateways[leader].life.as_ref());
        let (what, time) = match shape.weakness {
            // It does harm by itself.
            Weakness::None | Weakness::NobodyKnowsItsHost => return,
            Weakness::LeasesEndEarly => {
                // Longer than the store's lease, and shorter than the permit.
                let time = self.0.between(ms(2_600), ms(4_400));
                let word = self.0.percent(70);
                return leading.into_iter().for_each(|life| match word {
                    true => life.process.stop_before(Leaving::Word, time, Stop::Process),
                    false => life.process.stop(time, Stop::Process),
                });
            }
            Weakness::StaleWritersAreHeard => (Leaving::Write, self.0.between(s(6), s(20))),
            Weakness::SessionsNeverEnd => (Leaving::On, self.0.between(s(150), s(300))),
            // Longer than the lease, and shorter than the session lives by itself.
            Weakness::EndedSessionsLiveOn => (Leaving::On, self.0.between(s(8), s(50))),
            Weakness::ReleasesHeedNoEnd
            | Weakness::DetachesHeedNoEnd
            | Weakness::ProgramsOutliveTheirGateway => (Leaving::Release, self.0.between(s(75), s(140))),
            Weakness::EverybodyLies => {
                let node = &shape.nodes[self.0.below(shape.nodes.len() as u64) as usize];
                let faults = node.hosts().map(|host| (host.clone(), Fault::OffLied));
                let lies: Vec<Act> = faults.map(|(device, fault)| Act::Fault { device, fault }).collect();
                return lies.into_iter().for_each(|lie| cast.scene.happen(lie));
            }
        };
        if let Some(life) = leading {
            life.process.stop_before(what, time, Stop::Process);
        }
    }

    /// What is stopped: more often than not the process alone.
    fn how(&mut self) -> Stop {
        match self.0.below(10) {
            0..7 => Stop::Process,
            7 | 8 => Stop::Machine { set_right: false },
            _ => Stop::Machine { set_right: true },
        }
    }

    /// A process dies, or is stopped: now, or at a point to come.
    fn process(&mut self, gateway: &Gateway, time: Duration) {
        let Some(life) = &gateway.life else { return };
        let (points, how) = (self.few(12), self.how());
        // What is told of programs excludes it: on a machine that stood still as a whole they go on later, and nothing bounds that.
        let how = if gateway.scene.shape.programs { Stop::Process } else { how };
        match self.0.below(8) {
            0 => life.process.stop(time, how),
            1 => life.process.die_in(points),
            2 => life.process.stop_in(points, time, how),
            _ => {
                let kinds = [
                    Leaving::Off,
                    Leaving::On,
                    Leaving::On,
                    Leaving::Hold,
                    Leaving::Release,
                    Leaving::Write,
                    Leaving::Word,
                    Leaving::Word,
                ];
                let what = kinds[self.0.below(kinds.len() as u64) as usize];
                // Those that the far side bounds are stopped for about as long as it does that, or longer.
                let bounded = matches!(what, Leaving::On | Leaving::Release | Leaving::Word);
                let long = bounded && self.0.percent(60);
                let time = if long { self.0.between(s(50), s(140)) } else { time };
                life.process.stop_before(what, time, how);
            }
        }
    }

    /// Some of it ends by itself: processes are started again, networks mended, the world is healed.
    pub(crate) async fn relent(&mut self, cast: &mut Cast) {
        match self.0.below(4) {
            0 => {
                cast.scene.say(|| "the world is healed for now".to_owned());
                let now = cast.scene.now();
                cast.scene.world().heal(now);
            }
            1 => {
                cast.scene.say(|| "networks and store are mended for now".to_owned());
                cast.gateways.iter().for_each(|gateway| gateway.sky.clear());
                cast.quorum.back();
            }
            _ => cast.start_all(),
        }
    }

    /// A command that is late by more than a session lives when nobody uses it.
    fn late(&mut self, cast: &Cast) {
        let shape = &cast.scene.shape;
        let all: Vec<&String> = shape.nodes.iter().flat_map(|node| node.devices()).collect();
        let device = all[self.0.below(all.len() as u64) as usize];
        if shape.is_sessionless(device) {
            return;
        }
        let verb = if self.0.percent(50) { Verb::Off } else { Verb::On };
        let after = self.0.between(s(1), s(200));
        let fault = if self.0.percent(50) {
            Fault::Twice { verb, after, times: 2 }
        } else {
            Fault::Late { verb, after, answered: self.0.percent(50), times: 2 }
        };
        cast.scene.note(What::Struck(Blow::AtDevice));
        cast.scene.happen(Act::Fault { device: device.clone(), fault });
    }

    /// The address of a node's device leads to another node's from some request on, or home again (S13). One without sessions says of each
    /// answer for itself whose it is: that is not simulated here. What knows volumes is a cloud, and asked by the machine's own id.
    fn astray(&mut self, cast: &Cast) {
        let shape = &cast.scene.shape;
        let hosts = || {
            let all = shape.nodes.iter().flat_map(|node| node.hosts().skip(usize::from(shape.volumes)));
            all.filter(|host| !shape.is_sessionless(host))
        };
        let all: Vec<&String> = hosts().collect();
        let Some(device) = all.get(self.0.below(all.len().max(1) as u64) as usize) else { return };
        let home = self.0.percent(40);
        let others: Vec<&String> = hosts()
            .filter(|other| {
                home == (other == device) && (home || shape.owner(other).id != shape.owner(device).id)
            })
            .collect();
        let Some(to) = others.get(self.0.below(others.len().max(1) as u64) as usize) else { return };
        let after = self.few(16) - 1;
        cast.scene.note(What::Struck(Blow::AtDevice));
        cast.scene.happen(Act::Lead { device: (*device).clone(), to: (*to).clone(), after });
    }

    /// A device takes the next off, and restarts before it does anything: it says Off of a machine that runs on (S2). Its settings do not
    /// say that it is to be believed.
    fn restart(&mut self, cast: &Cast) {
        let shape = &cast.scene.shape;
        let all: Vec<&String> = shape.nodes.iter().flat_map(|node| node.hosts()).collect();
        let Some(device) = all.get(self.0.below(all.len().max(1) as u64) as usize) else { return };
        if shape.trusted {
            return;
        }
        // Longer than a silence that shows nothing, and than any pause between two looks.
        let fault = Fault::RestartsUnderOff { down: self.0.between(s(25), s(90)) };
        cast.scene.note(What::Struck(Blow::AtDevice));
        cast.scene.happen(Act::Fault { device: (*device).clone(), fault });
    }

    /// The network of the devices is dark for longer than a session lives.
    fn darkness(&mut self, cast: &Cast) {
        let time = self.0.between(IDLE + s(2), IDLE * 3);
        cast.scene.say(|| format!("no gateway reaches any device for {time:?}"));
        cast.scene.note(What::Struck(Blow::Dark));
        cast.gateways.iter().for_each(|gateway| gateway.sky.set_devices(Weather::dark()));
        let skies: Vec<_> = cast.gateways.iter().map(|gateway| gateway.sky.clone()).collect();
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            skies.iter().for_each(|sky| sky.set_devices(Weather::default()));
        });
    }

    /// A volume is stuck, or somebody else attaches it or takes it away.
    fn volume(&mut self, cast: &Cast) {
        let shape = cast.scene.shape.clone();
        let all: Vec<(&str, String)> =
            shape.volumes().filter(|(_, volume)| !volume.ends_with("root")).collect();
        let (machine, volume) = &all[self.0.below(all.len() as u64) as usize];
        let stuck = match self.0.below(10) {
            0 => Some(Stuck::Refused),
            1 => Some(Stuck::Going),
            2 => Some(Stuck::Returns),
            3 => Some(Stuck::Unanswered),
            4 | 5 => Some(Stuck::Late(self.0.between(s(1), s(90)))),
            _ => None,
        };
        let by_hand = self.0.percent(30);
        cast.scene.say(|| format!("volume {volume}: {stuck:?}, by hand: {by_hand}"));
        cast.scene.note(What::Struck(Blow::AtDevice));
        let now = cast.scene.now();
        // Whoever attaches a volume to a machine that is fenced is asked about it by nobody.
        let node = &shape.nodes.iter().find(|node| node.name == *machine).expect("it has a shape").id;
        let is_free = cast.scene.past(|past| past.record(node).phase == Phase::Normal);
        let mut world = cast.scene.world();
        match stuck {
            Some(_) => world.disk(volume).stuck = stuck,
            None if by_hand => drop(world.detach_by_hand(now, machine, volume)),
            None if is_free => drop(world.attach(now, machine, volume, PLACE)),
            None => {}
        }
    }

    fn device(&mut self, cast: &Cast) {
        let shape = &cast.scene.shape;
        let all_lie = shape.weakness == Weakness::EverybodyLies;
        let lies = all_lie || shape.nodes.iter().any(|node| node.liar.is_some());
        let drawn = cast.scene.world().misfortune(&mut self.0, lies);
        // Only the liar lies Off for a live machine.
        let fair = |act: &Act| match act {
            Act::RestartBmc { device, estranged: true, .. }
            | Act::Fault { device, fault: Fault::OffLied | Fault::SaysOff } => {
                all_lie || shape.owner(device).liar.as_ref() == Some(device)
            }
            _ => true,
        };
        if let Some(act) = drawn.filter(fair) {
            cast.scene.note(What::Struck(Blow::AtDevice));
            cast.scene.happen(act);
        }
    }
}
