//! S7: power on is opened and sent in phase Unfencing alone, and never while somebody holds the node off.

use picket_core::ledger::EffectKind;
use picket_core::record::Phase;
use picket_driver_sim::Verb;

use super::{Invariant, Past};
use crate::trace::{Control, Event, What};

#[derive(Debug)]
pub(super) struct Holds;

impl Invariant for Holds {
    fn name(&self) -> &'static str {
        "holds"
    }

    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String> {
        let record = match &event.what {
            // Of one whose machine stood still, and which leads no more, the store's word was of before: `one_leader_sends`.
            What::Permitted { gateway, device, control: Control::Power(Verb::On) }
                if past.leads(*gateway) =>
            {
                past.owner(device)
            }
            What::Stored { record, .. } => {
                let old = past.record(&record.node);
                let opened = record.ledger.open().iter().filter(|open| old.ledger.get(open.id).is_none());
                if !opened.into_iter().any(|open| matches!(open.kind, EffectKind::On(_))) {
                    return Ok(());
                }
                record
            }
            _ => return Ok(()),
        };
        if record.phase != Phase::Unfencing || !record.holds.is_empty() {
            return Err(format!("an on is opened or sent: {record:#?}"));
        }
        Ok(())
    }
}
