//! S19: once a receipt was issued, nothing of ours switches the node on before it has expired or was handed back. It is
//! issued of a machine that is off; whoever has the listed keys can verify it, and it says what is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use picket_core::ids::{NodeId, ReceiptId};
use picket_core::record::{Ended, Issued};
use picket_core::time::BootTime;
use picket_driver_sim::Verb;

use super::{Invariant, Past};
use crate::trace::{Control, Event, What};

#[derive(Debug, Default)]
pub(super) struct Receipts {
    /// Those that may still be believed, and until when.
    open: BTreeMap<(NodeId, ReceiptId), BootTime>,
    /// Everything that was ever stored of one.
    stored: BTreeMap<(NodeId, ReceiptId), Issued>,
    /// Those that are to be handed back.
    given_up: BTreeSet<(NodeId, ReceiptId)>,
}

/// A look of two seconds ago, the store's longest silence, and how late a packet to it may be.
const LOOKED: Duration = Duration::from_secs(12);

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
            What::Receipted { node, id, said } => {
                let said = said.as_ref().map_err(|why| format!("receipt {id} of {node}: {why}"))?;
                let issued = self.stored.get(&(node.clone(), *id));
                let agrees = issued.is_some_and(|issued| {
                    (said.id, &said.node, said.fence, said.generation)
                        == (*id, node, issued.fence, issued.generation)
                        && (said.grade, said.off_at, said.issued_at, said.expires_at)
                            == (issued.grade, issued.off_at, issued.issued_at, issued.expires_at)
                });
                if !agrees {
                    return Err(format!("a receipt says {said:?}, and what is stored is {issued:?}"));
                }
            }
            What::Stored { gateway, record, .. } => {
                let old = past.record(&record.node);
                for issued in &record.receipts {
                    let key = (record.node.clone(), issued.id);
                    if old.receipts.iter().all(|known| known.id != issued.id) {
                        // Its life began when it was asked for: before this.
                        self.open.insert(key.clone(), event.at + issued.life());
                        self.stored.insert(key.clone(), issued.clone());
                        if let Some(edge) = past.on_since(&record.node, event.at) {
                            let still = past.stood_still(*gateway, edge.at, event.at);
                            if past.is_ours(&record.node, &edge) || event.at.since(edge.at) > LOOKED + still {
                                return Err(format!(
                                    "{issued:?} is issued of a machine that is on, {edge:?}"
                                ));
                            }
                        }
                    }
                    if issued.ended == Some(Ended::Returned) {
                        self.open.remove(&key);
                    }
                }
                // One that was handed back after its time by a wall clock that jumped is not kept.
                let is_kept = |id: &ReceiptId| record.receipts.iter().any(|issued| issued.id == *id);
                let given_up = &self.given_up;
                let is_back = |key: &(NodeId, ReceiptId)| {
                    key.0 == record.node && given_up.contains(key) && !is_kept(&key.1)
                };
                self.open.retain(|key, until| *until > event.at && !is_back(key));
            }
            What::HandsBack { node, id } => {
                self.given_up.insert((node.clone(), *id));
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
