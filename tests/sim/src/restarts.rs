//! Devices that restart under an off that they took, and say Off of a machine that runs on (S2).
//!
//! What nobody can know is not held against anybody (`safety.md`, "What remains"): a device that restarted before the fence began, or
//! while its gateway died, comes to its senses here. What of it is stored binds successors, and is held against them.

use std::collections::BTreeSet;

use picket_core::ids::DeviceId;
use picket_core::record::Phase;
use picket_driver_sim::{Verb, World};

use crate::law::Past;
use crate::shape::Weakness;
use crate::trace::{Blow, Event, GatewayId, What};

/// Those that say Off of a machine that runs on.
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    devices: BTreeSet<String>,
    /// So many are new since that was asked last.
    new: usize,
    /// Who sent the last off, and to what.
    last_off: Option<(GatewayId, String)>,
}

impl Restarts {
    /// How many are new since this was asked last.
    pub(crate) fn news(&mut self) -> usize {
        std::mem::take(&mut self.new)
    }

    /// What an event means for them. `past`: as it was before.
    pub(crate) fn see(&mut self, event: &Event, past: &Past, world: &mut World) {
        match &event.what {
            What::Sent { gateway, device, after, .. } if after.is_zero() => {
                self.last_off = Some((*gateway, device.clone()));
            }
            What::Heard(heard) if heard.verb == Verb::Off && world.is_estranged(&heard.device) => {
                let liar = past.shape.owner(&heard.device).liar.as_ref() == Some(&heard.device);
                let lies = liar || past.shape.weakness == Weakness::EverybodyLies;
                if lies || !self.devices.insert(heard.device.clone()) {
                    return;
                }
                let by_leader = self.last_off.as_ref().is_some_and(|(gateway, device)| {
                    past.leads(*gateway) && *device == heard.device && !heard.late
                });
                if by_leader {
                    self.new += 1;
                } else {
                    self.forget(&heard.device.clone(), world);
                }
            }
            // Whoever comes next knows what is stored, and no more.
            What::Won { .. }
            | What::Lapsed { .. }
            | What::Stopped { .. }
            | What::Began { .. }
            | What::Struck(Blow::Killed | Blow::Ended) => {
                let unknown = |device: &&String| !is_stored(past, device);
                let unknown: Vec<String> = self.devices.iter().filter(unknown).cloned().collect();
                unknown.iter().for_each(|device| self.forget(device, world));
            }
            // The next fence begins with what this one left.
            What::Stored { record, was, .. }
                if record.generation != was.generation
                    || matches!(record.phase, Phase::Normal | Phase::Unfencing) =>
            {
                let own = |device: &&String| past.shape.owner(device).id == record.node;
                let own: Vec<String> = self.devices.iter().filter(own).cloned().collect();
                own.iter().for_each(|device| self.forget(device, world));
            }
            _ => {}
        }
    }

    fn forget(&mut self, device: &str, world: &mut World) {
        self.devices.remove(device);
        world.reconcile(device);
    }
}

/// Whether the record says that the device was lost, or is silent.
fn is_stored(past: &Past, device: &str) -> bool {
    let Ok(id) = DeviceId::new(device) else { return false };
    let fence = past.owner(device).fence.as_ref();
    fence.is_some_and(|fence| fence.lost.contains(&id) || fence.silent.contains(&id))
}
