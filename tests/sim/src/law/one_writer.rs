//! The promise itself: once a node's volume was let go, the node does not write to it, as long as nobody brought the node
//! back. A machine that somebody else switched on is a breach, which holds prevent and no gateway can.

use std::collections::BTreeMap;

use picket_core::ids::NodeId;
use picket_core::record::Phase;
use picket_core::time::BootTime;

use super::{Invariant, Past};
use crate::trace::{Event, What};

#[derive(Debug, Default)]
pub(super) struct OneWriter {
    /// Volumes that another writes to, and since when.
    let_go: BTreeMap<NodeId, BootTime>,
}

impl Invariant for OneWriter {
    fn name(&self) -> &'static str {
        "one_writer"
    }

    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String> {
        match &event.what {
            What::Released { node, generation, .. } => {
                let record = past.record(node);
                let phase = &record.phase;
                if *phase == Phase::Normal || *generation > record.generation {
                    return Err(format!(
                        "a stale release takes the volume from a node in phase {phase:?}: {event:?}"
                    ));
                }
                self.let_go.entry(node.clone()).or_insert(event.at);
            }
            // Whoever brings the node back brings its volume.
            What::Stored { record, .. } if matches!(record.phase, Phase::Normal | Phase::Unfencing) => {
                self.let_go.remove(&record.node);
            }
            _ => {}
        }
        // Whoever is on writes. Looked at whenever anything happens to the node.
        let node = match &event.what {
            What::Heard(heard) => past.shape.owner(&heard.device).id.clone(),
            What::Stored { record, .. } => record.node.clone(),
            _ => return Ok(()),
        };
        let Some(since) = self.let_go.get(&node) else { return Ok(()) };
        match past.on_since(&node, event.at) {
            Some(edge) if past.is_ours(&node, &edge) => {
                Err(format!("its volume is another's since {since:?}, and it is on since {edge:?}"))
            }
            _ => Ok(()),
        }
    }
}
