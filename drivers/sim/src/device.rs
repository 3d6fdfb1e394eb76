//! One device: what it says, and what it does when it is told to.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::device::DeviceClass;
use picket_core::power::Power;
use picket_core::time::BootTime;

use crate::fault::Fault;
use crate::machine::Pending;
use crate::random::Random;
use crate::wire::{Request, Response, SessionId, Trouble, Verb};

/// What a device has heard, whether or not it answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Sessions asked for.
    pub opens: u64,
    /// Sessions ended by their owner.
    pub closes: u64,
    /// Questions for the power.
    pub reads: u64,
    /// Offs that arrived, late ones and duplicates included.
    pub offs: u64,
    /// Ons that arrived, likewise.
    pub ons: u64,
    /// Questions for the identity.
    pub identifies: u64,
    /// Hold settings written.
    pub holds: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) class: DeviceClass,
    /// A host device: the machine that it controls. An outlet: the machine that it really feeds.
    pub(crate) machine: String,
    pub(crate) faults: Vec<Fault>,
    /// Open sessions, with when each was last heard of.
    pub(crate) sessions: BTreeMap<SessionId, BootTime>,
    pub(crate) sessionless: bool,
    pub(crate) max_sessions: usize,
    /// A session that is not heard of for so long is over.
    pub(crate) idle: Duration,
    /// When it began to live, last: the world's begin, the end of its last restart, or when its power came back.
    pub(crate) born: BootTime,
    /// Restarting until then.
    pub(crate) down_until: BootTime,
    /// Since when it believes that its machine is off, and has lost its hand on it.
    pub(crate) estranged: Option<BootTime>,
    /// It knows better once its machine comes on anew.
    pub(crate) notices_a_rise: bool,
    /// It ignored an off and says Off since.
    pub(crate) lying: bool,
    /// Of an outlet.
    pub(crate) outlet_on: bool,
    pub(crate) outlet_pending: Option<Pending>,
    pub(crate) received: Received,
}

impl Device {
    pub(crate) fn new(class: DeviceClass, machine: &str) -> Self {
        Self {
            class,
            machine: machine.to_owned(),
            faults: Vec::new(),
            sessions: BTreeMap::new(),
            sessionless: false,
            max_sessions: 4,
            idle: Duration::from_secs(60),
            born: BootTime::default(),
            down_until: BootTime::default(),
            estranged: None,
            notices_a_rise: false,
            lying: false,
            outlet_on: true,
            outlet_pending: None,
            received: Received::default(),
        }
    }

    pub(crate) fn has(&self, is: impl Fn(&Fault) -> bool) -> bool {
        self.faults.iter().any(is)
    }

    /// Whether a fault that wears off holds now; it wears.
    pub(crate) fn wears(&mut self, times_of: impl Fn(&mut Fault) -> Option<&mut u32>) -> bool {
        let found = self.faults.iter_mut().position(|fault| {
            times_of(fault).is_some_and(|times| std::mem::replace(times, times.saturating_sub(1)) > 0)
        });
        let Some(index) = found else { return false };
        if times_of(&mut self.faults[index]).is_some_and(|times| *times == 0) {
            self.faults.remove(index);
        }
        true
    }

    /// Whether this copy of a packet is lost on its way.
    pub(crate) fn loses(&self, random: &mut Random) -> bool {
        self.faults.iter().any(|fault| matches!(fault, Fault::Loss { percent } if random.percent(*percent)))
    }

    /// How much later than usual its answers come.
    pub(crate) fn late_by(&self) -> Duration {
        let slow = self.faults.iter().find_map(|fault| match fault {
            Fault::Slow(by) => Some(*by),
            _ => None,
        });
        slow.unwrap_or_default()
    }

    pub(crate) fn count(&mut self, request: &Request) {
        let received = &mut self.received;
        let counter = match request {
            Request::Open => &mut received.opens,
            Request::Close => &mut received.closes,
            Request::Read => &mut received.reads,
            Request::Command(Verb::Off) => &mut received.offs,
            Request::Command(Verb::On) => &mut received.ons,
            Request::Identify => &mut received.identifies,
            Request::SetHold(_) => &mut received.holds,
            Request::InspectHold | Request::Touch | Request::Place | Request::End(_) => return,
            Request::Volumes | Request::Standing(_) | Request::Detach { .. } => return,
        };
        *counter += 1;
    }

