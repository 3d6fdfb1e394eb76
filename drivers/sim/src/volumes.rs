//! Volumes of the world's machines, as a cloud has them: attached, let go with a delay, or not at all.
//!
//! # Invariants
//!
//! - What truly happened to each stands in a log, with whether its machine ran then.
//! - A detach that arrives after the moment that stands in it is refused: the far side keeps that bound
//!   (S8). Shown by `a_detach_that_comes_after_its_life_is_refused_by_the_far_side`.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::time::BootTime;
use picket_driver::{Standing, Volume, VolumeAt};

use crate::fault::Fault;
use crate::wire::{Request, Response, Trouble};
use crate::world::{Event, World};

/// How a volume misbehaves when it is to be let go, until it is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// The detach is refused.
    Refused,
    /// The detach is taken, and never comes to its end, unless it was forced.
    Going,
    /// The detach is taken, and a moment later it is attached as before, unless it was forced.
    Returns,
    /// The detach arrives, and its answer is lost.
    Unanswered,
    /// The detach comes so much later, and is not answered.
    Late(Duration),
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// For people.
    pub name: String,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Its machine runs from it.
    pub root: bool,
    /// From a detach that was taken to its end.
    pub takes: Duration,
    /// How it misbehaves.
    pub stuck: Option<Stuck>,
    /// Where, and at which place there; it may be going.
    pub at: BTreeMap<String, (String, bool)>,
}

impl Default for Disk {
    fn default() -> Self {
        Self {
            name: String::new(),
            tags: BTreeMap::new(),
            root: false,
            takes: Duration::from_secs(3),
            stuck: None,
            at: BTreeMap::new(),
        }
    }
}

/// What happened to a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// It was attached.
    Attached,
    /// A detach of ours arrived, and was begun.
    Begun {
        /// It was to be forced.
        forced: bool,
    },
    /// A detach of ours arrived and changed nothing: too late, refused, or it was not attached there.
    Refused,
    /// It is not attached there any more.
    Gone,
}

/// Something that happened to a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeMove {
    /// When.
    pub at: BootTime,
    /// The volume.
    pub volume: String,
    /// The machine.
    pub machine: String,
    /// What.
    pub what: Moved,
    /// The machine ran then.
    pub while_on: bool,
}

impl World {
    /// Adds a volume, attached to a machine.
    pub fn add_volume(&mut self, machine: &str, volume: &str, device: &str, disk: Disk) -> &mut Self {
        self.volumes.insert(volume.to_owned(), disk);
        let now = self.now;
        self.attach(now, machine, volume, device)
    }

    /// Somebody attaches a volume to a machine; it may be attached to others, too.
    pub fn attach(&mut self, now: BootTime, machine: &str, volume: &str, device: &str) -> &mut Self {
        self.advance(now);
        self.disk(volume).at.insert(machine.to_owned(), (device.to_owned(), false));
        self.moved(volume, machine, Moved::Attached);
        self
    }

    /// Somebody else detaches it, at once.
    pub fn detach_by_hand(&mut self, now: BootTime, machine: &str, volume: &str) -> &mut Self {
        self.advance(now);
        self.gone(volume, machine);
        self
    }

    /// Changes a volume.
    pub fn disk(&mut self, volume: &str) -> &mut Disk {
        self.volumes.get_mut(volume).unwrap_or_else(|| panic!("the world has no volume {volume:?}"))
    }

    /// Whether it is attached to that machine at `at`.
    pub fn is_attached(&mut self, machine: &str, volume: &str, at: BootTime) -> bool {
        self.advance(at);
        self.disk(volume).at.contains_key(machine)
    }

    /// All that happened to volumes until `at`, in order.
    pub fn volume_moves(&mut self, at: BootTime) -> &[VolumeMove] {
        self.advance(at);
        &self.volume_moves
    }

    /// All volumes work as they should again; what was stuck on its way is gone.
    pub(crate) fn mend_volumes(&mut self) {
        let going = |(id, disk): (&String, &Disk)| {
            let machines = disk.at.iter().filter(|(_, (_, going))| *going);
            machines.map(|(machine, _)| (id.clone(), machine.clone())).collect::<Vec<_>>()
        };
        let stuck: Vec<(String, String)> = self.volumes.iter().flat_map(going).collect();
        self.volumes.values_mut().for_each(|disk| disk.stuck = None);
        stuck.iter().for_each(|(volume, machine)| self.gone(volume, machine));
    }

