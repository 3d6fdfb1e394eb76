//! The world: machines, devices, and what happens to them in the order of time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use picket_core::device::{DeviceClass, Identity};
use picket_core::time::BootTime;
use picket_driver::VolumeAt;

use crate::children::ChildPlacement;
use crate::device::{Device, Received};
use crate::fault::{Act, Fault};
use crate::machine::{Edge, Machine, RestorePolicy};
use crate::random::Random;
use crate::volumes::{Disk, VolumeMove};
use crate::wire::{Heard, SessionId, Verb};

/// A world that drivers and a test share.
pub type SharedWorld = Arc<Mutex<World>>;

/// Where the address of a device leads.
#[derive(Clone, Debug)]
pub(crate) struct Lead {
    /// To this device,
    pub(crate) to: String,
    /// once so many more requests have come to the right one.
    pub(crate) after: u32,
}

/// Something that is still to come.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Act(Act),
    /// A fall or rise of a machine is due.
    Due(String),
    /// The same of an outlet.
    OutletDue(String),
    /// The hold-up time of a machine is over.
    Starve(String),
    /// A late packet arrives.
    Deliver {
        device: String,
        session: Option<SessionId>,
        verb: Verb,
    },
    /// A detach that was taken is over.
    Detached {
        machine: String,
        volume: String,
    },
    /// A late detach arrives.
    Detach {
        machine: String,
        at: VolumeAt,
        forced: bool,
        not_after: BootTime,
    },
}

/// All machines and devices, and what truly happened.
///
/// Whoever asks says what time it is; the world first does all that was due until then. A time before the last one
/// counts as the last one. The observer's questions are the ones that take an `at` and no device answers: what they
/// say is true, whatever the devices say.
///
/// # Panics
/// Every method panics when it is given the name of a machine or device that was never added: a defect of the caller.
#[derive(Clone, Debug)]
pub struct World {
    pub(crate) now: BootTime,
    pub(crate) random: Random,
    pub(crate) machines: BTreeMap<String, Machine>,
    pub(crate) devices: BTreeMap<String, Device>,
    /// Devices whose addresses lead to others.
    pub(crate) leads: BTreeMap<String, Lead>,
    /// What was changed by what was sent to another device's address.
    pub(crate) strayed: Vec<String>,
    queue: BTreeMap<(BootTime, u64), Event>,
    pub(crate) last_id: u64,
    pub(crate) heard: Vec<Heard>,
    /// How much of what was is kept.
    history: usize,
    /// Machines that run on others.
    pub(crate) places: BTreeMap<String, ChildPlacement>,
    pub(crate) volumes: BTreeMap<String, Disk>,
    pub(crate) volume_moves: Vec<VolumeMove>,
}

impl World {
    /// An empty world; `seed` decides all that is left to chance.
    pub fn new(seed: u64) -> Self {
        Self {
            now: BootTime::default(),
            random: Random::new(seed),
            machines: BTreeMap::new(),
            devices: BTreeMap::new(),
            leads: BTreeMap::new(),
            strayed: Vec::new(),
            queue: BTreeMap::new(),
            last_id: 0,
            heard: Vec::new(),
            history: usize::MAX,
            places: BTreeMap::new(),
            volumes: BTreeMap::new(),
            volume_moves: Vec::new(),
        }
    }

    /// Keeps only about so many of the last commands, and of each machine's last changes of power: for a world that goes on
    /// for days. What was before counts as the state of the first that is kept.
    pub fn set_history(&mut self, most: usize) -> &mut Self {
        self.history = most.max(1);
        self
    }

    pub(crate) fn note(&mut self, heard: Heard) {
        let history = self.history;
        if history < usize::MAX {
            let machine = self.device(&heard.device).machine.clone();
            self.machine_mut(&machine).forget(history);
        }
        self.heard.push(heard);
        forget(&mut self.heard, history);
    }

    /// For drivers and a test together.
    pub fn shared(self) -> SharedWorld {
        Arc::new(Mutex::new(self))
    }

    /// Adds a machine that is on. Its identity follows from its name. Added already: nothing changes.
    pub fn add_machine(&mut self, name: &str) -> &mut Self {
        let now = self.now;
        self.machines.entry(name.to_owned()).or_insert_with(|| Machine::new(identity_of(name), true, now));
        self
    }

