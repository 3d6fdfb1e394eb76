//! What happens by itself: acts, falls and rises, late packets, the power of supplies.

use picket_core::device::DeviceClass;

use crate::fault::Act;
use crate::wire::{Heard, Request, Verb};
use crate::world::{Event, Lead, World};

const FOREIGN: &str = "somebody else";

impl World {
    pub(crate) fn occur(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Act(act) => self.act(act),
            Event::Due(name) => {
                let machine = self.machine_mut(&name);
                if let Some(pending) = machine.pending.take_if(|pending| pending.due <= now) {
                    machine.switch(pending.verb, now, &pending.by);
                }
            }
            Event::OutletDue(name) => {
                let due = self.device_mut(&name).outlet_pending.take_if(|pending| pending.due <= now);
                if let Some(pending) = due {
                    self.switch_outlet(&name, pending.verb);
                }
            }
            Event::Starve(name) => {
                let machine = self.machine_mut(&name);
                if machine.starving_since.is_some_and(|since| since + machine.hold_up <= now) {
                    machine.starve(now, "no power");
                    self.lose_sessions_of(&name);
                }
            }
            Event::Detached { machine, volume } => self.detached(&volume, &machine),
            Event::Detach { machine, at, forced, not_after } => {
                // Nobody waits for this answer any more.
                let _ = self.detach(&machine, &at, forced, not_after);
            }
            Event::Deliver { device, session, verb } => {
                let known = self.device_mut(&device);
                known.count(&Request::Command(verb));
                let alive = !self.is_dead(&device);
                // What came without a session stands alone, and no session's end ends it.
                let executed = alive && (session.is_none() || self.device_mut(&device).knows(session, now));
                self.note(Heard { at: now, device: device.clone(), verb, session, late: true, executed });
                if executed {
                    // Nobody waits for this answer any more.
                    let _ = self.execute(&device, verb);
                }
            }
        }
    }

    pub(crate) fn act(&mut self, act: Act) {
        let now = self.now;
        match act {
            Act::Fault { device, fault } => {
                self.fault(&device, fault);
            }
            Act::Mend { device } => {
                self.mend(&device);
            }
            Act::RestartBmc { device, down, estranged } => {
                let device = self.device_mut(&device);
                device.sessions.clear();
                device.down_until = now + down;
                device.born = now + down;
                device.lying = false;
                device.estranged = estranged.then_some(now);
                device.notices_a_rise = false;
            }
            Act::Lead { device, to, after } => {
                self.leads.insert(device, Lead { to, after });
            }
            Act::LoseSessions { device } => self.device_mut(&device).sessions.clear(),
            Act::ForgetHold { machine } => {
                self.machine_mut(&machine).hold = crate::wire::HoldSettings::FREE;
            }
            Act::ForeignCycle { machine, off_for } => self.cycle(&machine, off_for, FOREIGN),
            // Nothing comes on where its parent is off.
            Act::Foreign { machine, verb: Verb::On } if self.is_orphaned(&machine) => {}
            Act::Foreign { machine, verb } => self.machine_mut(&machine).switch(verb, now, FOREIGN),
            Act::ForeignOutlet { outlet, verb } => self.switch_outlet(&outlet, verb),
            Act::Watchdog { machine, off_for } => {
                let bites = self.machine(&machine).hold.watchdog && self.machine(&machine).is_on();
                if bites {
                    self.cycle(&machine, off_for, "watchdog");
                }
            }
            Act::PressButton { machine } if self.is_child(&machine) => {}
            Act::PressButton { machine } => {
                let machine = self.machine_mut(&machine);
                if machine.fed && !machine.hold.button_locked {
                    let verb = if machine.is_on() { Verb::Off } else { Verb::On };
                    machine.switch(verb, now, "power button");
                }
            }
            // A child has none of its own.
            Act::LoseMains { machine } | Act::RestoreMains { machine } if self.is_child(&machine) => {}
            Act::LoseMains { machine } => {
                self.machine_mut(&machine).mains = false;
                self.refeed(&machine, "mains");
            }
            Act::RestoreMains { machine } => {
                self.machine_mut(&machine).mains = true;
                self.refeed(&machine, "mains");
            }
            Act::Move { machine, moving } => self.moves(&machine, moving),
            Act::Rewire { outlet, machine } => {
                self.machine_mut(&machine).devices.insert(outlet.clone());
                let before = std::mem::replace(&mut self.device_mut(&outlet).machine, machine.clone());
                if before != machine {
                    self.machine_mut(&before).devices.remove(&outlet);
                }
                self.refeed(&before, &outlet);
                self.refeed(&machine, &outlet);
            }
        }
    }

    fn cycle(&mut self, machine: &str, off_for: std::time::Duration, by: &str) {
        let now = self.now;
        self.machine_mut(machine).switch(Verb::Off, now, by);
        self.push(now + off_for, Event::Act(Act::Foreign { machine: machine.to_owned(), verb: Verb::On }));
    }

    pub(crate) fn switch_outlet(&mut self, outlet: &str, verb: Verb) {
        let device = self.device_mut(outlet);
        device.outlet_pending = None;
        device.outlet_on = verb == Verb::On;
        let machine = device.machine.clone();
        self.refeed(&machine, outlet);
    }

    /// Looks whether the machine has power after a change of what feeds it.
    fn refeed(&mut self, name: &str, by: &str) {
        let now = self.now;
        let devices = self.machine(name).devices.iter().map(|device| self.device(device));
        let mut outlets = devices.filter(|device| device.class == DeviceClass::Supply).peekable();
        let plugged = outlets.peek().is_none() || outlets.any(|outlet| outlet.outlet_on);
        let machine = self.machine_mut(name);
        if machine.mains && plugged {
            machine.feed(now, by);
        } else if machine.fed && machine.starving_since.is_none() {
            machine.starving_since = Some(now);
            let over = now + machine.hold_up;
            self.push(over, Event::Starve(name.to_owned()));
        }
    }

    /// Its BMCs have lost their power.
    fn lose_sessions_of(&mut self, machine: &str) {
        let now = self.now;
        for name in self.machine(machine).devices.clone() {
            let device = self.device_mut(&name);
            if device.class != DeviceClass::Supply {
                device.sessions.clear();
                device.lying = false;
                device.born = now;
            }
        }
    }
}
