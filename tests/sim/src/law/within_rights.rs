//! S22: a machine is fenced for another one by the right of those alone who asked for that one, and it names them.

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
        let What::Stored { record, was, .. } = &event.what else { return Ok(()) };
        // What is off, or goes off, is held for any child: nothing is switched off by that.
        let of = |record: &NodeRecord| record.fence.as_ref().map(|fence| fence.id);
        if of(was) == of(record) && was.fence.as_ref().is_some_and(|fence| fence.off_sent) {
            return Ok(());
        }
        let placed = record.holds.iter().filter(|(name, _)| !was.holds.contains_key(*name));
        for (name, hold) in placed.filter(|(name, _)| child_of(name).is_some()) {
            let stranger = hold.by.split(", ").find(|who| !past.shape.may(who, &record.node));
            if let Some(who) = stranger {
                return Err(format!(
                    "{name} holds {}, by {who:?}, who may not fence it: {record:#?}",
                    record.node
                ));
            }
        }
        Ok(())
    }
}