    /// Adds a machine that is off.
    pub fn add_machine_off(&mut self, name: &str) -> &mut Self {
        let now = self.now;
        self.machines.entry(name.to_owned()).or_insert_with(|| Machine::new(identity_of(name), false, now));
        self
    }

    /// Adds a host device (a BMC) of a machine. A machine may have several.
    pub fn add_host(&mut self, machine: &str, device: &str) -> &mut Self {
        self.add_device(DeviceClass::Host, machine, device)
    }

    /// Adds an outlet that feeds a machine. A machine without outlets hangs on the mains.
    pub fn add_supply(&mut self, machine: &str, outlet: &str) -> &mut Self {
        self.add_device(DeviceClass::Supply, machine, outlet)
    }

    fn add_device(&mut self, class: DeviceClass, machine: &str, device: &str) -> &mut Self {
        if !self.devices.contains_key(device) {
            self.machine_mut(machine).devices.insert(device.to_owned());
            self.devices.insert(device.to_owned(), Device::new(class, machine));
        }
        self
    }

    /// How many sessions a device has (4), and after how long an idle one ends (60 s).
    pub fn set_sessions(&mut self, device: &str, most: usize, idle: Duration) -> &mut Self {
        let device = self.device_mut(device);
        (device.max_sessions, device.idle) = (most, idle);
        self
    }

    /// Takes a device's sessions away: every packet stands alone, and a late one is always executed.
    pub fn set_sessionless(&mut self, device: &str) -> &mut Self {
        self.device_mut(device).sessionless = true;
        self
    }

    /// How long a machine runs on without power (1 s).
    pub fn set_hold_up(&mut self, machine: &str, hold_up: Duration) -> &mut Self {
        self.machine_mut(machine).hold_up = hold_up;
        self
    }

    /// What a machine does when its mains come back (as it was).
    pub fn set_restore(&mut self, machine: &str, policy: RestorePolicy) -> &mut Self {
        self.machine_mut(machine).hold.restore = policy;
        self
    }

    /// From now on the device misbehaves so, too.
    pub fn fault(&mut self, device: &str, fault: Fault) -> &mut Self {
        self.device_mut(device).faults.push(fault);
        self
    }

    /// The device works as it should again. What it lied about it still believes.
    pub fn mend(&mut self, device: &str) -> &mut Self {
        self.device_mut(device).faults.clear();
        self
    }

    /// Something happens now.
    pub fn happen(&mut self, now: BootTime, act: Act) -> &mut Self {
        self.advance(now);
        self.act(act);
        self.fall_with_parents("its parent");
        self
    }

    /// Something will happen then; at once if that is past.
    pub fn schedule(&mut self, at: BootTime, act: Act) -> &mut Self {
        self.push(at, Event::Act(act));
        self
    }

    /// The world's time.
    pub fn now(&self) -> BootTime {
        self.now
    }

