//! S1 to S3, S5: what is confirmed off was off since the moment that the evidence names.

use std::time::Duration;

use picket_core::device::{DeviceClass, Grade};
use picket_core::record::NodeRecord;
use picket_core::time::BootTime;

use super::{Invariant, Past};
use crate::scene::s;
use crate::trace::{Event, What};

/// A moment is looked up with so much around it: what is sent takes half a millisecond to arrive.
const MOMENT: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub(super) struct ConfirmedMeansDark;

impl Invariant for ConfirmedMeansDark {
    fn name(&self) -> &'static str {
        "confirmed_means_dark"
    }

    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String> {
        let What::Stored { gateway, record, wall, .. } = &event.what else { return Ok(()) };
        let proven = |record: &NodeRecord| record.fence.as_ref().and_then(|fence| fence.evidence.clone());
        let old = past.record(&record.node);
        let Some(evidence) = proven(record).filter(|now| proven(old).as_ref() != Some(now)) else {
            return Ok(());
        };
        if evidence.grade == Grade::Attested {
            return Ok(());
        }
        if old.ledger.bars_proof() {
            return Err(format!("confirmed while an on is open: {:#?}", old.ledger));
        }
        if past.jumped(*gateway, event.at) {
            return Ok(());
        }
        let level = record.fence.as_ref().and_then(|fence| fence.topology.level(evidence.level - 1));
        let supplies = level.is_some_and(|level| level.devices[0].class == DeviceClass::Supply);
        let ago = wall.millis().saturating_sub(evidence.off_since.millis());
        let since = event.at.since_boot().saturating_sub(Duration::from_millis(ago)) + MOMENT;
        // A machine runs on for a moment when its last supply was cut.
        let since = BootTime::from_boot(if supplies { since + s(1) } else { since });
        match past.on_since(&record.node, since.min(event.at)) {
            Some(edge) => Err(format!("off since {since:?}, and it was on, {edge:?}: {evidence:#?}")),
            None => Ok(()),
        }
    }
}
