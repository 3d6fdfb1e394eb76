//! S19: once a receipt was issued, nothing of ours switches the node on before it has expired or was handed back.

use std::collections::BTreeMap;

use picket_core::ids::{NodeId, ReceiptId};
use picket_core::receipt::Ended;
use picket_core::time::BootTime;
use picket_driver_sim::Verb;

use super::{Invariant, Past};
use crate::trace::{Control, Event, What};

#[derive(Debug, Default)]
pub(super) struct Receipts {
    /// Those that may still be believed, and until when.
    open: BTreeMap<(NodeId, ReceiptId), BootTime>,
}

impl Receipts {
    fn barring(&self, node: &NodeId, at: BootTime) -> Option<(&ReceiptId, &BootTime)> {
        let mut of = self.open.iter().filter(|((of, _), until)| of == node && **until > at);
        of.next().map(|((_, id), until)| (id, until))
    }
}

impl Invariant for Receipts {
    fn name(&self) -> &'static str {
        "receipts"
    }

    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String> {
        match &event.what {
            What::Stored { record, .. } => {
                let old = past.record(&record.node);
                for issued in &record.receipts {
                    let key = (record.node.clone(), issued.id);
                    if old.receipts.iter().all(|known| known.id != issued.id) {
                        // Its life began when it was asked for: before this.
                        self.open.insert(key.clone(), event.at + issued.life());
                    }
                    if issued.ended == Some(Ended::Returned) {
                        self.open.remove(&key);
                    }
                }
                self.open.retain(|_, until| *until > event.at);
            }
            What::Permitted { device, control: Control::Power(Verb::On), .. } => {
                let record = past.owner(device);
                if let Some((id, until)) = self.barring(&record.node, event.at) {
                    return Err(format!(
                        "an on is sent, and receipt {id} holds until {until:?}: {record:#?}"
                    ));
                }
            }
            What::Heard(heard) if heard.verb == Verb::On && heard.executed => {
                let record = past.owner(&heard.device);
                if let Some((id, until)) = self.barring(&record.node, event.at) {
                    return Err(format!("{heard:?}, and receipt {id} holds until {until:?}: {record:#?}"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
