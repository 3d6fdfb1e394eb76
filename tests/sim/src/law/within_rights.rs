//! S14, S22: what a caller brings about is within its roles, also where it waited, and names it; a machine is fenced for another one by the
//! right of those alone who asked for that one.

use picket_core::parent::child_of;
use picket_core::record::NodeRecord;

use super::{Invariant, Past};
use crate::trace::{Event, What};

#[derive(Debug)]
pub(super) struct WithinRights;

impl Invariant for WithinRights {
    fn name(&self) -> &'static str {
        "within_rights"
    }

    fn see(&mut self, past: &Past, event: &Event) -> Result<(), String> {
        let What::Stored { gateway, record, was, .. } = &event.what else { return Ok(()) };
        let of = |record: &NodeRecord| record.fence.as_ref().map(|fence| fence.id);
        // What is off, or goes off, is held for any child: nothing is switched off by that.
        let is_off = of(was) == of(record) && was.fence.as_ref().is_some_and(|fence| fence.off_sent);
        let placed = record.holds.iter().filter(|(name, _)| !was.holds.contains_key(*name));
        for (name, hold) in placed.filter(|(name, _)| !is_off || child_of(name).is_none()) {
            let may = |who: &str| past.may(*gateway, who, &record.node, event.at);
            if let Some(who) = hold.by.split(", ").find(|who| !may(who)) {
                let node = &record.node;
                return Err(format!("{name} holds {node}, by {who:?}, who may not fence it: {record:#?}"));
            }
        }
        Ok(())
    }
}
