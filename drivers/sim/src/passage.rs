//! What happens to a packet on its way, for who carries real ones.

use std::time::Duration;

use picket_core::time::BootTime;

use crate::fault::Fault;
use crate::world::World;

/// How long TCP waits before it repeats, at first (Linux), and how often it is let do so here.
const TCP_GAP: Duration = Duration::from_millis(200);
const TCP_COPIES: u32 = 8;

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the device.
    There,
    /// From the device.
    Back,
}

/// How many copies of a packet arrive, and how much later than usual each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passage([Option<Duration>; 2]);

impl Passage {
    /// One delay for each copy that arrives.
    pub fn copies(self) -> impl Iterator<Item = Duration> {
        self.0.into_iter().flatten()
    }
}

impl World {
    /// Decides what becomes of one packet of a device. Nothing arrives at a device without power, nor from it.
    pub fn passage(&mut self, now: BootTime, name: &str, way: Way) -> Passage {
        self.advance(now);
        if self.is_lost(name, way) || self.is_dead(name) {
            return Passage::default();
        }
        let Self { devices, random, .. } = self;
        let Some(device) = devices.get(name) else { return Passage::default() };
        let slow = if way == Way::Back { device.late_by() } else { Duration::ZERO };
        let mut stray = || {
            let by = device.faults.iter().find_map(|fault| match fault {
                Fault::Reordered { percent, by } => random.percent(*percent).then_some(*by),
                _ => None,
            });
            Some(slow + by.unwrap_or_default())
        };
        let doubled = device.has(|fault| matches!(fault, Fault::Doubled));
        Passage([stray(), if doubled { stray() } else { None }])
    }

    /// The same of a message on a connection that repeats what is lost (TCP): how much later it arrives; `None`: never.
    pub fn stream_passage(&mut self, now: BootTime, name: &str, way: Way) -> Option<Duration> {
        let mut waited = Duration::ZERO;
        let mut gap = TCP_GAP;
        for _ in 0..TCP_COPIES {
            let losses = self.device(name).has(|fault| matches!(fault, Fault::Loss { .. }));
            match self.passage(now, name, way).copies().next() {
                Some(delay) => return Some(waited + delay),
                None if losses => waited += gap,
                None => return None,
            }
            gap *= 2;
        }
        None
    }

    /// Whether this copy of a packet never arrives.
    pub(crate) fn is_lost(&mut self, name: &str, way: Way) -> bool {
        let Self { devices, random, .. } = self;
        let Some(device) = devices.get_mut(name) else { return true };
        // On the way back what wears off is looked at first: a history is replayed from its seed.
        let worn = |device: &mut crate::device::Device| {
            device.wears(|fault| match (way, fault) {
                (Way::There, Fault::RequestLost { times }) | (Way::Back, Fault::AnswerLost { times }) => {
                    Some(times)
                }
                _ => None,
            })
        };
        match way {
            Way::There => {
                let lost = device.loses(random);
                worn(device) || lost
            }
            Way::Back => worn(device) || device.loses(random),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(fault: Option<Fault>, way: Way) -> Vec<Duration> {
        let mut world = World::new(1);
        world.add_machine("n1").add_host("n1", "bmc");
        if let Some(fault) = fault {
            world.fault("bmc", fault);
        }
        world.passage(BootTime::default(), "bmc", way).copies().collect()
    }

    #[test]
    fn a_packet_arrives_once_twice_late_or_never() {
        let (none, late) = (Duration::ZERO, Duration::from_secs(3));
        for (fault, there, back) in [
            (None, vec![none], vec![none]),
            (Some(Fault::Doubled), vec![none; 2], vec![none; 2]),
            (Some(Fault::Slow(late)), vec![none], vec![late]),
            (Some(Fault::Reordered { percent: 100, by: late }), vec![late], vec![late]),
            (Some(Fault::RequestLost { times: 1 }), vec![], vec![none]),
            (Some(Fault::AnswerLost { times: 1 }), vec![none], vec![]),
            (Some(Fault::Loss { percent: 100 }), vec![], vec![]),
            (Some(Fault::Silent), vec![], vec![]),
        ] {
            assert_eq!(delays(fault.clone(), Way::There), there, "{fault:?} there");
            assert_eq!(delays(fault.clone(), Way::Back), back, "{fault:?} back");
        }
    }

    #[test]
    fn of_many_packets_some_are_reordered() {
        let mut world = World::new(7);
        world.add_machine("n1").add_host("n1", "bmc");
        world.fault("bmc", Fault::Reordered { percent: 30, by: Duration::from_millis(5) });
        let late = (0..1000)
            .filter(|_| {
                world.passage(BootTime::default(), "bmc", Way::There).copies().any(|by| !by.is_zero())
            })
            .count();
        assert!((200..400).contains(&late), "{late} of 1000");
    }
}
