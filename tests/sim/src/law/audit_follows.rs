//! The audit follows the records: whoever stored that a node moved tells so before it does anything else to that node; and what
//! a fence says of where the audit stood is an entry of that gateway's chain, and never an older one than it said before.

use std::collections::BTreeMap;
use std::sync::Arc;

use picket_core::ids::NodeId;
use picket_core::record::AuditHead;

use super::{Invariant, Past};
use crate::book::Books;
use crate::trace::{Event, GatewayId, What};

#[derive(Debug)]
pub(super) struct AuditFollows {
    books: Arc<Books>,
    /// The newest number that each gateway stored of each node: two nodes' writes may pass each other.
    newest: BTreeMap<(GatewayId, NodeId), u64>,
    /// Moves that were stored and not told yet.
    untold: BTreeMap<(GatewayId, NodeId), String>,
}

impl AuditFollows {
    pub(super) fn new(books: Arc<Books>) -> Self {
        Self { books, newest: BTreeMap::new(), untold: BTreeMap::new() }
    }

    /// Where the audit stood, as that gateway stored it just now.
    fn stood(&mut self, gateway: GatewayId, node: &NodeId, head: &AuditHead) -> Result<(), String> {
        if !self.books.has(gateway, head) {
            return Err(format!("g{gateway} stored {head:?}, which its audit does not have"));
        }
        let before = self.newest.insert((gateway, node.clone()), head.seq).unwrap_or_default();
        if head.seq < before {
            return Err(format!("g{gateway} stored {head:?} after entry {before}"));
        }
        Ok(())
    }

    fn nothing_untold(&self, gateway: GatewayId, node: &NodeId, does: &str) -> Result<(), String> {
        match self.untold.get(&(gateway, node.clone())) {
            Some(to) => Err(format!("g{gateway} stored that {node} is {to}, told nobody, and {does}")),
            None => Ok(()),
        }
    }
}

impl Invariant for AuditFollows {
    fn name(&self) -> &'static str {
        "audit_follows"
    }

    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String> {
        match &event.what {
            What::Stored { gateway, record, was, .. } => {
                self.nothing_untold(*gateway, &record.node, "stores more")?;
                let head = |fence: &picket_core::record::Fence| fence.audit.clone();
                let (now, before) = (record.fence.as_ref().and_then(head), was.fence.as_ref().and_then(head));
                let moved = record.phase != was.phase || record.generation != was.generation;
                if moved {
                    let to = record.phase.label().to_owned();
                    self.untold.insert((*gateway, record.node.clone()), to);
                }
                match now {
                    Some(head) if before.as_ref() != Some(&head) => self.stood(*gateway, &record.node, &head),
                    _ => Ok(()),
                }
            }
            // One step may be told of two fences: the one that ends, and the one that begins.
            What::Told { gateway, node, to } => match self.untold.remove(&(*gateway, node.clone())) {
                Some(stored) if stored != *to => {
                    Err(format!("g{gateway} tells that {node} is {to}, and stored that it is {stored}"))
                }
                _ => Ok(()),
            },
            What::Permitted { gateway, device, .. } => {
                self.nothing_untold(*gateway, &past.shape.owner(device).id, "sends something to it")
            }
            What::Attempt { gateway, node, .. } => self.nothing_untold(*gateway, node, "lets its volumes go"),
            // What a process that died, or a leadership that was not answered, stored is told by nobody.
            What::Began { gateway } | What::Won { gateway, .. } => {
                self.untold.retain(|(of, _), _| of != gateway);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