    /// Does all that is due until `now`.
    pub fn advance(&mut self, now: BootTime) {
        let history = self.history;
        while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= now) {
            let (at, event) = (entry.key().0, entry.remove());
            self.now = self.now.max(at);
            self.occur(event);
            self.fall_with_parents("its parent");
            if history < usize::MAX {
                self.machines.values_mut().for_each(|machine| machine.forget(history));
            }
        }
        self.now = self.now.max(now);
    }

    pub(crate) fn push(&mut self, at: BootTime, event: Event) {
        self.last_id += 1;
        self.queue.insert((at.max(self.now), self.last_id), event);
    }

    /// Whether the machine was truly on at `at`, and could write.
    pub fn truth(&mut self, machine: &str, at: BootTime) -> bool {
        self.advance(at);
        self.machine(machine).was_on(at)
    }

    /// Every change of the machine's power until `at`, oldest first.
    pub fn edges(&mut self, machine: &str, at: BootTime) -> &[Edge] {
        self.advance(at);
        self.machine(machine).edges()
    }

    /// The last moment until `at` in which the machine could write; `None`: it never ran.
    pub fn last_write(&mut self, machine: &str, at: BootTime) -> Option<BootTime> {
        self.advance(at);
        self.machine(machine).last_write(self.now)
    }

    /// The first moment from `since` until `at` in which the machine could write; `None`: it could not.
    pub fn first_write_since(&mut self, machine: &str, since: BootTime, at: BootTime) -> Option<BootTime> {
        self.advance(at);
        self.machine(machine).first_write_since(since)
    }

    /// What the machine truly is.
    pub fn identity(&self, machine: &str) -> &Identity {
        &self.machine(machine).identity
    }

    /// Somebody put another machine in its place: its devices tell that one's identity from now on.
    pub fn exchange(&mut self, machine: &str, other: &str) {
        self.machine_mut(machine).identity = identity_of(other);
    }

    /// What keeps the machine off, or does not.
    pub fn hold(&self, machine: &str) -> crate::wire::HoldSettings {
        self.machine(machine).hold
    }

    /// Whether this session of the device is open at `at`; asking does not keep it so.
    pub fn knows(&mut self, device: &str, session: SessionId, at: BootTime) -> bool {
        self.advance(at);
        let now = self.now;
        self.device_mut(device).knows(Some(session), now)
    }

    /// How many sessions the device has, and after how long an idle one ends.
    pub fn session_limits(&self, device: &str) -> (usize, Duration) {
        let device = self.device(device);
        (device.max_sessions, device.idle)
    }

    /// Since when the device lives without a restart.
    pub fn device_born(&self, device: &str) -> BootTime {
        self.device(device).born
    }

    /// Whether nothing at all comes from the device at `at`.
    pub fn is_silent(&mut self, device: &str, at: BootTime) -> bool {
        self.advance(at);
        self.is_dead(device)
    }

    /// Whether the device believes since a restart that its machine is off, whatever is true.
    pub fn is_estranged(&self, device: &str) -> bool {
        self.device(device).estranged.is_some()
    }

    /// What the machine is in the middle of.
    pub fn under_way(&self, machine: &str) -> Option<Verb> {
        self.machine(machine).pending.as_ref().map(|pending| pending.verb)
    }

    /// Whether the machine's watchdog runs: for who sets it from inside the machine, as its own system does.
    pub fn set_watchdog(&mut self, machine: &str, runs: bool) -> &mut Self {
        self.machine_mut(machine).hold.watchdog = runs;
        self
    }

    /// What a device was asked until `at`.
    pub fn received(&mut self, device: &str, at: BootTime) -> Received {
        self.advance(at);
        self.device(device).received
    }

    /// How many sessions of the device are open at `at`.
    pub fn sessions(&mut self, device: &str, at: BootTime) -> usize {
        self.advance(at);
        let now = self.now;
        let device = self.device_mut(device);
        device.reap(now);
        device.sessions.len()
    }

    /// Every command that arrived anywhere until `at`, in order.
    pub fn heard(&mut self, at: BootTime) -> &[Heard] {
        self.advance(at);
        &self.heard
    }

    /// What was changed by what was sent to another device's address, in words: whoever did that took one machine for another.
    pub fn strayed(&self) -> &[String] {
        &self.strayed
    }

    /// The class of a device; `None`: there is no such device.
    pub fn class(&self, device: &str) -> Option<DeviceClass> {
        self.devices.get(device).map(|device| device.class)
    }

    pub(crate) fn machine(&self, name: &str) -> &Machine {
        self.machines.get(name).unwrap_or_else(|| panic!("the world has no machine {name:?}"))
    }

    pub(crate) fn machine_mut(&mut self, name: &str) -> &mut Machine {
        self.machines.get_mut(name).unwrap_or_else(|| panic!("the world has no machine {name:?}"))
    }

    pub(crate) fn device(&self, name: &str) -> &Device {
        self.devices.get(name).unwrap_or_else(|| panic!("the world has no device {name:?}"))
    }

    pub(crate) fn device_mut(&mut self, name: &str) -> &mut Device {
        self.devices.get_mut(name).unwrap_or_else(|| panic!("the world has no device {name:?}"))
    }
}

/// Forgets the older half of what has grown to twice of `most`, and tells the last that was forgotten.
pub(crate) fn forget<T>(all: &mut Vec<T>, most: usize) -> Option<T> {
    let over = all.len().checked_sub(most).filter(|over| *over >= most)?;
    all.drain(..over).next_back()
}

/// A machine's identity, the same in every world.
fn identity_of(name: &str) -> Identity {
    let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut random = Random::new(seed);
    Identity {
        uuid: Some(format!("{:016x}{:016x}", random.bits(), random.bits())),
        serial: Some(format!("SIM-{name}")),
    }
}
