//! S4, S5, S8 of volumes that are let go one by one: no detach is carried out while the machine has power by an on of ours, or on a
//! look that was too old; what is said to be complete is let go, all of it, and the root volume is not.

use std::collections::BTreeSet;

use picket_core::device::Grade;
use picket_core::ground::LOOK_LIFE;
use picket_core::ids::{NodeId, ReleaseId};
use picket_core::record::{NodeRecord, ReleaseStage};
use picket_core::time::BootTime;
use picket_driver_sim::{Moved, VolumeMove};

use super::{Invariant, Past};
use crate::shape::VOLUMES;
use crate::trace::{Control, Event, GatewayId, What};

#[derive(Debug, Default)]
pub(super) struct VolumesOnlyWhenDark {
    /// Which volumes are attached to which machine.
    attached: BTreeSet<(String, String)>,
    /// The detaches that were permitted: when, by whom, of which node, and whether a person vouched for it.
    permitted: Vec<(BootTime, GatewayId, NodeId, bool)>,
}

impl VolumesOnlyWhenDark {
    fn moved(&mut self, past: &Past, moved: &VolumeMove) -> Result<(), String> {
        let at = (moved.machine.clone(), moved.volume.clone());
        match moved.what {
            Moved::Attached => drop(self.attached.insert(at)),
            Moved::Gone => drop(self.attached.remove(&at)),
            Moved::Refused => {}
            Moved::Begun { .. } if moved.volume.ends_with("root") => {
                return Err(format!("the root volume is let go: {moved:?}"));
            }
            Moved::Begun { .. } => {
                let node = NodeId::new(&moved.machine).expect("a good name");
                let Some(edge) = past.on_since(&node, moved.at) else { return Ok(()) };
                if past.is_ours(&node, &edge) {
                    return Err(format!("let go after an on of ours, {edge:?}: {moved:?}"));
                }
                // Switched on by somebody else since it was looked at: nobody could know.
                let could_be = |(at, gateway, of, vouched): &(BootTime, GatewayId, NodeId, bool)| {
                    let still = past.stood_still(*gateway, edge.at, *at);
                    *of == node && *at <= moved.at && (*vouched || edge.at + LOOK_LIFE + still >= *at)
                };
                if !self.permitted.iter().any(could_be) {
                    return Err(format!("let go while it is on since {edge:?}: {moved:?}"));
                }
            }
        }
        Ok(())
    }

    fn stored(&self, record: &NodeRecord, was: &NodeRecord) -> Result<(), String> {
        let whole = ReleaseId::new(VOLUMES).expect("a good name");
        let stage = |record: &NodeRecord| Some(record.fence.as_ref()?.release(&whole)?.stage);
        let Some(fence) = &record.fence else { return Ok(()) };
        if stage(record) != Some(ReleaseStage::Complete) || stage(was) == Some(ReleaseStage::Complete) {
            return Ok(());
        }
        let given_up = |volume: &str| {
            let part = fence.release(&whole.part(volume));
            part.is_some_and(|part| part.stage == ReleaseStage::Abandoned)
        };
        let own = self.attached.iter().filter(|(machine, _)| *machine == record.node.as_str());
        let left: Vec<&String> = own
            .map(|(_, volume)| volume)
            .filter(|volume| !volume.ends_with("root") && !given_up(volume))
            .collect();
        if left.is_empty() { Ok(()) } else { Err(format!("complete with {left:?} attached: {fence:#?}")) }
    }
}

impl Invariant for VolumesOnlyWhenDark {
    fn name(&self) -> &'static str {
        "volumes_only_when_dark"
    }

    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String> {
        match &event.what {
            What::Permitted { gateway, device, control: Control::Detach } => {
                let record = past.owner(device);
                let grade = record.fence.as_ref().and_then(|fence| Some(fence.evidence.as_ref()?.grade));
                let vouched = grade == Some(Grade::Attested);
                self.permitted.push((event.at, *gateway, record.node.clone(), vouched));
                Ok(())
            }
            What::Moved(moved) => self.moved(past, moved),
            What::Stored { record, was, .. } => self.stored(record, was),
            _ => Ok(()),
        }
    }
}