    /// Whether the session is open; hearing of it keeps it so.
    pub(crate) fn hears(&mut self, session: Option<SessionId>, now: BootTime) -> bool {
        if self.sessionless {
            return true;
        }
        self.reap(now);
        match session.and_then(|id| self.sessions.get_mut(&id)) {
            Some(last) => {
                *last = now;
                true
            }
            None => false,
        }
    }

    /// Whether the session is open. A late copy does not keep it so: its sequence number is old.
    pub(crate) fn knows(&mut self, session: Option<SessionId>, now: BootTime) -> bool {
        self.reap(now);
        self.sessionless || session.is_some_and(|id| self.sessions.contains_key(&id))
    }

    /// Ends the sessions that were idle for too long.
    pub(crate) fn reap(&mut self, now: BootTime) {
        let idle = self.idle;
        self.sessions.retain(|_, last| now.since(*last) < idle);
    }

    /// What it says of power when `truth` is the state of what it controls, in transition or not.
    pub(crate) fn says(&self, truth: bool, in_transition: bool) -> Power {
        for fault in &self.faults {
            match fault {
                Fault::SaysOff => return Power::Off,
                Fault::SaysOn => return Power::On,
                Fault::SaysNothing | Fault::SaysNonsense => return Power::Unknown,
                Fault::SaysTransition if in_transition => return Power::Unknown,
                _ => {}
            }
        }
        if truth && !self.lying && self.estranged.is_none() { Power::On } else { Power::Off }
    }

    /// What it says to a command that changes nothing because it is so already.
    pub(crate) fn already(&self) -> Result<Response, Trouble> {
        if self.has(|fault| matches!(fault, Fault::AlreadyIsError)) {
            return Err(Trouble::AlreadySo);
        }
        if self.has(|fault| matches!(fault, Fault::AlreadyIsRefused)) {
            return Err(Trouble::Refused);
        }
        Ok(Response::Took { already: !self.has(|fault| matches!(fault, Fault::AlreadyIsUnsaid)) })
    }

    /// What a command does to it before anything reaches a switch; `None`: the switch is thrown.
    pub(crate) fn intercept(&mut self, verb: Verb) -> Option<Result<Response, Trouble>> {
        let took = Some(Ok(Response::Took { already: false }));
        match verb {
            Verb::Off if self.has(|fault| matches!(fault, Fault::OffRefused)) => Some(Err(Trouble::Refused)),
            Verb::Off if self.has(|fault| matches!(fault, Fault::OffForbidden)) => {
                Some(Err(Trouble::Forbidden))
            }
            Verb::Off if self.estranged.is_some() => Some(self.already()),
            Verb::Off if self.has(|fault| matches!(fault, Fault::OffIgnored)) => took,
            Verb::Off if self.has(|fault| matches!(fault, Fault::OffLied)) => {
                self.lying = true;
                took
            }
            Verb::Off => None,
            Verb::On if self.has(|fault| matches!(fault, Fault::OnRefused)) => Some(Err(Trouble::Refused)),
            Verb::On => {
                let dropped = self.wears(|fault| match fault {
                    Fault::OnDropped { times } => Some(times),
                    _ => None,
                });
                if dropped {
                    return took;
                }
                (self.lying, self.estranged) = (false, None);
                None
            }
        }
    }

    /// How long a command takes to show.
    pub(crate) fn delay(&self, verb: Verb, random: &mut Random) -> Duration {
        let span = self.faults.iter().find_map(|fault| match (verb, fault) {
            (Verb::Off, Fault::OffTakes { least, most }) | (Verb::On, Fault::OnTakes { least, most }) => {
                Some((*least, *most))
            }
            _ => None,
        });
        span.map_or(Duration::ZERO, |(least, most)| random.between(least, most))
    }
}