    fn moved(&mut self, volume: &str, machine: &str, what: Moved) {
        let (at, while_on) = (self.now, self.machine(machine).is_on());
        let (volume, machine) = (volume.to_owned(), machine.to_owned());
        self.volume_moves.push(VolumeMove { at, volume, machine, what, while_on });
    }

    fn gone(&mut self, volume: &str, machine: &str) {
        if self.disk(volume).at.remove(machine).is_some() {
            self.moved(volume, machine, Moved::Gone);
        }
    }

    /// A detach that was taken comes to its end.
    pub(crate) fn detached(&mut self, volume: &str, machine: &str) {
        let disk = self.disk(volume);
        let Some((_, going)) = disk.at.get_mut(machine).filter(|(_, going)| *going) else { return };
        match disk.stuck {
            Some(Stuck::Going) => {}
            Some(Stuck::Returns) => *going = false,
            _ => self.gone(volume, machine),
        }
    }

    /// What a device that knows of volumes answers to a question about them; `None`: the question is another one.
    pub(crate) fn about_volumes(
        &mut self,
        name: &str,
        request: &Request,
    ) -> Option<Result<Response, Trouble>> {
        let device = self.device(name);
        let machine = device.machine.clone();
        let untold = device.has(|fault| matches!(fault, Fault::VolumesUntold));
        Some(match request {
            Request::Volumes | Request::Standing(_) if untold => Err(Trouble::Busy),
            Request::Volumes => Ok(Response::Volumes(self.volumes_of(&machine))),
            Request::Standing(at) => Ok(Response::Standing(self.standing(&machine, at))),
            Request::Detach { at, forced, not_after } => self.detach(&machine, at, *forced, *not_after),
            _ => return None,
        })
    }

    fn volumes_of(&self, machine: &str) -> Vec<Volume> {
        let attached = self.volumes.iter().filter_map(|(id, disk)| Some((id, disk, disk.at.get(machine)?)));
        let volume = |(id, disk, (device, _)): (&String, &Disk, &(String, bool))| Volume {
            at: VolumeAt { id: id.clone(), device: device.clone() },
            name: disk.name.clone(),
            tags: disk.tags.clone(),
            stays: disk.root.then(|| "it is the root volume".to_owned()),
        };
        attached.map(volume).collect()
    }

    fn standing(&self, machine: &str, at: &VolumeAt) -> Standing {
        let Some(disk) = self.volumes.get(&at.id) else {
            return Standing::Free("there is no such volume".to_owned());
        };
        match disk.at.get(machine).filter(|(device, _)| *device == at.device) {
            Some((_, true)) => Standing::Going("detaching".to_owned()),
            Some((_, false)) => Standing::Attached("in use".to_owned()),
            None if disk.at.is_empty() => Standing::Free("available".to_owned()),
            None => Standing::Free(format!("in use by {} other machine(s)", disk.at.len())),
        }
    }

    /// A detach arrives. One that names another place than the volume's changes nothing.
    pub(crate) fn detach(
        &mut self,
        machine: &str,
        at: &VolumeAt,
        forced: bool,
        not_after: BootTime,
    ) -> Result<Response, Trouble> {
        let now = self.now;
        let Some(disk) = self.volumes.get_mut(&at.id) else { return Ok(Response::Took { already: true }) };
        let stuck = disk.stuck;
        if let Some(Stuck::Late(after)) = stuck {
            disk.stuck = None;
            let (at, machine) = (at.clone(), machine.to_owned());
            self.push(now + after, Event::Detach { machine, at, forced, not_after });
            return Err(Trouble::Silence);
        }
        if now > not_after || disk.root || stuck == Some(Stuck::Refused) {
            self.moved(&at.id, machine, Moved::Refused);
            return Err(Trouble::Refused);
        }
        let Some((_, going)) = disk.at.get_mut(machine).filter(|(device, _)| *device == at.device) else {
            self.moved(&at.id, machine, Moved::Refused);
            return Ok(Response::Took { already: true });
        };
        let was_going = std::mem::replace(going, true);
        if forced && matches!(stuck, Some(Stuck::Returns | Stuck::Going)) {
            disk.stuck = None;
        }
        let due = now + disk.takes;
        self.moved(&at.id, machine, Moved::Begun { forced });
        if !was_going || forced && stuck == Some(Stuck::Going) {
            self.push(due, Event::Detached { machine: machine.to_owned(), volume: at.id.clone() });
        }
        match stuck {
            Some(Stuck::Unanswered) => Err(Trouble::Silence),
            _ => Ok(Response::Took { already: was_going }),
        }
    }
}
