//! S5, S7: what is sent stands in the stored ledger; an on only where nothing bars it.

use picket_core::ledger::EffectKind;
use picket_core::record::Phase;
use picket_driver_sim::Verb;

use super::{Invariant, Past};
use crate::trace::{Control, Event, What};

#[derive(Debug)]
pub(super) struct LedgerFirst;

impl Invariant for LedgerFirst {
    fn name(&self) -> &'static str {
        "ledger_first"
    }

    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String> {
        match &event.what {
            // One whose machine stood still, and which leads no more, acts upon what the ledger was.
            What::Permitted { gateway, device, control } if past.leads(*gateway) => {
                let record = past.owner(device);
                let open = record.ledger.open().iter().any(|open| match (&open.kind, control) {
                    (EffectKind::Off(to), Control::Power(Verb::Off))
                    | (EffectKind::On(to), Control::Power(Verb::On))
                    | (EffectKind::Hold(to) | EffectKind::Unhold(to), Control::Hold) => to.as_str() == device,
                    (EffectKind::Release(release), Control::Detach) => release.is_part(),
                    _ => false,
                });
                if !open {
                    return Err(format!("{control:?} to {device} is not in the ledger: {record:#?}"));
                }
                if *control == Control::Power(Verb::On) && record.ledger.bars_on() {
                    return Err(format!("an on to {device} while it is barred: {:#?}", record.ledger));
                }
            }
            What::Stored { record, .. } => {
                let old = past.record(&record.node);
                let news = |open: &&picket_core::ledger::OpenEffect| old.ledger.get(open.id).is_none();
                let on = |open: &picket_core::ledger::OpenEffect| matches!(open.kind, EffectKind::On(_));
                if record.ledger.open().iter().filter(news).any(on) && record.ledger.bars_on() {
                    return Err(format!("an on is opened while it is barred: {:#?}", record.ledger));
                }
                if record.phase == Phase::Normal
                    && old.phase != Phase::Normal
                    && !record.ledger.open().is_empty()
                {
                    return Err(format!("back with open effects: {:#?}", record.ledger));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
