//! S6: terms, versions, generations and the ledger's numbers only grow.

use std::collections::BTreeMap;

use picket_core::ids::{EffectId, NodeId, Term, Version};

use super::{Invariant, Past};
use crate::trace::{Event, What};

#[derive(Debug, Default)]
pub(super) struct NumbersOnlyGrow {
    term: Term,
    versions: BTreeMap<NodeId, Version>,
    effects: BTreeMap<NodeId, EffectId>,
}

impl Invariant for NumbersOnlyGrow {
    fn name(&self) -> &'static str {
        "numbers_only_grow"
    }

    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String> {
        match &event.what {
            What::Won { term, .. } => {
                if *term <= self.term {
                    return Err(format!("term {term} is won after term {}", self.term));
                }
                self.term = *term;
            }
            What::Stored { term, version, record, .. } => {
                let old = past.record(&record.node);
                let before = self.versions.insert(record.node.clone(), *version).unwrap_or_default();
                let known = self.effects.entry(record.node.clone()).or_insert(EffectId(0));
                let open = record.ledger.open().iter().map(|open| open.id);
                let reused = open.clone().find(|id| *id <= *known && old.ledger.get(*id).is_none());
                *known = open.max().unwrap_or(*known).max(*known);
                if *term != self.term || *version != before.next() || record.generation < old.generation {
                    return Err(format!("a number did not grow: {old:#?} {record:#?}"));
                }
                if let Some(reused) = reused {
                    return Err(format!("effect {reused} is entered a second time: {:#?}", record.ledger));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
