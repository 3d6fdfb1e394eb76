//! S5, S7, S8: nothing of ours switches a node on that is proven off, nor one off that was brought back.

use std::collections::BTreeMap;
use std::time::Duration;

use picket_core::record::{NodeRecord, Phase};
use picket_core::time::BootTime;
use picket_driver_sim::Verb;

use super::{Invariant, Past};
use crate::trace::{Event, What};

/// A stale off lands so long after its gateway went on, at the latest: a session's life, and what a device may delay in it.
const STALE: Duration = Duration::from_secs(120);

#[derive(Debug, Default)]
pub(super) struct NoOnAfterConfirmation {
    /// Ons that were carried out, by device.
    ons: BTreeMap<String, BootTime>,
}

fn is_proven(record: &NodeRecord) -> bool {
    let current = record.fence.as_ref().filter(|fence| fence.generation == record.generation);
    current.is_some_and(|fence| fence.evidence.is_some())
}

impl Invariant for NoOnAfterConfirmation {
    fn name(&self) -> &'static str {
        "no_on_after_confirmation"
    }

    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String> {
        let heard = match &event.what {
            What::Heard(heard) if heard.executed => heard,
            _ => return Ok(()),
        };
        let record = past.owner(&heard.device);
        let sessionless = past.shape.is_sessionless(&heard.device);
        match heard.verb {
            Verb::On => {
                self.ons.insert(heard.device.clone(), heard.at);
                // A person's word has no long window, by which late commands to devices without sessions show.
                let vouched = record.fence.as_ref().is_some_and(|fence| fence.attestation.is_some());
                if is_proven(record) && !(sessionless && vouched) {
                    return Err(format!("{heard:?} hits a node that is proven off: {record:#?}"));
                }
            }
            // A stale off may land, where the device has no sessions that end it, or where the whole machine of a gateway
            // stood still, which by its clocks leads on for as long as its lease has left, and an off needs no more.
            Verb::Off if sessionless || past.any_stood_still(event.at, STALE) => {}
            Verb::Off => {
                let began = past.node(&record.node).generation_began;
                let switched_on = self.ons.get(&heard.device).is_some_and(|on| *on >= began);
                if record.phase == Phase::Normal || record.phase == Phase::Unfencing && switched_on {
                    return Err(format!("{heard:?} hits a node that was brought back: {record:#?}"));
                }
            }
        }
        Ok(())
    }
}
